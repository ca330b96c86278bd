"""`regard train` as a command: what it says on the way, and what it does with the test text at the end."""

import re

import pytest

from regard.cli import main
from regard.config import recipe_from
from regard.demo.grammar import corpus
from regard.training.journal import read_journal


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """A recipe of a tiny model on some sentences, all three parts of which are stated."""
    folder = tmp_path_factory.mktemp("recipe")
    whole, data = corpus(size=660, valid=36, test=36), {}
    for part in ("train", "valid", "test"):
        pairs = [pair for pair in getattr(whole, part) if pair.direction == "fr-en"]
        data[part] = [str(folder / f"{part}.tsv")]
        rows = "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs)
        (folder / f"{part}.tsv").write_text(rows, encoding="utf-8")
    shape = {"d_model": 16, "heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
    values = {"task": "translate", "data": data, "tokens": {"size": 300}, "model": shape,
              "training": {"steps": 4, "valid_every": 2, "tokens_per_batch": 400, "precision": "float32"},
              "decoding": {"beam": 2}}  # fmt: skip
    path = folder / "recipe.toml"
    path.write_text(recipe_from(values).to_toml(), encoding="utf-8")
    return path


def test_what_it_says_and_what_it_scores(recipe, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", str(recipe), "--out", str(run)]) == 0
    told = capsys.readouterr().err
    assert "precision: float32, as the recipe says" in told
    assert re.search(r"batches: \d+ an epoch; padding is \d+\.\d% of the sources, \d+\.\d% of the targets", told)
    assert re.search(r"0\.\d min  update      4  loss \d\.\d+  bleu .*  chrf .*  [\d,]+ tokens/s", told)
    assert re.search(r"test\.tsv: BLEU \d+\.\d\d  chrF2\+\+ \d+\.\d\d  TER \d+\.\d\d  beam 2", told)
    (tested,) = [event for event in read_journal(run) if event["event"] == "tested"]
    report = (run / "report.html").read_text(encoding="utf-8")
    for score in tested["scores"]:
        assert f"{score['value']:.2f}</td>" in report
        assert score["signature"] in report
    assert "Padding of batches" in report
    assert main(["evaluate", str(run)]) == 0
    said = capsys.readouterr().out
    assert all(f"{score['value']:8.2f}  {score['signature']}" in said for score in tested["scores"])
    assert main(["train", str(recipe), "--out", str(run)]) == 0
    assert "already finished after 4 updates" in capsys.readouterr().err
    assert [event["event"] for event in read_journal(run)].count("tested") == 1


def test_a_test_text_that_cannot_be_scored_does_not_undo_the_training(recipe, tmp_path, capsys):
    broken = tmp_path / "broken.tsv"
    broken.write_text("one column\n", encoding="utf-8")
    code = main(["train", str(recipe), "--out", str(tmp_path / "run"), "--data.test", str(broken)])
    told = capsys.readouterr().err
    assert code == 0
    assert "the test text could not be scored" in told
    assert "line 1: 1 column, so no column 2 for the target" in told


def test_another_recipe_is_refused_in_a_line(recipe, tmp_path, capsys):
    run = str(tmp_path / "run")
    assert main(["train", str(recipe), "--out", run]) == 0
    capsys.readouterr()
    assert main(["train", str(recipe), "--out", run, "--model.dropout", "0.3", "--training.seed", "9"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds a run of another recipe (it differs in dropout, seed); take another --out" in line


def test_a_folder_that_cannot_be_is_refused_in_a_line(recipe, tmp_path, capsys):
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        assert main(["train", str(recipe), "--out", str(out)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"regard: {out}: no folder can be made there: ")
