"""Which rows make a batch: of like length, so that little is padding, within a budget of tokens, in random order.

A pure function of the lengths, the seed and the epoch: whoever asks gets the same batches, so a run that goes on from a
checkpoint, and every one of many processes, knows them without being told.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError

POOL = 500_000
"""rows that are sorted together: bounds the memory, and is enough to find rows of like length"""
_REACH = 9
"""standard deviations from the shortest to the longest source of one target length, tails included; of 6 to 12 the one
that pads both sides of Multi30k alike (3.9 to 4.5 % in batches of 4,096 tokens)"""

Lengths = NDArray[np.integer]
Rows = NDArray[np.integer]
ORDER, EXTRA, SAMPLING = range(3)
"""what random numbers are for: each use has a stream of its own"""


def generator(seed: int, use: int, *place: int) -> np.random.Generator:
    """Random numbers that depend on the seed, their use and the place (epoch, batch) only."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed % 2**64, use, *place])))


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """An epoch's batches: `plan[i]` are the rows of batch i."""

    rows: Rows
    """the rows of all batches, one after another"""
    ends: NDArray[np.int64]
    """where each batch ends"""
    padding: tuple[float, ...]
    """for each side (source, target) the share of its rectangles that is padding"""

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, batch: int) -> NDArray[np.int64]:
        if not 0 <= batch < len(self):
            raise IndexError(batch)
        start = self.ends[batch - 1] if batch else 0
        return self.rows[start : self.ends[batch]].astype(np.int64)


def plan_epoch(
    lengths: Sequence[Lengths],
    *,
    tokens_per_batch: int,
    seed: int,
    epoch: int,
    rows: Rows | None = None,
    multiple: int = 1,
    pool: int = POOL,
) -> Plan:
    """The batches of an epoch over the `rows` (each once if they are not stated).

    `lengths` are all rows' lengths on each side, specials included: source and target, or one side alone. On every
    side rows times the longest of them stay within the budget, but for a single row that is longer by itself. Batches
    of more than `multiple` rows have a multiple of it. The budget is that of a whole update: how many processes share
    it, and in how many parts, changes nothing here.
    """
    if tokens_per_batch < 1:
        raise InputError(f"tokens_per_batch = {tokens_per_batch}: must be 1 or more")
    random = generator(seed, ORDER, epoch)
    every = _all_rows(len(lengths[0])) if rows is None else rows.copy()
    random.shuffle(every)
    sizes: list[NDArray[np.int64]] = []
    room, real = np.zeros(len(lengths)), np.zeros(len(lengths))
    for start in range(0, len(every), pool):
        part = every[start : start + pool]
        sides = [side[part].astype(np.int64) for side in lengths]
        order = _grouped(sides, tokens_per_batch, random)
        sides = [side[order] for side in sides]
        cuts = _cut(np.maximum.reduce(sides), tokens_per_batch, multiple)
        counts = np.diff(cuts)
        for number, side in enumerate(sides):
            room[number] += (np.maximum.reduceat(side, cuts[:-1]) * counts).sum()
            real[number] += side.sum()
        shuffled = random.permutation(len(counts))
        ordered = part[order]
        every[start : start + pool] = np.concatenate([ordered[cuts[i] : cuts[i + 1]] for i in shuffled.tolist()])
        sizes.append(counts[shuffled])
    ends = np.cumsum(np.concatenate(sizes)) if sizes else np.zeros(0, dtype=np.int64)
    padding = tuple((1 - real / np.maximum(room, 1)).tolist()) if len(every) else (0.0,) * len(lengths)
    return Plan(rows=every, ends=ends, padding=padding)


def epoch_rows(sets: Sequence[int], weights: Sequence[float], *, seed: int, epoch: int) -> Rows:
    """The rows of an epoch, in order: those of a set with weight w come w times.

    `sets` says how many rows each set has, one behind another. What is over whole times is a share of the set that
    moves on from epoch to epoch: with a weight of 0.25 four epochs see every row once. A set has one row at least.
    """
    if len(sets) != len(weights):
        raise ValueError(f"{len(sets)} sets, but {len(weights)} weights")
    every = _all_rows(sum(sets))
    if all(weight == 1 for weight in weights):
        return every
    parts: list[Rows] = []
    for number, (end, count, weight) in enumerate(zip(np.cumsum(sets).tolist(), sets, weights, strict=True)):
        rows = every[end - count : end]
        times, extra = divmod(max(round(weight * count), 1), count) if count else (0, 0)
        parts += [rows] * times
        if extra:
            order = generator(seed, EXTRA, number).permutation(count)
            places = (np.arange(extra) + epoch * extra) % count
            parts.append(rows[np.sort(order[places])])
    return np.concatenate(parts)


def _all_rows(count: int) -> Rows:
    return np.arange(count, dtype=np.int32 if count < 2**31 else np.int64)


def _grouped(sides: list[NDArray[np.int64]], budget: int, random: np.random.Generator) -> NDArray[np.int64]:
    """An order in which neighbours are of like length on every side.

    The targets' lengths are cut in strips, and each strip is sorted by source length, up and down in turn, so that
    neighbours stay alike where strips meet. Narrow strips pad few targets and many sources. A strip of w lengths that
    holds m batches for each length pads about w / 2 pieces of a target and spread / (2 w m) of a source: both are the
    same for w = sqrt(spread / m). Which end comes first is drawn, so that batches begin elsewhere in another epoch.
    """
    target, source = sides[-1], sides[0]
    rows = np.bincount(target)
    total, squares = np.bincount(target, source), np.bincount(target, source.astype(np.float64) ** 2)
    mean = total / np.maximum(rows, 1)
    spread = _REACH * np.sqrt(np.maximum(squares / np.maximum(rows, 1) - mean**2, 0))
    batches = np.maximum(rows * np.arange(len(rows)), total) / budget
    width = np.sqrt(np.maximum(spread, 1e-9) / np.maximum(batches, 1e-9)) if len(sides) > 1 else np.ones(len(rows))
    steps = 1 / np.maximum(width, 1)
    strip = (np.cumsum(steps) - steps + 1e-9).astype(np.int64)[target]
    up, first = random.integers(2, size=2).tolist()
    order: NDArray[np.int64] = np.lexsort((np.where(strip % 2 == up, source, -source), -strip if first else strip))
    return order


def _cut(widest: NDArray[np.int64], budget: int, multiple: int) -> NDArray[np.int64]:
    """Where batches begin and end, in rows whose longest side is given: each takes what the budget holds."""
    cuts, start, end = [0], 0, len(widest)
    while start < end:
        most = max(budget // max(int(widest[start]), 1), 1)
        width = np.maximum.accumulate(widest[start : start + most])
        fits = width * np.arange(1, len(width) + 1) <= budget
        count = max(int(fits.sum()), 1)
        start += count - count % multiple if count > multiple else count
        cuts.append(start)
    return np.array(cuts, dtype=np.int64)
