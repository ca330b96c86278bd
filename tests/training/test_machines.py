"""Several processes: as one, whether each holds all weights or a share of them, and one checkpoint for every mode."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from regard.runs import read_weights
from regard.tasks.start import train
from regard.training.checkpoint import CHECKPOINTS
from regard.training.journal import read_journal
from regard.training.snapshots import list_snapshots

SHAPE = {"d_model": 16, "heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0,
         "biases": False}  # fmt: skip
"""without biases: a key's has no gradient but rounding, which Adam makes as large as any other"""


def start(recipe, run, *options, processes=2):
    """Some processes as torchrun starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run.parent.mkdir(exist_ok=True)
    path = run.parent / f"{run.name}.toml"
    path.write_text(recipe.to_toml(), encoding="utf-8")
    environment = {
        **os.environ, "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "regard", "train", str(path), "--out", str(run), *options]
    return [
        subprocess.Popen(command, env={**environment, "RANK": str(rank)}, stderr=subprocess.PIPE)
        for rank in range(processes)
    ]


def end(processes):
    """Their exit codes, and what they said."""
    try:
        said = [process.communicate(timeout=120)[1].decode() for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], said


def train_in_two(recipe, run, *options):
    codes, said = end(start(recipe, run, *options))
    assert codes == [0, 0], said
    assert "finished" in said[0]
    assert said[1] == ""  # one of them talks
    assert read_journal(run)[-1]["event"] == "finished"
    return run


def numbers(folder, name, event="step"):
    return [row[name] for row in read_journal(folder) if row["event"] == event]


def assert_alike(found, expected):
    assert numbers(found, "loss") == pytest.approx(numbers(expected, "loss"), rel=1e-5)
    assert numbers(found, "gradient") == pytest.approx(numbers(expected, "gradient"), rel=1e-4)
    assert numbers(found, "tokens") == numbers(expected, "tokens")
    assert numbers(found, "loss", "validated") == pytest.approx(numbers(expected, "loss", "validated"), rel=1e-5)
    ours, theirs = (read_weights(run / "model.safetensors") for run in (found, expected))
    for name, weight in theirs.items():
        assert ours[name].numpy() == pytest.approx(weight.numpy(), abs=2e-4), name


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return tmp_path_factory.mktemp("alone") / "run"


@pytest.fixture
def one_process(alone, recipe):
    """What one process makes of it: a mean of weights, decay, three parts a batch, of which some are empty."""
    found = recipe(model=SHAPE, training={"ema": 0.9, "weight_decay": 0.01, "accumulate": 3})
    if not alone.exists():
        train(found, alone)
    return found, alone


@pytest.mark.slow
def test_two_processes_are_one(one_process, tmp_path):
    recipe, expected = one_process
    run = train_in_two(recipe, tmp_path / "run")
    assert read_journal(run)[0]["processes"] == 2
    assert_alike(run, expected)


@pytest.mark.slow
def test_two_processes_that_share_the_weights_are_one(one_process, tmp_path):
    recipe, expected = one_process
    run = train_in_two(recipe, tmp_path / "run", "--training.shard", "true")
    assert_alike(run, expected)
    assert len(list_snapshots(run)) == len(list_snapshots(expected)) == 3


@pytest.mark.slow
def test_batches_of_fewer_rows_than_processes_and_parts(recipe, tmp_path):
    """With shared weights all processes compute in step, also those that have nothing to compute."""
    found = recipe(model=SHAPE, training={"tokens_per_batch": 30, "accumulate": 4, "steps": 6, "valid_every": 6})
    train(found, tmp_path / "alone")
    run = train_in_two(found, tmp_path / "run", "--training.shard", "true")
    assert_alike(run, tmp_path / "alone")


@pytest.mark.slow
def test_a_checkpoint_serves_every_mode(one_process, tmp_path):
    """One process, then two that share the weights, then two that do not, then one again."""
    recipe, expected = one_process
    run = tmp_path / "run"
    modes = [(4, None), (7, "true"), (10, "false"), (12, None)]
    for steps, shard in modes:
        stated = ["--training.steps", str(steps)]
        if shard is None:
            codes, said = end(start(recipe, run, *stated, processes=1))
            assert codes == [0], said
        else:
            train_in_two(recipe, run, *stated, "--training.shard", shard)
    assert [row["processes"] for row in read_journal(run) if row["event"] in ("started", "resumed")] == [1, 2, 2, 1]
    assert numbers(run, "loss") == pytest.approx(numbers(expected, "loss"), rel=1e-5)
    assert numbers(run, "gradient") == pytest.approx(numbers(expected, "gradient"), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("shard", ["false", "true"])
def test_two_that_were_stopped_go_on_as_if_they_had_not_been(shard, recipe, tmp_path, outcome):
    """Dropout included: every process has random numbers of its own, and finds them again."""
    found = recipe(training={"steps": 8, "snapshots": 0})
    whole = train_in_two(found, tmp_path / "whole", "--training.shard", shard)
    run = tmp_path / "run"
    processes = start(found, run, "--training.shard", shard)
    until = time.monotonic() + 60
    while sum(event["event"] == "step" for event in read_journal(run)) < 2 and time.monotonic() < until:
        time.sleep(0.005)
    for process in processes:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)  # torchrun passes Ctrl-C on: each hears of it twice
    codes, said = end(processes)
    if codes == [130, 130]:  # else it was done before the signal came
        assert "stopped and saved" in said[0]
        assert any((run / CHECKPOINTS).iterdir())
        train_in_two(found, run, "--training.shard", shard)
    assert outcome(run) == outcome(whole)
