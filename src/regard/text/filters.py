"""What is left out of a corpus, and how much: nothing is dropped without being counted.

Empty texts are always left out; copies and duplicates on request. How long a text is in pieces is known later, so
whoever has the ids asks `length_fault` and adds what it finds to the same report.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.text.corpus import TextPair

Fault = Literal["empty", "too_long", "ratio", "copies", "duplicates"]
_BLOCK = 8192


@dataclass(frozen=True, kw_only=True)
class FilterReport:
    """How many rows were kept, and how many left out for each reason."""

    kept: int = 0
    """rows that are used"""
    empty: int = 0
    """one side is blank"""
    copies: int = 0
    """both sides are the same"""
    duplicates: int = 0
    """the same row stood before"""
    too_long: int = 0
    """one side has more pieces than allowed"""
    ratio: int = 0
    """one side has too many times the other's pieces"""

    @property
    def read(self) -> int:
        """All rows."""
        return sum(getattr(self, field.name) for field in fields(self))

    def __add__(self, other: "FilterReport") -> "FilterReport":
        """The counts of both."""
        return FilterReport(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def moved(self, counts: dict[Fault, int]) -> "FilterReport":
        """The report after some of the kept rows were left out after all."""
        return self + FilterReport(kept=-sum(counts.values()), **counts)

    def __str__(self) -> str:
        """One line for people: `28,990 of 29,000 kept; left out: 8 empty, 2 too long`."""
        faults = [field.name for field in fields(self) if field.name != "kept"]
        out = [f"{getattr(self, name):,} {name.replace('_', ' ')}" for name in faults if getattr(self, name)]
        return f"{self.kept:,} of {self.read:,} kept" + (f"; left out: {', '.join(out)}" if out else "")


class PairFilter:
    """Lets pairs through that are neither blank on a side nor, if so asked, copies or duplicates.

    `report` counts what went through so far, over all the streams given to it: duplicates are found across them.
    """

    def __init__(self, *, drop_copies: bool = False, drop_duplicates: bool = False) -> None:
        self._drop_copies = drop_copies
        self._seen = HashSet() if drop_duplicates else None
        self.report = FilterReport()

    def __call__(self, pairs: Iterable[TextPair]) -> Iterator[TextPair]:
        """The pairs that stay, in order; they are read some thousands ahead."""
        stream = iter(pairs)
        while block := list(islice(stream, _BLOCK)):
            yield from self._keep(block)

    def _keep(self, block: list[TextPair]) -> list[TextPair]:
        size = len(block)
        block = [pair for pair in block if pair.source.strip() and pair.target.strip()]
        full = len(block)
        if self._drop_copies:
            block = [pair for pair in block if pair.source.strip() != pair.target.strip()]
        different = len(block)
        if self._seen is not None:
            new = self._seen.add([pair_key(pair) for pair in block])
            block = [pair for pair, first in zip(block, new.tolist(), strict=True) if first]
        self.report += FilterReport(
            kept=len(block), empty=size - full, copies=full - different, duplicates=different - len(block)
        )
        return block


def length_fault(
    source_length: int, target_length: int, *, max_length: int, max_ratio: float | None = None
) -> Literal["too_long", "ratio"] | None:
    """Why a pair of so many pieces is left out of training, or none."""
    shorter, longer = sorted((source_length, target_length))
    if longer > max_length:
        return "too_long"
    if max_ratio is not None and longer > max_ratio * shorter:
        return "ratio"
    return None


def pair_key(pair: TextPair) -> bytes:
    """What makes two pairs the same: both texts to the letter, and the tag."""
    return f"{len(pair.source)} {len(pair.target)} {pair.source}{pair.target}{pair.tag or ''}".encode()


class HashSet:
    """A set of keys by 64-bit hashes of them, at 8 bytes a key, and twice as much again for a moment as it grows.

    A new key is taken for an old one with a chance of keys / 2^64: over 50 million keys, one in 15,000 that it happens
    once. The hashes stand in sorted runs, each at least twice as long as the next, so that a block is looked up in a
    few binary searches and every hash is merged a few dozen times in all. Measured: 4.5 million pairs added 86 MB at
    the highest, and 1.6 microseconds a pair.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def add(self, keys: Sequence[bytes]) -> NDArray[np.bool_]:
        """Take the keys in; says of each whether it is new, of equal ones the first."""
        hashes = _hashes(keys)
        new = self._unseen(hashes)
        first = np.zeros(len(hashes), dtype=np.bool_)
        first[np.unique(hashes, return_index=True)[1]] = True
        new &= first
        added = np.sort(hashes[new])
        while self._runs and len(self._runs[-1]) < 2 * len(added):
            added = np.concatenate([self._runs.pop(), added])
            added.sort(kind="stable")  # timsort: merges what is already in order
        if len(added):
            self._runs.append(added)
        return new

    def new(self, keys: Sequence[bytes]) -> NDArray[np.bool_]:
        """Says of each key whether it is not in the set, and takes none in."""
        return self._unseen(_hashes(keys))

    def _unseen(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        new = np.ones(len(hashes), dtype=np.bool_)
        for run in self._runs:
            places = np.searchsorted(run, hashes)
            new &= run[np.minimum(places, len(run) - 1)] != hashes
        return new


def _hashes(keys: Sequence[bytes]) -> NDArray[np.uint64]:
    digests = b"".join(blake2b(key, digest_size=8).digest() for key in keys)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
