"""`regard generate` as it is typed."""

import io
import json
import sys

import pytest
import torch

from regard.cli import main
from regard.config import recipe_from
from regard.decoding.kernel import kernel
from regard.models import build_model
from regard.runs import save_run
from regard.tasks.run import load
from regard.text import train_tokenizer


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A new model, which writes anything; of bytes, or of the text's characters."""
    place = tmp_path_factory.mktemp("runs")

    def make(name, *, kind="byte", **more):
        torch.manual_seed(1)
        tokenizer = train_tokenizer(["ab c"], recipe_from({"task": "generate", "tokens": {"kind": kind}}).tokens)
        model = {"d_model": 16, "heads": 2, "d_ff": 16, "decoder_layers": 1, "max_length": 40, "positions": "rotary",
                 "vocabulary": tokenizer.size, **more}  # fmt: skip
        recipe = recipe_from({"task": "generate", "tokens": {"kind": kind}, "model": model})
        save_run(place / name, recipe, tokenizer, build_model(recipe.model))
        return str(place / name)

    return make


@pytest.fixture(scope="module")
def run(saved):
    return saved("run")


def said(capsys, *words):
    assert main(["generate", *words]) == 0
    return capsys.readouterr().out


def refused(capsys, *words):
    assert main(["generate", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_it_prints_prompt_and_text_the_same_for_the_same_seed(run, capsys):
    right = load(run).generate("ab ", length=20)[0].text
    assert said(capsys, run, "--prompt", "ab ", "--length", "20") == f"ab {right}\n"
    assert said(capsys, run, "--prompt", "ab ", "--length", "20", "--only-new") == f"{right}\n"
    assert said(capsys, run, "--prompt", "ab ", "--length", "20", "--seed", "2") != f"ab {right}\n"


def test_several_texts_come_in_order_and_programs_get_a_line_each(run, capsys, tmp_path):
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"text": "two"}\n{"text": "three\\nlines"}\n')
    words = (run, "--prompt", "one", "--prompt-file", str(file), "--samples", "2", "--length", "9")
    found = [json.loads(line) for line in said(capsys, *words, "--json").splitlines()]
    assert [one["prompt"] for one in found] == ["one"] * 2 + ["two"] * 2 + ["three\nlines"] * 2
    assert [one["sample"] for one in found] == [0, 1] * 3
    assert all(len(one["tokens"]) == len(one["logp"]) for one in found)
    assert said(capsys, *words) == "---\n".join(f"{one['prompt']}{one['text']}\n" for one in found)
    pieces = said(capsys, run, "--prompt", "x", "--length", "3", "--logprobs").splitlines()[-3:]
    assert all(float(line.split()[0]) < 0 for line in pieces)


def test_the_prompt_comes_from_standard_input_or_is_asked_for(run, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("ab \n"))
    right = said(capsys, run, "--length", "20")
    assert right == said(capsys, run, "--prompt", "ab ", "--length", "20")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("ab \nab \n"))
    asked = said(capsys, run, "--length", "20")
    assert asked == f"a prompt a line; Ctrl-D ends\n> {right}> {right}> \n"


def test_what_cannot_be_is_refused_and_what_is_not_read_is_said(run, capsys, tmp_path):
    assert "top_p = 0.0: must be above 0" in refused(capsys, run, "--prompt", "x", "--top-p", "0")
    assert "length = 0" in refused(capsys, run, "--prompt", "x", "--length", "0")
    assert "a stop string is empty" in refused(capsys, run, "--prompt", "x", "--stop", "")
    (tmp_path / "empty.txt").write_text("")
    assert "is empty" in refused(capsys, run, "--prompt-file", str(tmp_path / "empty.txt"))
    assert "no such run folder" in refused(capsys, str(tmp_path / "none"), "--prompt", "x")
    assert main(["generate", run, "--prompt", "x" * 50, "--length", "2"]) == 0
    told = "prompt 1: the first 11 of its pieces are not read: the model reads 40 at once\n"
    assert capsys.readouterr().err.startswith(told)


def test_a_draft_changes_nothing_that_is_written(run, saved, capsys):
    draft = saved("draft", decoder_layers=2, max_length=20)
    for options in (["--temperature", "0"], ["--samples", "2", "--top-k", "9", "--stop", "e"]):
        words = (run, "--prompt", "ab ", "--length", "60", *options)
        plain = said(capsys, *words, "--precision", "float32")
        assert said(capsys, *words, "--draft", draft) == plain
        assert said(capsys, *words, "--draft", draft, "--ahead", "1") == plain
    other = saved("other", kind="char")
    assert "its tokeniser is not that of" in refused(capsys, run, "--prompt", "x", "--draft", other)
    assert "ahead = 0: must be 1 or more" in refused(capsys, run, "--prompt", "x", "--draft", draft, "--ahead", "0")
    assert "--precision bf16: with --draft it is float32" in refused(
        capsys, run, "--prompt", "x", "--draft", draft, "--precision", "bf16"
    )
    assert "--ahead is of a draft" in refused(capsys, run, "--prompt", "x", "--ahead", "2")


def test_the_precision_is_the_one_asked_for_and_is_said(run, capsys):
    for asked in ("float32", "bf16", "int8"):
        text = load(run).writer_in(asked).write(["ab "], length=20)[0].text
        assert said(capsys, run, "--prompt", "ab ", "--length", "20", "--precision", asked) == f"ab {text}\n"
        assert main(["generate", run, "--prompt", "ab ", "--length", "2", "--precision", asked]) == 0
        told = capsys.readouterr().err
        assert told == (
            f"regard: precision: {asked}, as asked\n"
            if kernel()
            else "regard: precision: the model's own steps, for there is no compiled kernel here\n"
        )
