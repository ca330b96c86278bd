"""Plans of an epoch: every row once, within the budget, with little padding, the same for the same seed."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import DataConfig, TokensConfig
from regard.data import PairStore, Plan, epoch_rows, plan_epoch, text_pairs
from regard.errors import InputError
from regard.text import train_tokenizer

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=120)
MULTI30K = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[3] / "shared" / "data")) / "multi30k"


def flat(plan: Plan) -> list[int]:
    return [row for batch in range(len(plan)) for row in plan[batch].tolist()]


def like_multi30k(count: int, seed: int = 0) -> list[np.ndarray]:
    """Lengths as those of Multi30k's captions in 8,000 pieces: 17 on 15 in the mean, correlated by 0.88."""
    random = np.random.default_rng(seed)
    content = random.gamma(9, 1.67, count)
    sides = [content * scale * random.normal(1, 0.1, count) + random.normal(0, 0.8, count) for scale in (1.13, 1.0)]
    return [np.clip(np.round(side), 4, 60).astype(np.uint8) for side in sides]


@settings(derandomize=True, max_examples=200, deadline=None)
@given(LENGTHS, st.integers(1, 200), st.integers(1, 4), st.sampled_from([7, 50, 1000]))
def test_each_row_comes_once_within_the_budget(
    lengths: list[tuple[int, int]], budget: int, multiple: int, pool: int
) -> None:
    sides = [np.array([pair[side] for pair in lengths], dtype=np.uint8) for side in (0, 1)]
    plan = plan_epoch(sides, tokens_per_batch=budget, seed=3, epoch=5, multiple=multiple, pool=pool)
    assert sorted(flat(plan)) == list(range(len(lengths)))
    for batch in range(len(plan)):
        rows = plan[batch]
        assert len(rows)
        assert len(rows) < multiple or len(rows) % multiple == 0
        for side in sides:
            assert len(rows) == 1 or len(rows) * int(side[rows].max()) <= budget
    padded = [sum(len(plan[i]) * int(side[plan[i]].max()) for i in range(len(plan))) for side in sides]
    real = [int(side.sum()) for side in sides]
    assert plan.padding == pytest.approx([1 - r / max(p, 1) if p else 0 for r, p in zip(real, padded, strict=True)])


@settings(derandomize=True, max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(30, 100))
def test_one_side_and_repeated_rows(lengths: list[int], budget: int) -> None:
    side = np.array(lengths)
    rows = np.repeat(np.arange(len(side)), 2)
    plan = plan_epoch([side], rows=rows, tokens_per_batch=budget, seed=0, epoch=0)
    assert sorted(flat(plan)) == rows.tolist()
    assert all(len(plan[i]) * int(side[plan[i]].max()) <= budget for i in range(len(plan)))
    assert rows.tolist() == np.repeat(np.arange(len(side)), 2).tolist(), "the caller's rows are left as they are"


def test_a_batch_takes_what_the_budget_holds() -> None:
    plan = plan_epoch([np.full(100, 5), np.full(100, 4)], tokens_per_batch=50, seed=0, epoch=0)
    assert [len(plan[batch]) for batch in range(len(plan))] == [10] * 10
    with pytest.raises(IndexError):
        plan[10]
    with pytest.raises(IndexError):
        plan[-1]
    with pytest.raises(InputError, match="tokens_per_batch = 0"):
        plan_epoch([np.ones(3)], tokens_per_batch=0, seed=0, epoch=0)


def test_seed_and_epoch_decide_the_order_and_nothing_else_does() -> None:
    sides = like_multi30k(3000)
    orders = {
        (seed, epoch): flat(plan_epoch(sides, tokens_per_batch=1000, seed=seed, epoch=epoch))
        for seed in (-1, 0, 1)
        for epoch in (0, 1)
    }
    assert len({tuple(order) for order in orders.values()}) == 6
    again = flat(plan_epoch(sides, tokens_per_batch=1000, seed=1, epoch=1))
    assert again == orders[1, 1]


def test_batches_change_from_epoch_to_epoch_and_come_in_no_order_of_length() -> None:
    sides = like_multi30k(5000)
    plans = [plan_epoch(sides, tokens_per_batch=1000, seed=1, epoch=epoch) for epoch in range(2)]
    batches = [{frozenset(plan[i].tolist()) for i in range(len(plan))} for plan in plans]
    assert len(batches[0] & batches[1]) < len(batches[0]) / 10
    means = np.array([sides[1][plans[0][i]].mean() for i in range(len(plans[0]))])
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.3


@pytest.mark.parametrize("swap", [False, True])
def test_little_is_padding(swap: bool) -> None:
    sides = like_multi30k(29_000)
    assert np.corrcoef(*sides)[0, 1] == pytest.approx(0.88, abs=0.02)
    for epoch in range(4):
        plan = plan_epoch(sides[::-1] if swap else sides, tokens_per_batch=4096, seed=1, epoch=epoch)
        assert max(plan.padding) < 0.05
        assert len(plan) < 1.1 * max(int(side.sum()) for side in sides) / 4096


@pytest.mark.skipif(not MULTI30K.is_dir(), reason=f"no Multi30k at {MULTI30K} (REGARD_DATA says where)")
@pytest.mark.parametrize("source", ["fr", "de"])
def test_little_is_padding_on_multi30k(source: str, tmp_path: Path) -> None:
    files = tuple(str(MULTI30K / f"train.{side}.gz") for side in (source, "en"))
    config = DataConfig(train=files)
    texts = (text for pair in text_pairs(config, files) for text in (pair.source, pair.target))
    store = PairStore.open(config, train_tokenizer(texts, TokensConfig(size=8000)), folder=tmp_path)
    lengths = store.lengths()
    for epoch in range(3):
        plan = plan_epoch(lengths, tokens_per_batch=4096, seed=1, epoch=epoch)
        print(f"{source}-en: {len(plan)} batches, padding", *(f"{share:.2%}" for share in plan.padding))
        assert max(plan.padding) < 0.05


def test_plans_are_made_fast() -> None:
    """29,000 pairs take some 3 ms, and were to take less than 50."""
    sides = like_multi30k(29_000)
    best = 1.0
    for epoch in range(5):
        start = time.perf_counter()
        plan_epoch(sides, tokens_per_batch=4096, seed=1, epoch=epoch)
        best = min(best, time.perf_counter() - start)
    assert best < 0.05


def test_weights_repeat_rows() -> None:
    rows = epoch_rows([4, 3], [1, 2], seed=0, epoch=0)
    assert sorted(rows.tolist()) == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6]
    assert epoch_rows([4, 3], [1, 1], seed=0, epoch=9).tolist() == list(range(7))
    assert sorted(epoch_rows([4, 0, 3], [0.01, 5, 1], seed=0, epoch=0).tolist())[1:] == [4, 5, 6]


def test_fractions_of_a_set_move_on_from_epoch_to_epoch() -> None:
    epochs = [epoch_rows([2, 100], [1, 0.25], seed=7, epoch=epoch) for epoch in range(8)]
    assert [len(rows) for rows in epochs] == [27] * 8
    for first in (0, 4):
        drawn = [row for rows in epochs[first : first + 4] for row in rows.tolist() if row >= 2]
        assert sorted(drawn) == list(range(2, 102))
    more = [epoch_rows([10], [2.5], seed=7, epoch=epoch).tolist() for epoch in range(2)]
    assert sorted(more[0] + more[1]) == sorted(list(range(10)) * 5)
    assert more[0] != more[1]
    assert epoch_rows([10], [2.5], seed=7, epoch=0).tolist() == more[0]
