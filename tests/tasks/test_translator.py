"""Translating with a run: order kept, empty texts, tags, lower case; and `regard translate` line for line."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

import regard
from regard import DecodingConfig
from regard.cli import main
from regard.config import recipe_from
from regard.decoding import Forced
from regard.errors import InputError
from regard.models import build_model
from regard.runs import save_run
from regard.tasks import translator
from regard.tasks.translator import Asked
from regard.text import train_tokenizer

TEXTS = ["The cat sleeps.", "", "a", "Köpek uyuyor mu?\u2028Evet.", "the dog and the dog and the dog", "  ", "a", "B b"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of random weights with two directions."""
    place = tmp_path_factory.mktemp("runs")

    def make(name="run", **data):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            values = {"d_model": 16, "heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1, "max_length": 60}
            recipe = recipe_from({"task": "translate", "data": data, "tokens": {"kind": "char"}, "model": values})
            tokenizer = train_tokenizer(TEXTS, recipe.tokens, ["<2fr>", "<2tr>"])
            sized = recipe_from(
                {"task": "translate", "data": data, "tokens": {"kind": "char"},
                 "model": {**values, "vocabulary": tokenizer.size}}
            )  # fmt: skip
            model = build_model(sized.model)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(torch.randn_like(parameter), alpha=0.3)
            save_run(place / name, sized, tokenizer, model)
        return str(place / name)

    return make


@pytest.fixture(scope="module")
def run(folder):
    return regard.load(folder())


@pytest.mark.parametrize("beam", [1, 3])
def test_order_is_kept_in_batches_of_any_size(beam, run):
    alone = [run.translate(text, beam=beam).text for text in TEXTS]
    assert len(set(alone)) > 2
    assert [answer.text for answer in run.translate(TEXTS, beam=beam)] == alone
    assert [answer.text for answer in run.translate(TEXTS[::-1], beam=beam)] == alone[::-1]
    small = replace(run.recipe.decoding, beam=beam, batch_rows=2 * beam)
    assert [answer.text for answer in run.translate(tuple(TEXTS), decoding=small)] == alone


def test_of_nothing_nothing_is_made(run, monkeypatch):
    """An empty text was once given to the model, which made a sentence of it."""
    monkeypatch.setattr(translator, "search", lambda *given, **more: [])
    for text in ("", " ", "\t\n"):
        answer = run.translate(text)
        assert (answer.text, answer.tokens, answer.ended, answer.score) == ("", (), True, 0.0)
    assert [answer.text for answer in run.nbest("", beam=4, tag="<2fr>")] == [""]
    assert run.translate([]) == []


def test_tags_and_their_lack(run):
    answers = {tag: run.nbest("the dog", beam=3, tag=tag)[0] for tag in (None, "<2fr>", "<2tr>")}
    assert len({answer.score for answer in answers.values()}) == 3
    with pytest.raises(InputError, match="<2de>"):
        run.translate("the dog", tag="<2de>")


def test_an_unknown_piece_is_never_replaced_by_the_tag(run):
    """Where a head looked at the tag most, its name was once put into the text."""
    source, unknown = run.translator.source_ids("the dog", "<2tr>"), run.tokenizer.specials.unknown
    weights = torch.zeros(1, len(source))
    weights[0, 0], weights[0, 6], weights[0, -1] = 0.6, 0.1, 0.3
    text = run.tokenizer.decode([unknown])
    assert run.translator._known_words(text, [unknown], source, Forced([0.0], weights)).strip() == "dog"


def test_the_best_of_several_comes_first(run):
    several = run.nbest("the dog", beam=4)
    assert len(several) == 4
    assert [answer.score for answer in several] == sorted((answer.score for answer in several), reverse=True)
    assert several[0] == run.translate("the dog", beam=4)


def test_lower_case_is_what_the_recipe_reads(folder):
    small = regard.load(folder("lower", lowercase=True))
    assert small.translate("THE Dog") == small.translate("the dog")
    asked = [Asked(text="the dog", prefix=prefix, phrases=(phrase,)) for prefix, phrase in (("a", "ca"), ("A", "Ca"))]
    (first,), (second,) = small.translator.translate(asked, DecodingConfig(beam=2))
    assert first == second
    assert "ca" in first.text
    usual = regard.load(folder())
    assert usual.translate("B b").score != usual.translate("b b").score


def translated(folder, content, *options):
    command = [sys.executable, "-m", "regard", "translate", folder, "--beam", "1", *options]
    return subprocess.run(command, input=content, capture_output=True)


def test_lines_in_are_lines_out(folder, run):
    """Standard input was once cut at lone carriage returns too, which shifted all lines behind."""
    texts = ["the cat", "", "a\rb", "Köpek\u2028uyuyor\u0085mu?", *[f"line {n}" for n in range(70)], "", "last, no end"]
    answer = translated(folder(), "\n".join(texts).encode())
    assert answer.returncode == 0
    lines = answer.stdout.decode().split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(texts)
    assert [number for number, line in enumerate(lines) if not line] == [1, len(texts) - 2]
    assert lines == [made.text.replace("\n", " ") for made in run.translate(texts, beam=1)]


def test_standard_input_that_is_not_utf8_is_named_by_its_line(folder):
    """It once came as a traceback."""
    answer = translated(folder(), b"the cat\n\nd\xe9j\xe0 vu\nthe dog\n")
    assert answer.returncode == 2
    said = "regard: standard input, line 3: not UTF-8 (byte 0xE9 at place 2); convert it (such as: iconv -f LATIN1"
    assert said in answer.stderr.decode().splitlines()[-1]


def test_files_and_their_faults(folder, tmp_path, capsys, run):
    place, out = tmp_path / "in.txt", tmp_path / "out.txt"
    place.write_text("the cat\r\n\r\nthe dog\r\n", encoding="utf-8")
    assert main(["translate", folder(), str(place), "-o", str(out)]) == 0
    expected = [made.text.replace("\n", " ") for made in run.translate(["the cat", "", "the dog"])]
    assert out.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in expected)
    place.write_bytes(b"fine\n\xff\n")
    assert main(["translate", folder(), str(place)]) == 2
    assert "in.txt, line 2: not UTF-8" in capsys.readouterr().err
    assert main(["translate", folder(), str(tmp_path / "nothing")]) == 2
    assert main(["translate", folder(), str(place), "--beam", "0"]) == 2
    assert "--beam = 0: must be 1 or more" in capsys.readouterr().err
