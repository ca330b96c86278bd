"""`regard cost` and its page of the docs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli import main

ROOT = Path(__file__).parents[2]


def said(capsys, *words):
    assert main(["cost", *words]) == 0
    return capsys.readouterr().out


def refused(capsys, *words):
    assert main(["cost", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def recipe(folder, text):
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_docs_show_what_the_command_prints(capsys):
    """Each block of docs/cost.md that begins with a command holds that command's whole output."""
    page = (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n\$ regard cost (.*)\n((?:.*\n)*?)```", page)
    assert len(blocks) == 4
    for words, shown in blocks:
        assert said(capsys, *words.split()) == shown, f"docs/cost.md: regard cost {words}: run tools/tables.py"


@pytest.mark.parametrize(
    "words",
    [["--table3"], ["--problem-size"], ["big", "--batch", "1", "128", "--length", "7", "512"], ["gpt3"]],
)  # fmt: skip
def test_pages_fit_100_columns(words, capsys):
    assert max(map(len, said(capsys, *words).splitlines())) <= 100


def test_table_3_has_a_line_for_every_row(capsys):
    out = said(capsys, "--table3")
    counts = re.findall(r"^(?:base|big|[ABCE]) .* (\d+)[ *] +[\d.]+ +[+-][\d.]+ %$", out, re.MULTILINE)
    assert sorted(map(int, counts)) == sorted([65, 65, 65, 65, 65, 58, 60, 36, 50, 80, 28, 168, 53, 90, 65, 213])
    assert "3.3e18" in out
    assert "2.3e19" in out


def test_json_holds_one_cost_for_each_batch_and_length(capsys):
    out = json.loads(said(capsys, "tiny", "--batch", "1", "2", "--length", "5", "9", "--vocabulary", "30", "--json"))
    assert [(one["work"]["batch"], one["work"]["length"]) for one in out["costs"]] == [(1, 5), (1, 9), (2, 5), (2, 9)]
    assert out["model"]["vocabulary"] == 30
    for one in out["costs"]:
        assert one["training"] == sum(one["forward"].values()) + one["backward"]
        assert one["bytes"]["activations"] > 0


def test_options_of_the_model_change_it(capsys):
    out = json.loads(said(capsys, "base", "--model.d_ff", "1024", "--length", "5", "--batch", "1", "--json"))
    assert sum(out["costs"][0]["parameters"].values()) == 50_487_296


def test_a_recipe_is_counted_with_the_pieces_that_its_tokeniser_will_have(capsys, tmp_path):
    path = recipe(
        tmp_path, 'task = "translate"\n[data]\ntrain = ["a.tsv"]\n[tokens]\nsize = 300\n[model]\npreset = "tiny"\n'
    )
    out = said(capsys, path, "--length", "5")
    assert "encoder-decoder, 300 pieces" in out
    assert "embeddings                                               38,400" in out
    assert "encoder-decoder, 77 pieces" in said(capsys, path, "--length", "5", "--vocabulary", "77")


def test_check_counts_twice_and_finds_the_same(capsys):
    out = said(capsys, "tiny", "--check", "--batch", "2", "--length", "9", "200", "--vocabulary", "30")
    assert "DIFFERENT" not in out
    assert out.count("same") == 2 * 8
    assert out.count("scores computed again") == 1


def test_check_leaves_with_1_where_they_differ(capsys, monkeypatch):
    monkeypatch.setattr("regard.evaluation.cost.Cost.backward", 5)
    assert main(["cost", "tiny", "--check", "--length", "9", "--batch", "1"]) == 1
    assert "DIFFERENT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([], "say which model"),
        (["bsae"], "'bsae' is neither a preset nor a recipe that is there: did you mean 'base'?"),
        (["base", "--model.preset", "big"], "preset base and --model.preset big: say one"),
        (["base", "--length", "2000"], "texts of 2000 tokens: model.max_length = 1024"),
        (["base", "--length", "0"], "length = 0: must be 1 or more"),
        (["gpt2", "--target-length", "5"], "a model that is decoder-only has no targets"),
        (["--table3", "base"], "--table3 is of the paper's own models"),
        (["--table3", "--batch", "5"], "--table3 is of the paper's own models"),
        (["base", "--problem-size"], "--problem-size of base: it is encoder-decoder"),
        (["--problem-size", "--length", "5"], "--problem-size is of one whole window"),
        (["--problem-size", "--check"], "not allowed with"),
    ],
)
def test_wrong_words_are_one_line_and_2(words, answer, capsys):
    assert answer in refused(capsys, *words)


def test_a_recipe_of_characters_needs_its_vocabulary_stated(capsys, tmp_path):
    path = recipe(tmp_path, 'task = "generate"\n[data]\ntrain = ["a.txt"]\n[tokens]\nkind = "char"\n')
    assert "a vocabulary of chars is known when it is made: state --vocabulary" in refused(capsys, path)


@pytest.mark.parametrize("words", [["--table3"], ["--problem-size"]])
def test_the_closed_forms_need_no_torch(words):
    code = f"import sys; from regard.cli import main; main(['cost', *{words}]); assert 'torch' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT / "src")}
    )
    assert (done.returncode, done.stderr) == (0, "")
