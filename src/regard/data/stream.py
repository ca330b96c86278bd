"""Batches without end, from an exact position on: what a training loop eats.

Each update comes with the position behind it. Whoever stores that position and begins there gets what would have come
next, in the middle of an epoch too, to the last piece.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.config.plain import build, to_plain
from regard.data.ahead import prepare_ahead
from regard.data.plan import SAMPLING, Lengths, epoch_rows, generator, plan_epoch
from regard.errors import InputError


class Divisible(Protocol):
    """What all batches can do."""

    def __len__(self) -> int:
        """Rows."""

    @property
    def tokens(self) -> int:
        """Real tokens."""

    def cut(self, count: int) -> tuple[Self, ...]:
        """So many parts, which one after another are the batch."""


B = TypeVar("B", bound=Divisible)
B_co = TypeVar("B_co", bound=Divisible, covariant=True)


@dataclass(frozen=True, kw_only=True)
class Position:
    """A place in the order of the data."""

    epoch: int = 0
    """whole passes done"""
    batch: int = 0
    """batches done of the pass"""

    def to_plain(self) -> dict[str, object]:
        """For JSON."""
        return to_plain(self)

    @classmethod
    def from_plain(cls, values: dict[str, object]) -> "Position":
        """What `to_plain` gave."""
        return build(cls, values, where="position.")


class Store(Protocol[B_co]):
    """Rows on the disk that can be had as batches."""

    @property
    def sets(self) -> tuple[int, ...]:
        """Rows of each set, which stand one behind another."""

    def lengths(self) -> tuple[Lengths, ...]:
        """Each row's length on each side, as batches hold it."""

    def batch(self, rows: NDArray[np.integer], random: np.random.Generator | None = None) -> B_co:
        """These rows as a batch."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Update(Generic[B]):
    """What one update of the weights learns from."""

    parts: tuple[B, ...]
    """this process's share, in the parts that are computed one by one; empty if there are fewer rows than processes"""
    rows: int
    """rows of the whole batch, over all processes"""
    tokens: int
    """real tokens of the whole batch (of pairs: the target's), over all processes: what its loss is the mean of"""
    after: Position
    """where the next update begins"""
    batches: int
    """updates in this epoch"""
    padding: tuple[float, ...]
    """for each side (source, target) the share of this epoch's batches that is padding"""


@dataclass(frozen=True, kw_only=True)
class Share:
    """How a batch is divided. The batches and their order are the same for any share."""

    rank: int = 0
    """number of this process"""
    world: int = 1
    """number of processes"""
    accumulate: int = 1
    """parts that each process computes its share in"""

    def __post_init__(self) -> None:
        """Refuse shares of nothing."""
        if self.accumulate < 1 or not 0 <= self.rank < self.world:
            raise ValueError(f"{self}: rank must be below world, and accumulate 1 or more")


class BatchStream(Generic[B]):
    """An iterator over a store's updates, prepared ahead in the background (`ahead` 0: when they are asked for).

    Close it, or use it in a `with`, to end its thread; a stream that is dropped ends by itself.
    """

    def __init__(
        self,
        store: Store[B],
        *,
        tokens_per_batch: int,
        seed: int,
        position: Position | None = None,
        weights: Sequence[float] | None = None,
        share: Share | None = None,
        ahead: int = 4,
    ) -> None:
        """`weights` say how often each set's rows come in an epoch; without them every row comes once."""
        if weights is not None and len(weights) != len(store.sets):
            raise ValueError(f"{len(weights)} weights, but {len(store.sets)} sets")
        updates = _updates(
            store,
            tokens_per_batch=tokens_per_batch,
            seed=seed,
            position=position or Position(),
            weights=tuple(weights or [1.0] * len(store.sets)),
            share=share or Share(),
        )
        self._updates = prepare_ahead(updates, ahead) if ahead else updates

    def __iter__(self) -> Iterator[Update[B]]:
        return self

    def __next__(self) -> Update[B]:
        return next(self._updates)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the thread; nothing comes any more."""
        self._updates.close()


def _updates(
    store: Store[B], *, tokens_per_batch: int, seed: int, position: Position, weights: tuple[float, ...], share: Share
) -> Generator[Update[B], None, None]:
    epoch, first = position.epoch, position.batch
    while True:
        plan = plan_epoch(
            store.lengths(),
            rows=epoch_rows(store.sets, weights, seed=seed, epoch=epoch),
            tokens_per_batch=tokens_per_batch,
            seed=seed,
            epoch=epoch,
        )
        if first > len(plan):
            raise InputError(f"position: batch {first} of epoch {epoch}, which has {len(plan)} batches of this data")
        for number in range(first, len(plan)):
            # The whole batch first: what is drawn for a row must not depend on how many processes there are.
            whole = store.batch(plan[number], generator(seed, SAMPLING, epoch, number))
            mine = whole.cut(share.world)[share.rank]
            last = number + 1 == len(plan)
            yield Update(
                parts=tuple(part for part in mine.cut(share.accumulate) if len(part)),
                rows=len(whole),
                tokens=whole.tokens,
                after=Position(epoch=epoch + 1) if last else Position(epoch=epoch, batch=number + 1),
                batches=len(plan),
                padding=plan.padding,
            )
        epoch, first = epoch + 1, 0
