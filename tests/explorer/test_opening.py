"""Where the page begins: found by trying every weight of every head."""

import pytest

from regard.explorer.looks import Look, Question
from regard.explorer.measures import measures
from regard.explorer.opening import opened

from .tiny import TARGET, TEXT


def opening(look):
    return measures(look)["opening"]


def farthest(run, text, far):
    """Weights of words at words so far away, with their places, the greatest first."""
    trace, pieces, _ = run.trace(text, TARGET, tag="<2fr>")
    tokenizer = run.source_tokenizer
    words = tokenizer.words([tokenizer.tag_id("<2fr>"), *tokenizer.encode(text), tokenizer.specials.end])
    found = []
    for layer in range(2):
        weights = trace[f"encoder.self.{layer}.weights"][0]
        for head, row, key in ((head, row, key) for head in range(4) for row in range(len(pieces))
                               for key in range(len(pieces))):  # fmt: skip
            both = all(any(letter.isalnum() for letter in pieces[one].strip("▁")) for one in (row, key))
            if both and not {row, key} & {0, len(pieces) - 1} and abs(words[row] - words[key]) >= far:
                found.append((float(weights[head, row, key]), layer, head, row))
    return sorted(found, reverse=True)


@pytest.mark.parametrize(("text", "far"), [(TEXT, 4), ("the animal cross", 2)])
def test_the_greatest_weight_of_all_that_go_far(run, text, far):
    _, layer, head, row = farthest(run, text, far)[0]
    found = opening(Look(run, Question(text=text, target=TARGET, tag="<2fr>")))
    assert found == {"part": "encoder.self", "layer": layer, "head": head, "row": row}


def test_a_text_without_two_words_has_none(run):
    for text in ("", "animal", ". , ."):
        assert opening(Look(run, Question(text=text, target=TARGET))) is None


def test_who_says_where_to_begin_is_heard():
    begin = {"part": "encoder.self", "layer": 1, "head": 2, "row": 3}
    told = {"part": "encoder.self", "layer": "1", "head": "2", "heads": "2", "row": "3"}
    assert opened({"view": "matrix"}, begin) == {"view": "matrix", **told}
    assert opened({"layer": "0"}, begin) == {"layer": "0"}
    assert opened({"view": "all"}, None) == {"view": "all"}


def test_the_page_begins_there(screen, file_page, run):
    """And not where the address says another place, or what the text was is let go of."""
    begin = opening(Look(run, Question(text=TEXT, target=TARGET, tag="<2fr>")))
    shown = screen().open(file_page)
    assert shown.text(".reading h2") == f"Layer {begin['layer']}, head {begin['head']}"
    assert shown.page.locator(".tokens.row .chosen").get_attribute("id") == f"tokens-row-{begin['row']}"
    assert shown.state == {}
    shown.press("Escape")
    assert (shown.state, shown.page.locator(".chosen").count()) == ({"row": "-1"}, 0)
    shown.page.reload()
    shown.ready()
    assert shown.page.locator(".tokens .chosen").count() == 0
    shown.open(file_page, part="decoder.self")
    assert (shown.text(".reading h2"), shown.page.locator(".tokens .chosen").count()) == ("Layer 0, 4 heads", 0)
