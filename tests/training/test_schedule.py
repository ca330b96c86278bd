"""The learning rate at its turning points, against values worked out by hand."""

import math

import pytest

from regard.config import TrainingConfig
from regard.training.schedule import learning_rate


def rate(schedule, step, *, share=0.0, warmup=100, peak=0.5, d_model=512, final=0.0):
    config = TrainingConfig(schedule=schedule, warmup=warmup, learning_rate=peak, final_rate=final)
    return learning_rate(config, step, share=share, d_model=d_model)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (1, 512**-0.5 * 1 * 4000**-1.5),  # 1.747e-7
        (2000, 512**-0.5 * 2000 * 4000**-1.5),  # half of the peak
        (4000, 512**-0.5 * 4000**-0.5),  # the peak
        (16_000, 512**-0.5 * 16_000**-0.5),  # half of it again
        (100_000, 512**-0.5 * 100_000**-0.5),  # where the base model stopped
    ],
)
def test_the_papers(step, expected):
    assert rate("paper", step, warmup=4000, peak=1.0) == pytest.approx(expected, rel=1e-12)
    assert rate("paper", step, warmup=4000, peak=2.0, share=0.9) == pytest.approx(2 * expected, rel=1e-12)


def test_the_papers_in_figures():
    assert rate("paper", 1, warmup=4000, peak=1.0) == pytest.approx(1.7469e-7, rel=1e-4)
    assert rate("paper", 4000, warmup=4000, peak=1.0) == pytest.approx(6.9877e-4, rel=1e-4)
    assert rate("paper", 16_000, warmup=4000, peak=1.0) == pytest.approx(3.4939e-4, rel=1e-4)


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine", "linear", "constant"])
def test_the_others_rise_in_a_straight_line(schedule):
    assert rate(schedule, 1) == pytest.approx(0.005)
    assert rate(schedule, 50) == pytest.approx(0.25)
    assert rate(schedule, 100) == pytest.approx(0.5)
    assert rate(schedule, 1, warmup=0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("schedule", "half", "end"),
    [
        ("inverse_sqrt", 0.25, 0.05),
        ("cosine", 0.25, 0.0),
        ("linear", 0.25, 0.0),
        ("constant", 0.5, 0.5),
    ],
)
def test_and_fall_to_their_end(schedule, half, end):
    share = 0.5 if schedule == "inverse_sqrt" else 450 / 800  # of 800 updates, half way behind the 100 of the warm-up
    assert rate(schedule, 400 if schedule == "inverse_sqrt" else 451, share=share) == pytest.approx(half)
    assert rate(schedule, 10_000, share=1.0) == pytest.approx(end, abs=1e-12)
    assert rate(schedule, 10_000, share=1.2) == pytest.approx(end, abs=1e-12)  # a clock may run past it


def test_a_quarter_of_a_cosine():
    assert rate("cosine", 1000, share=0.25, warmup=0) == pytest.approx(0.25 * (1 + math.sqrt(0.5)))


def test_the_fall_begins_where_the_warm_up_ends():
    """It began with the run, so that a peak of 1e-3 was 0.85e-3 after a warm-up of a quarter of it."""
    assert rate("cosine", 101, share=100 / 400) == rate("linear", 101, share=100 / 400) == 0.5
    quarter = rate("cosine", 176, share=175 / 400)  # of the 300 behind the warm-up, 75 are done
    assert quarter == pytest.approx(0.25 * (1 + math.sqrt(0.5)))
    assert rate("linear", 176, share=175 / 400) == pytest.approx(0.375)


def test_the_fall_of_a_run_that_ends_with_the_clock():
    """By the pace so far: 1,000 updates in a fifth of the time make 5,000, of which the warm-up is a fiftieth."""
    fallen = (0.2 - 0.02) / (1 - 0.02)
    assert rate("linear", 1001, share=0.2) == pytest.approx(0.5 * (1 - fallen))


def test_a_fall_to_a_share_of_the_peak():
    """nanoGPT's cosine: from 1e-3 to 1e-4."""
    assert rate("cosine", 1000, share=1.0, final=0.1, peak=1e-3) == pytest.approx(1e-4)
    assert rate("cosine", 1000, share=0.5, final=0.1, peak=1e-3, warmup=0) == pytest.approx(5.5e-4)
    assert rate("linear", 1000, share=0.5, final=0.2, warmup=0) == pytest.approx(0.3)
    assert rate("linear", 1000, share=1.2, final=0.2) == pytest.approx(0.1)
