"""The loop through its public door: same numbers however a batch is divided, limits, bad numbers, wrong folders."""

import os
import socket
import subprocess
import sys

import pytest
import torch

from regard.errors import InputError
from regard.tasks.start import train
from regard.tasks.translate import TranslateJob
from regard.training.checkpoint import CHECKPOINTS, KEPT
from regard.training.journal import read_journal
from regard.training.loop import PATIENCE_WITH_NUMBERS


def numbers(folder, name):
    return [event[name] for event in read_journal(folder) if event["event"] == "step"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return tmp_path_factory.mktemp("alone") / "run"


@pytest.fixture
def one_process(alone, recipe):
    """Without dropout, in one part and one process."""
    if not alone.exists():
        train(recipe(**with_dropout_off(recipe)), alone)
    return alone


def with_dropout_off(recipe):
    plain = recipe().model
    sizes = {name: getattr(plain, name) for name in ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers")}
    return {"model": {**sizes, "dropout": 0.0}}


def test_accumulated_is_the_whole_batch(one_process, recipe, tmp_path):
    train(recipe(training={"accumulate": 3}, **with_dropout_off(recipe)), tmp_path)
    assert numbers(tmp_path, "loss") == pytest.approx(numbers(one_process, "loss"), rel=1e-5)
    assert numbers(tmp_path, "gradient") == pytest.approx(numbers(one_process, "gradient"), rel=1e-4)
    assert numbers(tmp_path, "tokens") == numbers(one_process, "tokens")


def test_two_processes_are_one(one_process, recipe, tmp_path):
    (tmp_path / "recipe.toml").write_text(recipe(**with_dropout_off(recipe)).to_toml(), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
    }  # fmt: skip
    command = [
        sys.executable, "-m", "regard", "train", str(tmp_path / "recipe.toml"), "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    processes = [
        subprocess.Popen(command, env={**environment, "RANK": str(rank)}, stderr=subprocess.PIPE) for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=120)[1].decode() for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], said
    assert read_journal(tmp_path / "run")[0]["processes"] == 2
    for name in ("loss", "gradient"):
        found, expected = numbers(tmp_path / "run", name), numbers(one_process, name)
        assert found == pytest.approx(expected, rel=1e-4 if name == "gradient" else 1e-5)
    scores = [[event["loss"] for event in read_journal(run) if event["event"] == "validated"]
              for run in (tmp_path / "run", one_process)]  # fmt: skip
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)


def test_few_checkpoints_stay(one_process):
    names = sorted(path.name for path in (one_process / CHECKPOINTS).iterdir())
    assert len(names) == KEPT
    assert all(name.startswith("step-00000012") for name in names)  # the last validation's, and the finished run's


class Spoilt:
    """The job's loss, not a number at some updates."""

    def __init__(self, monkeypatch, calls):
        kept, self.count = TranslateJob.loss, 0

        def loss(job, batch):
            total, plain = kept(job, batch)
            if not job.model.training:
                return total, plain
            self.count += 1
            return (total * float("nan"), plain) if self.count in calls else (total, plain)

        monkeypatch.setattr(TranslateJob, "loss", loss)


def test_an_update_that_is_no_number_is_left_out(recipe, tmp_path, monkeypatch):
    Spoilt(monkeypatch, {2, 5, 6})
    progress = train(recipe(), tmp_path)
    assert progress.finished
    assert progress.skipped == 0
    events = [event for event in read_journal(tmp_path) if event["event"] in ("step", "skipped")]
    assert [event["step"] for event in events if event["event"] == "skipped"] == [2, 5, 6]
    assert [event["gradient"] for event in events if event["event"] == "skipped"] == ["nan"] * 3
    assert [event["step"] for event in events] == list(range(1, 13))


def test_too_many_of_them_stop_the_run_with_advice(recipe, tmp_path, monkeypatch):
    Spoilt(monkeypatch, range(3, 100))
    said = rf"for {PATIENCE_WITH_NUMBERS} updates in a row \(up to update 12\); take a lower training.learning_rate"
    with pytest.raises(ArithmeticError, match=said):
        train(recipe(training={"steps": 50}), tmp_path)
    assert read_journal(tmp_path)[-1]["event"] == "stopped"
    assert torch.isfinite(next(iter(weights_of(tmp_path).values()))).all()


def weights_of(folder):
    from regard.runs import read_weights

    return read_weights(folder / "model.safetensors")


def test_another_recipe_in_the_same_folder_is_refused(recipe, tmp_path):
    train(recipe(training={"steps": 1}), tmp_path)
    kept = (tmp_path / "recipe.toml").read_bytes()
    with pytest.raises(InputError, match=r"holds a run of another recipe \(it differs in learning_rate, seed\)"):
        train(recipe(training={"seed": 2, "learning_rate": 0.5}), tmp_path)
    assert (tmp_path / "recipe.toml").read_bytes() == kept


def test_patience_ends_a_run_that_gets_no_better(recipe, tmp_path, monkeypatch):
    scores = iter([1.0, 3.0, 2.0, 3.0, 9.0])
    monkeypatch.setattr(TranslateJob, "validate", lambda job: {"bleu": next(scores)})
    progress = train(recipe(training={"steps": 100, "valid_every": 2, "patience": 2}), tmp_path)
    assert (progress.step, progress.best, progress.best_step, progress.waited) == (8, 3.0, 4, 2)
    assert progress.finished
    assert next(scores) == 9.0


def test_without_validation_text_the_loss_decides(recipe, tmp_path):
    found = recipe(data={"valid": []}, training={"steps": 4, "valid_every": 2})
    progress = train(found, tmp_path)
    losses = [event["loss"] for event in read_journal(tmp_path) if event["event"] == "validated"]
    assert len(losses) == 2
    assert progress.best == min(losses)


def test_epochs_are_a_limit_too(recipe, tmp_path):
    progress = train(recipe(training={"steps": 10_000, "epochs": 0.5, "valid_every": 1000}), tmp_path)
    assert progress.finished
    assert progress.epoch == 0
    assert 1 < progress.step < 1000


def test_no_time_at_all_is_a_run_of_no_update(recipe, tmp_path):
    """Time counts from the command's start, and reading the data may take all of it. There once was no model then."""
    progress = train(recipe(training={"steps": None, "minutes": 1e-6, "valid_every": None}), tmp_path)
    assert (progress.step, progress.finished) == (0, True)
    assert weights_of(tmp_path)
