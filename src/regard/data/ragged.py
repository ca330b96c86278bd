"""Rows of different lengths as one flat array and the places where rows begin, in memory or mapped from files.

On the disk: NAME.bin holds the values of all rows one after another, NAME.offsets.bin the places (int64, one more than
rows), both little-endian without a header. What they mean stands in the manifest beside them.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

if sys.platform != "win32":
    from mmap import MADV_DONTNEED

Values = NDArray[Any]
_BLOCK = 2**20
_ROWS = 64
"""rows that are taken before mapped pages are given back"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ragged:
    """Row i is `values[offsets[i] : offsets[i + 1]]`."""

    values: Values
    """all rows, one after another"""
    offsets: NDArray[np.int64]
    """where each row begins, and at last where the last one ends"""
    maps: tuple[mmap, ...] = ()
    """what the two stand on, if they are mapped"""

    @classmethod
    def of(cls, rows: Sequence[Values]) -> "Ragged":
        """These rows, copied into one array."""
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return cls(values=np.concatenate(rows) if len(rows) else np.zeros(0, dtype=np.int32), offsets=offsets)

    @classmethod
    def open(cls, folder: Path, name: str, dtype: str) -> "Ragged":
        """The rows that a `RaggedWriter` wrote, mapped: only what is touched is read."""
        maps = [_map(path) for path in _paths(folder, name)]
        values, offsets = (np.frombuffer(map or b"", kind) for map, kind in zip(maps, (dtype, "<i8"), strict=True))
        return cls(values=values, offsets=offsets, maps=tuple(map for map in maps if map))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Values:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def take(self, rows: NDArray[np.integer]) -> "Ragged":
        """Some of the rows, copied."""
        taken: list[Values] = []
        for start in range(0, len(rows), _ROWS):
            taken += [self[row].copy() for row in rows[start : start + _ROWS].tolist()]
            self.release()
        return Ragged.of(taken)

    def lengths(self, *, more: int = 0) -> NDArray[np.unsignedinteger]:
        """Each row's length and `more`, in the narrowest type that holds them all."""
        longest = max((int(part.max()) for _, part in self._length_blocks()), default=0) + more
        lengths = np.empty(len(self), dtype=np.min_scalar_type(longest))
        for start, part in self._length_blocks():
            lengths[start : start + len(part)] = part + more
        return lengths

    def _length_blocks(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        for start in range(0, len(self), _BLOCK):
            yield start, np.diff(self.offsets[start : start + _BLOCK + 1])
            self.release()

    def release(self) -> None:
        """Give back the pages that were mapped; the system keeps them at hand while there is room.

        They would count as this process's memory: Linux may map two megabytes around each place that is touched, so
        that five batches at random places made all 460 MB of a store of 5 million pairs resident. Mapping them again
        makes a batch of 240 pairs take 4 ms instead of 0.4, in the background.
        """
        if sys.platform != "win32":
            for map in self.maps:
                map.madvise(MADV_DONTNEED)


class RaggedWriter:
    """Appends rows to files; what is written counts once `close` has brought it to the disk."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self._values, self._offsets = (path.open("wb") for path in _paths(folder, name))
        self._end = 0
        self.rows = 0
        """rows that are written"""
        self._offsets.write(np.zeros(1, dtype="<i8").tobytes())

    def __enter__(self) -> "RaggedWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, rows: Sequence[Values]) -> None:
        """Write whole rows."""
        if not len(rows):
            return
        ends = self._end + np.cumsum([len(row) for row in rows], dtype="<i8")
        self._values.write(np.concatenate(rows).astype(self._dtype, copy=False).tobytes())
        self._offsets.write(ends.tobytes())
        self._end = int(ends[-1])
        self.rows += len(rows)

    def extend(self, part: Values) -> None:
        """Write a part of a row that `end_row` will end."""
        self._values.write(part.astype(self._dtype, copy=False).tobytes())
        self._end += len(part)

    def end_row(self) -> None:
        """End the row of the parts written since the last one."""
        self._offsets.write(np.array([self._end], dtype="<i8").tobytes())
        self.rows += 1

    def close(self) -> None:
        """Bring it all to the disk."""
        for file in (self._values, self._offsets):
            if not file.closed:
                file.flush()
                os.fsync(file.fileno())
                file.close()


def id_type(vocabulary: int) -> str:
    """The narrowest of the two types that ids are stored in."""
    return "<u2" if vocabulary <= 2**16 else "<i4"


def _paths(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.bin", folder / f"{name}.offsets.bin"


def _map(path: Path) -> mmap | None:
    """The file, or none if it is empty: nothing cannot be mapped."""
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else None
