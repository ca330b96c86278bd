"""What can be asked of a translator, and what `regard translate` and `regard score` print of it."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

import regard
from regard import DecodingConfig, Wanted
from regard.cli import main
from regard.config import recipe_from
from regard.decoding.kernel import kernel
from regard.errors import InputError
from regard.models import build_model
from regard.nn import Trace
from regard.runs import save_run
from regard.tasks.translator import Asked, TextError
from regard.text import train_tokenizer

TEXTS = [
    "the cat sleeps.",
    "",
    "a dog",
    "cats and dogs and a red cat sleep.",
    "see http://a.example/b now",
    "a <b>cat</b>",
]
LINES = "the cat sleeps a dog and dogs sleep red cats see now . X1 X2 x1 x2 in on"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")

    def make(name="run", seed=1, kind="word", **decoding):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            values = {"d_model": 16, "heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 2, "max_length": 60,
                      "output_bias": True, "embeddings": "separate"}  # fmt: skip
            plain = {
                "task": "translate",
                "tokens": {"kind": kind},
                "model": values,
                "decoding": {"beam": 3, "precision": "float32", **decoding},
            }
            tokenizer = train_tokenizer([LINES], recipe_from(plain).tokens, [])
            recipe = recipe_from({**plain, "model": {**values, "vocabulary": tokenizer.size}})
            model = build_model(recipe.model)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(torch.randn_like(parameter), alpha=0.3)
                model.output_bias[tokenizer.specials.end] += 2
                model.output_bias[: tokenizer.specials.end] -= 9
                model.output_bias[tokenizer.specials.end + 1 : 260] -= 9  # bytes
            save_run(place / name, recipe, tokenizer, model)
        return str(place / name)

    return make


@pytest.fixture(scope="module")
def run(folder):
    return regard.load(folder())


def test_nbest_gives_lists(run):
    several = run.translate(TEXTS, nbest=3)
    assert [len(answers) for answers in several] == [3, 1, 3, 3, 3, 3]
    assert [answers[0].text for answers in several] == [answer.text for answer in run.translate(TEXTS)]
    alone = [answer.tokens for answer in several[0]]
    assert len(set(alone)) == 3
    assert [answer.tokens for answer in run.translate(TEXTS[0], nbest=2)] == alone[:2]
    assert [answer.tokens for answer in run.nbest(TEXTS[0], beam=3)] == alone
    with pytest.raises(InputError, match="nbest = 4: a beam of 3"):
        run.translate(TEXTS[0], nbest=4)


def test_scores_are_those_of_the_text_scored(run):
    answers = [answer for answer in run.translate(TEXTS) if answer.ended and answer.tokens]
    sources = [text for text, answer in zip(TEXTS, run.translate(TEXTS), strict=True) if answer.ended and answer.tokens]
    assert answers
    for source, answer in zip(sources, answers, strict=True):
        logps = run.score([(source, answer.text)])[0]
        if len(logps) == len(answer.tokens) + 1:  # its text is cut into the same pieces again
            assert sum(logps) == pytest.approx(answer.logp, abs=1e-4)
            assert answer.score == pytest.approx(answer.logp / len(logps), abs=1e-5)


def test_precision_and_workers(run, folder, capsys, tmp_path):
    """In each precision its own answers, from any number of workers; changed weights are packed anew."""
    lines = tmp_path / "in.txt"
    lines.write_text("".join(f"{text}\n" for text in TEXTS * 5), encoding="utf-8")
    for precision in ("float32", "bf16", "int8"):
        expected = run.translate(list(TEXTS) * 5, decoding=replace(run.recipe.decoding, precision=precision))
        for workers in ("1", "3"):
            command = ["translate", folder(), str(lines), "--precision", precision, "--workers", workers]
            assert main(command) == 0
            told = capsys.readouterr()
            assert told.out == "".join(f"{answer.text}\n" for answer in expected)
            if kernel() is not None:
                assert told.err == f"regard: precision: {precision}, as asked\n"
    assert main(["translate", folder(), str(lines), "--workers", "0"]) == 2
    mine = regard.load(folder())
    before = mine.translate(TEXTS[3])
    with torch.no_grad():
        mine.model.target_pieces.weight.mul_(-1)
    assert mine.translate(TEXTS[3]) != before


def test_alignments_are_the_trace_of_the_translation(run):
    heads = DecodingConfig(beam=3, min_length=4, alignment_heads=("1.0", "0.1"))
    answer = run.translate(TEXTS[3], wanted=Wanted(alignments=True), decoding=heads)
    assert answer.alignment is not None
    ids = [run.tokenizer.specials.begin, *run.tokenizer.encode(answer.text)]
    source = [*run.tokenizer.encode(TEXTS[3]), run.tokenizer.specials.end]
    trace = Trace(parts=("decoder.cross",))
    with torch.no_grad():
        run.model(torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([ids]), trace=trace)
    expected = (trace["decoder.cross.1.weights"][0, 0] + trace["decoder.cross.0.weights"][0, 1]) / 2
    weights = torch.tensor(answer.alignment.weights)
    torch.testing.assert_close(weights, expected[: len(weights)], atol=1e-5, rtol=0)
    assert answer.alignment.source == tuple(map(run.tokenizer.piece, source))
    assert answer.alignment.source_words == ("cats", "and", "dogs", "and", "a", "red", "cat", "sleep.")
    assert " ".join(answer.alignment.target_words).split() == answer.text.split()
    for source_word, target_word in answer.alignment.words:
        row = answer.alignment.word_weights[target_word]
        assert row[source_word] == max(row)
    for row, words in zip(answer.alignment.word_weights, answer.alignment.target_words, strict=True):
        assert 0 < sum(row) <= 1 + 1e-5, words
    with pytest.raises(InputError, match="layers 0 to 1"):
        run.translate("a dog", wanted=Wanted(alignments=True), decoding=DecodingConfig(alignment_heads=("2.0",)))


def test_words_are_linked_by_the_sums_of_their_pieces(folder):
    """Characters as pieces: "ab c" against "de"."""
    from regard.tasks.translation import alignment

    tokenizer = regard.load(folder("chars", kind="char")).tokenizer
    source, target = [*tokenizer.encode("ab c"), tokenizer.specials.end], tokenizer.encode("de x")
    weights = torch.tensor(
        [[0.2, 0.2, 0.1, 0.4, 0.1], [0.3, 0.3, 0.0, 0.3, 0.1], [0.0, 0.0, 0.0, 0.1, 0.9], [0.0, 0.0, 0.1, 0.2, 0.7]]
    )
    made = alignment(tokenizer, tokenizer, source, target, weights)
    assert made.source_words == ("ab", "c")
    assert made.target_words == ("de", "x")
    assert made.words == ((0, 0),)
    assert made.pharaoh() == "0-0"
    assert made.pieces == ((3, 0), (0, 1))
    torch.testing.assert_close(torch.tensor(made.word_weights), torch.tensor([[0.5, 0.4], [0.0, 0.2]]))


def test_heads_and_confidence_come_from_known_pairs(folder, tmp_path):
    """A run without any says what its last layer but one looks at, and is sure as it is."""
    plain = regard.load(folder())
    assert plain.translator.alignment_heads == ((0, 0), (0, 1))
    assert plain.translator.temperature == 1.0
    answer = plain.translate("a dog", wanted=Wanted(confidence=True))
    assert answer.confidence == pytest.approx(math.exp(answer.logp / (len(answer.tokens) + answer.ended)), abs=1e-5)
    place = regard.load(folder("known"))
    (tmp_path / "valid.tsv").write_text("the cat\ta dog\nred cats\tdogs sleep\na dog\tsee\n" * 9, encoding="utf-8")
    place.recipe = replace(place.recipe, data=replace(place.recipe.data, valid=(str(tmp_path / "valid.tsv"),)))
    assert place.translator.temperature > 1.5
    assert len(place.translator.alignment_heads) >= 1
    sure = place.translate("a dog", wanted=Wanted(confidence=True)).confidence
    assert sure is not None
    assert sure != pytest.approx(answer.confidence)


def test_prefixes_and_phrases_stand_in_the_answer(run):
    asked = [
        Asked(text="the cat sleeps.", prefix="red cats"),
        Asked(text="a dog", phrases=("in on", "sleep")),
        Asked(text="a dog"),
    ]
    (first,), (second,), (third,) = run.translator.translate(asked)
    assert first.text.startswith("red cats")
    assert "in on" in second.text
    assert "sleep" in second.text.split()
    assert third.text == run.translate("a dog").text
    with pytest.raises(TextError, match="text 2: its prefix has 61"):
        run.translator.translate([asked[0], Asked(text="a dog", prefix="a " * 60)])


def test_a_prefix_counts_among_the_most_pieces(run):
    """It once came on top of them."""
    for prefix, most in (("", 5), ("red cats", 5), ("red cats see the dog and", 7)):
        (answer,) = run.translator.translate(
            [Asked(text="the cat sleeps.", prefix=prefix)], DecodingConfig(max_length=5)
        )[0]
        assert len(answer.tokens) + answer.ended <= most


@pytest.mark.parametrize("options", [{"samples": 3}, {"mbr": True}, {"beam": 4, "groups": 2}], ids=str)
def test_what_has_to_be_written_is_refused_where_nothing_writes_it(options, run):
    with pytest.raises(InputError, match="only by a beam without groups"):
        run.translate(TEXTS, wanted=Wanted(markup=True), decoding=DecodingConfig(**options))


def test_what_is_kept_comes_back_as_it_was(run):
    wanted = Wanted(markup=True, keep=("cat",), glossary={"sleeps": "dogs see"})
    answers = run.translate(TEXTS, wanted=wanted)
    assert "cat" in answers[0].text
    assert "dogs see" in answers[0].text
    assert "http://a.example/b" in answers[4].text
    assert "cat" in answers[5].text
    for part in ("<b>", "</b>"):
        assert answers[5].text.count(part) == 1


def test_forbidden_words_are_not_written(run):
    usual = run.translate(TEXTS[0]).text.split()
    without = run.translate(TEXTS[0], decoding=DecodingConfig(beam=3, forbid=(usual[0],))).text.split()
    assert usual[0] not in without


def test_the_unknown_piece_is_replaced_by_what_it_looks_at(folder):
    run = regard.load(folder("unknown"))
    unknown = run.tokenizer.specials.unknown
    with torch.no_grad():
        run.model.output_bias[unknown] += 30
    some = DecodingConfig(beam=1, max_length=3)
    assert run.translate("the cat", decoding=some).text.count("⁇") >= 2
    replaced = run.translate("the cat", decoding=replace(some, unknown="replace"))
    assert set(replaced.text.split()) <= {"the", "cat"}
    assert "⁇" not in run.translate("the cat", decoding=replace(some, unknown="forbid")).text


def test_samples_and_minimum_bayes_risk(run):
    from regard.tasks.mbr import agreement

    drawing = DecodingConfig(samples=12, temperature=1.5)
    drawn = run.translate(TEXTS, nbest=12, decoding=drawing)
    assert all(len({answer.text for answer in answers}) > 2 for answers in drawn if answers[0].tokens)
    again = run.translate(TEXTS[::-1], decoding=drawing)
    assert [answer.text for answer in again] == [answers[0].text for answers in drawn][::-1]
    assert drawn != run.translate(TEXTS, nbest=12, decoding=replace(drawing, seed=2))
    chosen = run.translate(TEXTS[0], decoding=replace(drawing, mbr=True))
    assert chosen.text in {answer.text for answer in drawn[0]}
    texts = [run.translator.tokenizer.decode(answer.ids) for answer in _all_samples(run, drawing)]
    agreed = agreement(texts)
    assert chosen.text == texts[agreed.index(max(agreed))]


def _all_samples(run, drawing):
    from regard.tasks import translator

    held = []
    kept = translator.search
    translator.search = lambda *given, **more: held.append(kept(*given, **more)) or held[-1]
    try:
        run.translate(TEXTS[0], nbest=12, decoding=drawing)
    finally:
        translator.search = kept
    return held[0][0].answers


def test_long_texts_are_refused_by_number_or_split(run):
    long = " ".join(["the cat sleeps."] * 30)
    with pytest.raises(TextError, match="text 3: 121 pieces, of which the model reads 60"):
        run.translate(["a", "", long])
    whole = run.translate(long, wanted=Wanted(split=True))
    alone = run.translate("the cat sleeps.")
    assert whole.text == " ".join([alone.text] * 30)
    assert whole.logp == pytest.approx(30 * alone.logp, abs=1e-3)
    assert run.translate("", wanted=Wanted(split=True)).text == ""
    with pytest.raises(InputError, match="split: gives one"):
        run.translate(long, nbest=2, wanted=Wanted(split=True))


def test_an_ensemble_of_runs(folder, run):
    other = regard.load(folder("other", seed=2))
    both = run.ensemble([other])
    assert run.ensemble([run]).translate([Asked(text=TEXTS[0])])[0][0].text == run.translate(TEXTS[0]).text
    (answer,) = both.translate([Asked(text=TEXTS[0])])[0]
    assert answer.logp != pytest.approx(run.translate(TEXTS[0]).logp)
    with pytest.raises(InputError, match="tokenisers"):
        run.ensemble([regard.load(folder("chars", kind="char"))])


def translated(folder, content, *options):
    command = [sys.executable, "-m", "regard", "translate", folder, *options]
    return subprocess.run(command, input=content, capture_output=True)


def test_objects_a_line(folder, run):
    texts = [*TEXTS, "a\u2028dog"]
    done = translated(folder(), "\n".join(texts).encode(), "--format", "jsonl", "--nbest", "2", "--alignments",
                      "--confidence", "--tree")  # fmt: skip
    assert done.returncode == 0
    rows = [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]
    assert [row["line"] for row in rows] == list(range(1, len(texts) + 1))
    assert [row["source"] for row in rows] == texts
    expected = run.translate(texts, nbest=2, wanted=Wanted(alignments=True, confidence=True, tree=True))
    for row, answers in zip(rows, expected, strict=True):
        assert [answer["text"] for answer in row["nbest"]] == [answer.text for answer in answers]
        for plain, answer in zip(row["nbest"], answers, strict=True):
            assert plain["score"] == pytest.approx(answer.score, abs=1e-5)
            assert plain.get("confidence") == pytest.approx(answer.confidence, abs=1e-5)
            if answer.alignment:
                assert plain["alignment"]["words"] == [list(link) for link in answer.alignment.words]
        if answers[0].tree:
            assert len(row["tree"]["candidates"]) == len(answers[0].tree.candidates)


def test_tables_of_the_best(folder, run):
    done = translated(folder(), b"the cat\n\na dog\n", "--nbest", "2", "--alignments")
    rows = [line.split("\t") for line in done.stdout.decode().split("\n")[:-1]]
    assert [row[0] for row in rows] == ["1", "1", "2", "3", "3"]
    assert [row[2] for row in rows if row[0] == "3"] == [answer.text for answer in run.translate("a dog", nbest=2)]
    assert all(len(row) == 4 for row in rows)


def test_lines_that_cannot_be_read_shift_no_others(folder, run):
    content = b"the cat\nd\xe9j\xe0\n\na dog\n"
    strict = translated(folder(), content)
    assert strict.returncode == 2
    assert strict.stdout.decode() == run.translate("the cat").text + "\n"
    assert "standard input, line 2: not UTF-8" in strict.stderr.decode()
    done = translated(folder(), content, "--errors", "replace")
    assert done.returncode == 0
    assert "standard input, line 2: not UTF-8" in done.stderr.decode()
    expected = run.translate(["the cat", "d\ufffdj\ufffd", "", "a dog"])
    assert done.stdout.decode().split("\n")[:-1] == [answer.text for answer in expected]


def test_lines_before_one_that_is_too_long_are_written(folder, run):
    done = translated(folder(), ("a dog\n\n" + "cat " * 70 + "\nthe cat\n").encode())
    assert done.returncode == 2
    assert "standard input, line 3: 72 pieces, of which the model reads 60" in done.stderr.decode()
    assert done.stdout.decode() == f"{run.translate('a dog').text}\n\n"


def test_input_of_objects(folder, run, tmp_path, capsys):
    place = tmp_path / "in.jsonl"
    rows = [{"text": "a dog", "prefix": "red"}, {"text": "the cat", "phrases": ["in on"]}, {"text": ""}]
    place.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert main(["translate", folder(), str(place), "--input", "jsonl"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith("red")
    assert "in on" in lines[1]
    assert lines[2:] == ["", ""]
    for wrong, said in (("[1]", 'must be an object with a "text"'), ("{", "not JSON"), ('{"text": 1}', "text = 1")):
        place.write_text(f'{{"text": "a dog"}}\n{wrong}\n', encoding="utf-8")
        assert main(["translate", folder(), str(place), "--input", "jsonl"]) == 2
        captured = capsys.readouterr()
        assert f"line 2: {said}" in captured.err
        assert captured.out == run.translate("a dog").text + "\n"


def test_a_line_is_answered_before_the_next_comes(folder, run):
    """A program that writes a line and waits for its translation once waited for ever."""
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "translate", folder()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    for text in ("a dog", "", "the cat"):
        process.stdin.write(text.encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline().decode() == run.translate(text).text + "\n"
    process.stdin.close()
    assert process.wait() == 0
    process.stdout.close()


def test_what_deserves_a_look_is_said(folder, capsys, tmp_path):
    place = tmp_path / "in.txt"
    place.write_text("a dog\nthe cat\n", encoding="utf-8")
    assert main(["translate", folder(), str(place), "--max-length", "1", "--min-length", "1"]) == 0
    assert "regard: the limit of length was reached in 2 lines: 1, 2" in capsys.readouterr().err
    for options, said in (
        (["--tree"], "--tree and --confidence need --format jsonl"),
        (["--nbest", "0"], "--nbest = 0"),
        (["--top-p", "2"], "--top_p = 2"),
        (["--glossary", str(place)], "in.txt, line 1: 'a dog': must be a term, a tab"),
    ):
        assert main(["translate", folder(), str(place), *options]) == 2
        assert said in capsys.readouterr().err


def test_scores_of_given_pairs(folder, run, tmp_path, capsys):
    (tmp_path / "s").write_text("the cat\na dog\n\n", encoding="utf-8")
    (tmp_path / "t").write_text("dogs sleep\n\nred\n", encoding="utf-8")
    files = ["--source", str(tmp_path / "s"), "--target", str(tmp_path / "t")]
    assert main(["score", folder(), *files]) == 0
    rows = [tuple(map(float, line.split("\t"))) for line in capsys.readouterr().out.split("\n")[:-1]]
    expected = run.score([("the cat", "dogs sleep"), ("a dog", ""), ("", "red")])
    assert [total for total, _ in rows] == pytest.approx([sum(logps) for logps in expected], abs=1e-3)
    assert [mean for _, mean in rows] == pytest.approx([sum(logps) / len(logps) for logps in expected], abs=1e-3)
    assert main(["score", folder(), *files, "--format", "jsonl"]) == 0
    plain = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    assert [row["line"] for row in plain] == [1, 2, 3]
    assert plain[0]["logps"] == pytest.approx(expected[0], abs=1e-5)
    assert [len(row["tokens"]) for row in plain] == [len(logps) for logps in expected]
    (tmp_path / "t").write_text("dogs sleep\n", encoding="utf-8")
    assert main(["score", folder(), *files]) == 2
