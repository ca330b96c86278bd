"""What is not translated comes back as it was, once each, wherever the model put its placeholder."""

import pytest

from regard.tasks.mbr import agreement
from regard.tasks.sentences import portions, sentences
from regard.tasks.shield import required, restore, shield

TEXTS = [
    "Visit https://a.example/x?y=1&z=2. Now!",
    "a <b>red</b> car &amp; more",
    "write to me.too@mail.example, or to %s at {name}",
    "no markup here: 3 < 4 and 5 > 4",
    "<p><b>x</b></p>",
    r"back\slash and \1 in https://a.example/\1",
]


@pytest.mark.parametrize("text", TEXTS)
def test_restoring_gives_the_text_back(text):
    shielded = shield(text, ["car"])
    assert restore(shielded.text, shielded.spans) == text
    for span in shielded.spans:
        assert shielded.text.count(span.placeholder) == 1
        assert span.placeholder not in text
        place = shielded.text.index(span.placeholder)
        around = (shielded.text[place - 1 : place], shielded.text[place + len(span.placeholder) :][:1])
        assert all(not sign or sign.isspace() for sign in around)


def test_what_is_taken_out():
    assert [span.original for span in shield(TEXTS[0]).spans] == ["https://a.example/x?y=1&z=2"]
    assert [span.original for span in shield(TEXTS[1]).spans] == ["<b>", "</b>", "&amp;"]
    assert [span.original for span in shield(TEXTS[2]).spans] == ["me.too@mail.example", "%s", "{name}"]
    assert not shield(TEXTS[3]).spans
    assert not shield(TEXTS[1], markup=False).spans
    kept = shield("New York and New Yorkers in York", ["York", "New York"], markup=False)
    assert [span.original for span in kept.spans] == ["New York", "York"]


def test_placeholders_are_names_that_the_text_does_not_hold():
    shielded = shield("X1 and x2: <a> <b>", lowercase=True)
    assert {span.placeholder for span in shielded.spans}.isdisjoint({"x1", "x2", "X1", "X2"})
    many = shield(" ".join(f"<t{number}>" for number in range(30)))
    assert len({len(span.placeholder) for span in many.spans}) == 1
    assert restore(many.text, many.spans) == " ".join(f"<t{number}>" for number in range(30))


def test_what_an_answer_lost_comes_at_its_end():
    shielded = shield("see <b> now")
    assert restore("regarde", shielded.spans) == "regarde <b>"
    assert restore("", shielded.spans) == "<b>"


def test_a_glossary_asks_for_what_stands_in_the_text():
    terms = {"cat": "chat", "Cat flap": "chatière", "dog": "chien"}
    assert required("The CAT flap, a cat.", terms) == ("chat", "chatière")
    assert required("concatenate", terms) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("J. S. Bach wrote it. It is good.", ["J. S. Bach wrote it.", "It is good."]),
        ("一。二！三", ["一。", "二！", "三"]),
        ("3.5 is no end", ["3.5 is no end"]),
        ("", [""]),
    ],
)  # fmt: skip
def test_sentences(text, expected):
    found = sentences(text)
    assert [part for part, _ in found] == expected
    assert "".join(part + space for part, space in found) == text


def test_what_does_not_fit_is_cut_at_white_space():
    text = "one two three four.  five sixsixsix seven"
    found = portions(text, lambda part: len(part) <= 9)
    assert "".join(part + space for part, space in found) == text
    assert [part for part, _ in found] == ["one two", "three", "four.", "five", "sixsixsix", "seven"]
    assert [part for part, _ in portions("toolongaword x", lambda part: len(part) <= 3)] == ["toolongaword", "x"]


def test_agreement_is_the_mean_of_chrf_with_the_others():
    from sacrebleu.metrics.chrf import CHRF

    texts = ["the cat sat", "the cat sits", "a dog", "the cat sat"]
    found = agreement(texts)
    for place, text in enumerate(texts):
        others = [other for number, other in enumerate(texts) if number != place]
        expected = sum(CHRF().sentence_score(text, [other]).score for other in others) / 3
        assert found[place] == pytest.approx(expected)
    assert found[0] == found[3] == max(found)
    assert agreement(["alone"]) == [100.0]
