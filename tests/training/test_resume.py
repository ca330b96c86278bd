"""A run that was stopped or gone on with is, to the last bit, the run that was not."""

import os
import signal

import pytest

from regard.tasks.start import train
from regard.training.journal import read_journal


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return tmp_path_factory.mktemp("whole") / "run"


@pytest.fixture
def uninterrupted(whole, recipe, outcome):
    """What the recipe gives when nothing happens: dropout, a mean of weights, two parts a batch."""
    changes = {"training": {"ema": 0.9, "accumulate": 2, "weight_decay": 0.01, "steps": 16}}
    if not whole.exists():
        assert train(recipe(**changes), whole).finished
    return recipe(**changes), outcome(whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", [1, 4, 7])
def test_stopped_and_gone_on_with(number, step, uninterrupted, tmp_path, teller, outcome):
    """Stopped at update 4, where a validation was due, a run once went on without it, and other weights were kept."""
    recipe, expected = uninterrupted

    def stop(now):
        if now == step:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    progress = train(recipe, tmp_path / "run", watcher=teller(stop))
    assert signal.getsignal(number) is before
    assert (progress.step, progress.finished) == (step, False)
    assert read_journal(tmp_path / "run")[-1]["event"] == "interrupted"
    progress = train(recipe, tmp_path / "run")
    assert (progress.step, progress.finished) == (16, True)
    assert outcome(tmp_path / "run") == expected


def test_asked_twice_it_stops_at_once(recipe, tmp_path, teller):
    def stop(now):
        if now == 3:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(recipe(), tmp_path, watcher=teller(stop))
    assert signal.getsignal(signal.SIGINT) is before
    assert read_journal(tmp_path)[-1]["step"] == 3


def test_a_longer_recipe_goes_on_with_a_finished_run(uninterrupted, recipe, tmp_path, outcome, teller):
    """A finished run was once finished for ever, though how long to train may be changed."""
    _, expected = uninterrupted
    rest = {"ema": 0.9, "accumulate": 2, "weight_decay": 0.01}
    assert train(recipe(training={**rest, "steps": 8}), tmp_path).step == 8
    asked = teller()
    assert train(recipe(training={**rest, "steps": 16}), tmp_path, watcher=asked).step == 16
    assert not any("already finished" in line for line in asked.lines)
    assert outcome(tmp_path) == expected
    again = teller()
    progress = train(recipe(training={**rest, "steps": 16}), tmp_path, watcher=again)
    assert (progress.step, progress.finished) == (16, True)
    assert again.lines[-1] == "already finished after 16 updates"
    assert outcome(tmp_path) == expected
