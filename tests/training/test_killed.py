"""SIGKILL at moments drawn at random: a run that is started again and again comes to the end that it would have had."""

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.training.checkpoint import CHECKPOINTS, KEPT

KILLS = 20


class Nursery:
    """The process that children are forked from, and this test's recipe for them."""

    def __init__(self, recipe, folder, said):
        self.recipe, self.said = folder / "recipe.toml", said
        self.recipe.write_text(recipe.to_toml(), encoding="utf-8")
        command = [sys.executable, str(Path(__file__).parent / "nursery.py")]
        with said.open("w") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n", said.read_text()

    def train(self, run, *, kill_after=None, kill_at=None):
        """`regard train` with a checkpoint after each update; answers with the exit status and its file operations."""
        words = ["train", str(self.recipe), "--out", str(run), "--training.checkpoint_minutes", "1e-9"]
        asked = {"words": words, "within": str(run), "kill_after": kill_after, "kill_at": kill_at}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        told = json.loads(self.process.stdout.readline())
        assert told["status"] in (0, -signal.SIGKILL), self.said.read_text()
        return told["status"], told["operations"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("killed")


@pytest.fixture(scope="module")
def begun():
    """What both tests share: the nursery, and what comes of its recipe when nothing happens."""
    made = {}
    yield made
    if "nursery" in made:
        made["nursery"].process.kill()
        made["nursery"].process.communicate()


@pytest.fixture
def nursery(begun, recipe, place):
    if not begun:
        short = {"ema": 0.9, "accumulate": 2, "weight_decay": 0.01, "steps": 6, "valid_every": 2}
        begun["nursery"] = Nursery(recipe(training=short), place, place / "said.txt")
    return begun["nursery"]


@pytest.fixture
def uninterrupted(begun, nursery, place, outcome):
    """The outcome, how long it takes, and how many file operations it has."""
    if "uninterrupted" not in begun:
        began = time.monotonic()
        status, operations = nursery.train(place / "whole")
        assert status == 0
        begun["uninterrupted"] = outcome(place / "whole"), time.monotonic() - began, operations
    return begun["uninterrupted"]


@pytest.mark.parametrize("by", ["kill_at", "kill_after"])
def test_killed_at_many_moments(by, nursery, uninterrupted, tmp_path, outcome):
    """Killed, started again, killed again: each run that comes to its end is the uninterrupted one."""
    expected, seconds, operations = uninterrupted
    draw = random.Random(f"{by} 1")
    kills = 0
    for number in itertools.count():
        if kills == KILLS:
            break
        run, status = tmp_path / str(number), None
        while status != 0:
            moment = {"kill_at": draw.randint(1, operations), "kill_after": draw.random() * seconds}
            status = nursery.train(run, **({by: moment[by]} if kills < KILLS else {}))[0]
            kills += status != 0
        assert outcome(run) == expected
        left = list((run / CHECKPOINTS).iterdir())
        assert len(left) in (KEPT, KEPT + 1)  # one more if the last kill came before it was taken away
        assert not list(run.rglob("*.part"))
