"""`regard classify`, `embed` and `evaluate` of a classifier, and its report: what they print and write."""

import json
import re

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.config import recipe_from
from regard.explorer.report import write_report
from regard.tasks.start import train

ROWS = [("good film", "good"), ("a good one", "good"), ("bad film", "bad"), ("very bad", "bad"), ("so so", "fair")]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of a very small model."""
    folder = tmp_path_factory.mktemp("classify")
    (folder / "t.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in ROWS), encoding="utf-8")
    values = {
        "task": "classify", "data": {"train": [str(folder / "t.tsv")], "valid": [str(folder / "t.tsv")]},
        "tokens": {"kind": "char"},
        "model": {"d_model": 16, "heads": 2, "d_ff": 16, "encoder_layers": 1, "max_length": 30, "dropout": 0.0},
        "training": {"steps": 60, "valid_every": 20, "warmup": 2, "learning_rate": 0.01, "precision": "float32"},
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        train(recipe_from(values), folder / "run")
    return str(folder / "run")


def said(capsys, *words):
    assert main([*map(str, words)]) == 0
    return capsys.readouterr()


def refused(capsys, *words):
    assert main([*map(str, words)]) == 2
    captured = capsys.readouterr().err
    assert captured.startswith("regard: ")
    assert captured.count("\n") == 1
    return captured


def lines_file(tmp_path, *lines):
    path = tmp_path / "lines.txt"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_a_line_for_a_line(run, capsys, tmp_path):
    file = lines_file(tmp_path, "good film", "", "very bad", "x" * 50)
    told = said(capsys, "classify", run, file)
    rows = told.out.split("\n")
    assert re.fullmatch(r"good\t[01]\.\d{4}", rows[0])
    assert rows[1] == ""
    assert rows[2].startswith("bad\t")
    assert len(rows) == 5
    assert told.err == (
        "regard: empty lines, which have no label: 1\nregard: texts longer than 28 pieces, cut off there: 1\n"
    )
    three = said(capsys, "classify", run, file, "--top", "3").out.split("\n")[0].split("\t")
    assert set(three[::2]) == {"good", "bad", "fair"}
    assert sum(map(float, three[1::2])) == pytest.approx(1, abs=1e-3)
    out = tmp_path / "out.jsonl"
    said(capsys, "classify", run, file, "--format", "jsonl", "-o", out)
    plain = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["labels"] for row in plain[:3]] == [["good"], [], ["bad"]]
    assert list(plain[0]["probabilities"].values()) == sorted(plain[0]["probabilities"].values(), reverse=True)
    assert plain[1] == {"text": "", "labels": [], "probabilities": {}}
    assert "--top = 0" in refused(capsys, "classify", run, file, "--top", "0")


def test_vectors(run, capsys, tmp_path):
    file = lines_file(tmp_path, "good film", "", "very bad")
    told = said(capsys, "embed", run, file)
    rows = [json.loads(line) for line in told.out.splitlines()]
    right = regard.load(run).embed(["good film", "", "very bad"])
    assert np.allclose([row["vector"] for row in rows], right, atol=1e-6)
    assert [row["text"] for row in rows] == ["good film", "", "very bad"]
    assert told.err == "regard: empty lines, which have vectors of zeros: 1\n"
    out = tmp_path / "v.npy"
    said(capsys, "embed", run, file, "--format", "npy", "-o", out, "--pooling", "first", "--raw")
    array = np.load(out, allow_pickle=False)
    assert array.dtype == np.float32
    loaded = regard.load(run)
    ids = loaded.tokenizer.encode("very bad")
    specials = loaded.tokenizer.specials
    states = loaded.model(torch.tensor([[specials.begin, *ids, specials.end]]), torch.tensor([len(ids) + 2]))
    assert np.allclose(array[2], states[0, 0].detach(), atol=1e-5)
    assert not array[1].any()
    said(capsys, "embed", run, lines_file(tmp_path), "--format", "npy", "-o", out)
    assert np.load(out).shape == (0, 16)
    assert "say -o FILE" in refused(capsys, "embed", run, file, "--format", "npy")


def test_evaluate(run, capsys, tmp_path):
    told = said(capsys, "evaluate", run, "--against", run, "--probe", run).out
    assert "5 texts" in told
    assert f"linear probe on {run}" in told
    assert "p = 1.0000" in told
    assert "columns: what was told" in told
    test = tmp_path / "test.tsv"
    test.write_text("good film\tgood\nsome\tunseen\n\tbad\n", encoding="utf-8")
    each = tmp_path / "each.jsonl"
    told = said(capsys, "evaluate", run, "--test", test, "--per-sentence", each).out
    assert "left out: 1 empty text\n" in told
    assert "labels that were not in the training text, counted as wrong: unseen 1\n" in told
    assert [json.loads(line)["right"] for line in each.read_text(encoding="utf-8").splitlines()] == [
        ["good"], ["unseen"]
    ]  # fmt: skip
    plain = json.loads(said(capsys, "evaluate", run, "--test", test, "--json").out)
    assert (plain["texts"], plain["empty"], plain["strange_labels"]) == (2, 1, {"unseen": 1})
    assert plain["scores"]["accuracy"] == 0.5
    said(capsys, "evaluate", run, "--per-sentence", tmp_path / "each.tsv")
    rows = (tmp_path / "each.tsv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "text\tright\tbest\tprobability"
    assert len(rows) == 6
    assert "--beam: is for translations" in refused(capsys, "evaluate", run, "--beam", "3")
    empty = tmp_path / "empty.tsv"
    empty.write_text(" \tgood\n", encoding="utf-8")
    assert "no texts to score" in refused(capsys, "evaluate", run, "--test", empty)


def test_the_report_tells_labels_and_calibration(run):
    text = write_report(regard.load(run).folder).read_text(encoding="utf-8")
    for part in ("Confusion: rows are right", "Reliability", "expected calibration error", "validation accuracy",
                 "Training texts", "Loss a text", "confidence 0."):  # fmt: skip
        assert part in text, part
    assert "target" not in re.sub(r"<code>.*?</code>", "", text, flags=re.S)


def test_verify_covers_it(run, capsys):
    told = said(capsys, "verify", run, "--json").out
    held = {result["name"]: result["held"] for result in json.loads(told)["results"]}
    assert all(held.values())
    assert {"padded = unpadded", "batch of one = batch of many", "saved = loaded"} <= set(held)


def test_other_verbs_say_why_not(run, capsys, tmp_path):
    assert "its task is classify" in refused(capsys, "translate", run, lines_file(tmp_path, "x"))
