"""What else a run folder holds is looked after when a run goes on: weights kept, tokeniser, prepared text."""

import os
import signal
from pathlib import Path

import pytest
import torch

from regard.config import TokensConfig
from regard.runs import open_run, read_notes, read_weights, write_weights
from regard.tasks.start import train
from regard.tasks.translate import TranslateJob
from regard.text import train_tokenizer
from regard.training.kept import restore_kept
from regard.training.snapshots import SNAPSHOTS

WEIGHTS = "model.safetensors"


def stopped(recipe, run, teller):
    """A run that was asked to stop after update 6, with the weights of update 4."""

    def stop(now):
        if now == 6:
            os.kill(os.getpid(), signal.SIGTERM)

    assert not train(recipe, run, watcher=teller(stop)).finished
    return run


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:1000])


def later(path):
    """As a kill between a validation's weights and its checkpoint leaves them."""
    weights = read_weights(path)
    write_weights(path, {name: torch.zeros_like(weight) for name, weight in weights.items()}, notes={"step": "8"})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return tmp_path_factory.mktemp("whole") / "run"


@pytest.mark.parametrize("damage", [flip, cut, later, Path.unlink])
def test_weights_come_back_from_a_snapshot(damage, whole, recipe, tmp_path, teller, outcome):
    """A run once went on without them, and was of no use at its end if no later validation was better."""
    if not whole.exists():
        train(recipe(), whole)
    run = stopped(recipe(), tmp_path, teller)
    kept = {name: weight.clone() for name, weight in read_weights(run / WEIGHTS).items()}  # they are mapped
    damage(run / WEIGHTS)
    told = []
    assert restore_kept(run, 4, told.append)
    assert told[0].endswith(f"; restored from {run / SNAPSHOTS / 'step-00000004.safetensors'}")
    assert all(torch.equal(kept[name], weight) for name, weight in read_weights(run / WEIGHTS).items())
    damage(run / WEIGHTS)
    watcher = teller()
    assert train(recipe(), run, watcher=watcher).finished
    assert told[0] in watcher.lines
    assert outcome(run) == outcome(whole)


def test_without_a_snapshot_the_next_ones_are_kept(recipe, tmp_path, teller):
    short = recipe(training={"steps": 8, "snapshots": 0})
    run = stopped(short, tmp_path, teller)
    (run / WEIGHTS).unlink()
    told = teller()
    assert train(short, run, watcher=told).finished
    said = f"{run / WEIGHTS}: no such file; the next validation's weights will be kept instead"
    assert said in told.lines
    assert read_notes(run / WEIGHTS)["step"] == "8"
    flip(run / WEIGHTS)
    assert train(short, run).finished
    open_run(run)
    again = teller()
    train(short, run, watcher=again)
    assert again.lines[-1] == "already finished after 8 updates"


def test_a_score_that_is_no_number_is_beaten_by_any_that_is(recipe, tmp_path, monkeypatch):
    """One at the first validation once was the best for ever."""
    scores = iter([float("nan"), float("nan"), 3.0, float("nan"), 2.0])
    monkeypatch.setattr(TranslateJob, "validate", lambda job: {"loss": 1.0, "bleu": next(scores), "chrf": 1.0})
    progress = train(recipe(training={"steps": 5, "valid_every": 1}), tmp_path)
    assert (progress.best, progress.best_step) == (3.0, 3)
    assert read_notes(tmp_path / WEIGHTS)["step"] == "3"


def test_a_tokeniser_of_a_start_that_came_to_nothing_is_learned_anew(recipe, text, tmp_path):
    """Stopped while its text was prepared, a run had no recipe yet, and another one took its tokeniser over."""
    lines = Path(text["train"][0]).read_text(encoding="utf-8").splitlines()
    train_tokenizer(lines, TokensConfig(kind="char", size=300)).save(tmp_path / "left")
    train(recipe(training={"steps": 1}), tmp_path / "left")
    assert [path.name for path in (tmp_path / "left").glob("tokens.*")] == ["tokens.model"]


def test_a_tokeniser_that_somebody_put_there_is_used(recipe, text, tmp_path):
    lines = Path(text["train"][0]).read_text(encoding="utf-8").splitlines()
    given = train_tokenizer(lines, TokensConfig(size=290))
    given.save(tmp_path)
    (tmp_path / ".tokens.model.sha256").unlink()
    train(recipe(training={"steps": 1}), tmp_path)
    assert open_run(tmp_path).tokenizer.size == 290


def test_other_text_is_told_of(recipe, tmp_path, text, teller):
    files = {}
    for part, paths in text.items():
        files[part] = [str(tmp_path / Path(path).name) for path in paths]
        for path, copy in zip(paths, files[part], strict=True):
            Path(copy).write_bytes(Path(path).read_bytes())
    recipe = recipe(data=files)
    run = stopped(recipe, tmp_path / "run", teller)
    told = teller()
    train(recipe, run, watcher=told)
    assert not any("anew" in line for line in told.lines)
    for copy in files["train"]:
        Path(copy).write_text(Path(copy).read_text(encoding="utf-8") + "Yes.\n", encoding="utf-8")
    train(recipe, run, watcher=told)
    assert any(line.startswith("data: prepared anew: the text is not what it was") for line in told.lines)
