"""The stream of updates: the same whether resumed, shared out, prepared ahead or not."""

import gc
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
import torch

from regard.config import DataConfig, DataSet
from regard.data import BatchStream, PairBatch, PairStore, Position, Share, Update
from regard.data.ahead import prepare_ahead
from regard.errors import InputError
from regard.text import Tokenizer

Corpus = Callable[..., tuple[str, str]]
BUDGET = 60


@pytest.fixture(params=[0.0, 0.2])
def store(request: pytest.FixtureRequest, corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> PairStore:
    """Of two sets; and the same where pieces are cut anew each time."""
    more = DataSet(files=corpus(23, name="more"), weight=2, tag="<2fr>")
    config = DataConfig(train=corpus(80), sets=(more,))
    return PairStore.open(config, tokenizer, sampling=request.param, folder=tmp_path / "data")


def updates(
    store: PairStore, count: int, *, position: Position | None = None, share: Share | None = None, ahead: int = 0
) -> list[Update[PairBatch]]:
    with BatchStream(
        store, tokens_per_batch=BUDGET, seed=4, position=position, weights=[1, 1.5], share=share, ahead=ahead
    ) as stream:
        return list(islice(stream, count))


def assert_same(ours: PairBatch, theirs: PairBatch) -> None:
    for name in vars(ours):
        assert torch.equal(getattr(ours, name), getattr(theirs, name)), name


def assert_all_same(ours: list[Update[PairBatch]], theirs: list[Update[PairBatch]]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert (one.rows, one.tokens, one.after, one.batches) == (other.rows, other.tokens, other.after, other.batches)
        for part, same in zip(one.parts, other.parts, strict=True):
            assert_same(part, same)


def test_a_resumed_stream_is_the_tail_of_the_whole_one(store: PairStore) -> None:
    per_epoch = updates(store, 1)[0].batches
    whole = updates(store, 2 * per_epoch + 5)
    for done in (1, 7, per_epoch - 1, per_epoch, per_epoch + 3):
        stored = json.loads(json.dumps(whole[done - 1].after.to_plain()))
        rest = updates(store, len(whole) - done, position=Position.from_plain(stored))
        assert_all_same(rest, whole[done:])
    at_the_end = updates(store, 3, position=Position(epoch=0, batch=per_epoch))
    assert_all_same(at_the_end, whole[per_epoch : per_epoch + 3])
    with pytest.raises(InputError, match=rf"position: batch {per_epoch + 1} of epoch 0, which has {per_epoch} batches"):
        updates(store, 1, position=Position(epoch=0, batch=per_epoch + 1))
    with pytest.raises(InputError, match=r"unknown key position\.bach: did you mean 'batch'"):
        Position.from_plain({"epoch": 0, "bach": 1})


def test_an_epoch_sees_each_row_as_often_as_its_set_weighs(store: PairStore) -> None:
    first = updates(store, 1)[0]
    whole = updates(store, first.batches)
    assert [update.after.epoch for update in whole] == [0] * (first.batches - 1) + [1]
    assert whole[-1].after == Position(epoch=1)
    seen = [row for update in whole for part in update.parts for row in part.index.tolist()]
    assert sorted(row for row in seen if row < 80) == list(range(80))
    assert len([row for row in seen if row >= 80]) == round(1.5 * 23)
    assert {row for row in seen if row >= 80} == set(range(80, 103))
    assert sum(update.rows for update in whole) == len(seen)
    assert len(first.padding) == 2


@pytest.mark.parametrize(("world", "accumulate"), [(1, 1), (1, 3), (2, 1), (3, 2), (7, 4)])
def test_all_shares_together_are_the_batch(store: PairStore, world: int, accumulate: int) -> None:
    whole = updates(store, 30)
    shares = [updates(store, 30, share=Share(rank=rank, world=world, accumulate=accumulate)) for rank in range(world)]
    pad = 0
    for number, update in enumerate(whole):
        (batch,) = update.parts
        assert update.tokens == batch.tokens
        ours = [share[number] for share in shares]
        assert {(one.after, one.rows, one.tokens) for one in ours} == {(update.after, update.rows, update.tokens)}
        assert all(len(one.parts) <= accumulate for one in ours)
        counts = [sum(map(len, one.parts)) for one in ours]
        assert max(counts) - min(counts) <= 1
        parts = [part for one in ours for part in one.parts]
        assert all(len(part) for part in parts)
        for name in vars(batch):
            wide = getattr(batch, name)
            fill = [torch.nn.functional.pad(tensor, (0, wide.shape[-1] - tensor.shape[-1]), value=pad)
                    if wide.ndim == 2 else tensor for tensor in (getattr(part, name) for part in parts)]  # fmt: skip
            assert torch.equal(torch.cat(fill), wide), name
        for part in parts:
            assert part.source.shape[1] == part.source_lengths.max()
            assert part.target_in.shape == part.target_out.shape
            assert part.target_in.shape[1] == part.target_lengths.max()


def test_too_few_rows_leave_some_processes_without(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    store = PairStore.open(DataConfig(train=corpus(2)), tokenizer, folder=tmp_path / "data")
    parts = []
    for rank in range(4):
        with BatchStream(store, tokens_per_batch=4096, seed=0, share=Share(rank=rank, world=4, accumulate=2)) as stream:
            parts.append(len(next(stream).parts))
    assert parts == [1, 1, 0, 0]
    for wrong in ({"rank": 2, "world": 2}, {"rank": -1}, {"accumulate": 0}):
        with pytest.raises(ValueError, match="rank must be below world"):
            Share(**wrong)
    with pytest.raises(ValueError, match="2 weights, but 1 sets"):
        BatchStream(store, tokens_per_batch=9, seed=0, weights=[1, 1])


@pytest.mark.parametrize("ahead", [1, 2, 50])
def test_preparing_ahead_changes_nothing(store: PairStore, ahead: int) -> None:
    assert_all_same(updates(store, 60, ahead=ahead), updates(store, 60))


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "batches ahead"]


def test_threads_end_with_their_stream(store: PairStore) -> None:
    stream = BatchStream(store, tokens_per_batch=BUDGET, seed=0)
    assert ours() == [], "nothing is done before it is asked for"
    next(stream)
    assert len(ours()) == 1
    stream.close()
    stream.close()
    assert ours() == []
    with pytest.raises(StopIteration):
        next(stream)
    for _ in BatchStream(store, tokens_per_batch=BUDGET, seed=0):
        break
    dropped = BatchStream(store, tokens_per_batch=BUDGET, seed=0)
    next(dropped)
    del dropped, _
    gc.collect()
    assert ours() == []


def test_errors_come_in_their_turn() -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise KeyError("here")

    stream = prepare_ahead(items(), 10)
    assert [next(stream) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="here"):
        next(stream)
    assert ours() == []


def test_no_more_is_prepared_than_asked_for() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    stream = prepare_ahead(items(), 3)
    assert next(stream) == 0
    limit = time.monotonic() + 5
    while len(made) < 4 and time.monotonic() < limit:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(made) == 4
    assert list(stream) == list(range(1, 100))
    assert ours() == []


def test_a_program_ends_though_its_stream_is_open() -> None:
    """A daemon thread that the interpreter stopped half-way could be waited for without end."""
    program = (
        "import sys; sys.path[:] = sys.argv[1].split(':')\n"
        "from itertools import count\n"
        "from regard.data.ahead import prepare_ahead\n"
        "stream = prepare_ahead(count(), 4)\n"
        "print(next(stream))\n"
    )
    command = [sys.executable, "-c", program, ":".join(sys.path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (answer.stdout, answer.stderr) == ("0\n", "")
