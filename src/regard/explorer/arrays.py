"""Arrays on their way to the page: what a table says of them, their bytes live, and all of them packed for a file.

The format is that of docs/explorer-payload.md.
"""

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, int64

from regard.errors import InputError

Axis = Literal["layer", "head", "row", "key", "value", "point", "step", "place", "checkpoint"]
Some = Sequence[int] | None
"""Numbers of heads or rows; none for all."""
Make = Callable[[Some, Some], Tensor]
"""An array of some heads and some rows."""
Plain = dict[str, Any]
"""What JSON holds."""

DTYPES = {"f4": "<f4", "u1": "|u1", "i2": "<i2", "i4": "<i4"}
ALIGNED = 8
"""bytes at a multiple of which each array of a file begins"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Array:
    """An array that the page may ask for; it is computed when it does."""

    shape: tuple[int, ...]
    axes: tuple[Axis, ...]
    make: Make
    dtype: Literal["f4", "u1"] = "f4"
    decimals: int | None = None
    """of a file's numbers; none: all digits are kept"""
    only: Mapping[Axis, tuple[int, ...]] | None = None
    """the heads or rows that a file has, where it has not all of them"""

    def entry(self) -> Plain:
        """What the table of a live page says."""
        return {"dtype": self.dtype, "shape": list(self.shape), "axes": list(self.axes)}

    def values(self, *, heads: Some = None, rows: Some = None) -> NDArray[Any]:
        """The numbers of these heads and rows, in that order; of all, if none are named."""
        for axis, numbers in (("head", heads), ("row", rows)):
            if numbers is None:
                continue
            if axis not in self.axes:
                raise InputError(f"{axis}s={','.join(map(str, numbers))}: this array has none, it has {self.axes}")
            size = self.shape[self.axes.index(axis)]
            if wrong := [number for number in numbers if not 0 <= number < size]:
                raise InputError(f"{axis} {wrong[0]}: there are {axis}s 0 to {size - 1}")
        found: NDArray[Any] = self.make(heads, rows).detach().cpu().numpy()
        return found.astype(DTYPES[self.dtype])

    def part(self, *, heads: Some = None, rows: Some = None) -> "Array":
        """The same with only these heads and rows in a file; those that it does not have are not minded."""
        only = {axis: tuple(some) for axis, some in (("head", heads), ("row", rows)) if some is not None}
        kept = {axis: some for axis, some in only.items() if axis in self.axes and len(some) < self._size(axis)}
        return replace(self, only=kept) if kept else self

    def _size(self, axis: Axis) -> int:
        return self.shape[self.axes.index(axis)]

    def packed(self) -> tuple[Plain, bytes]:
        """For a file: its entry, but for the offset, and its bytes, in planes."""
        only = self.only or {}
        values = self.values(heads=only.get("head"), rows=only.get("row"))
        entry: Plain = {**self.entry(), "shape": list(values.shape), **_kept(only)}
        if self.decimals is not None:
            values, entry["dtype"], entry["decimals"] = whole_numbers(values, self.decimals)
        return entry, planes(values)


def _kept(only: Mapping[Axis, tuple[int, ...]]) -> Plain:
    return {f"{axis}s": list(some) for axis, some in only.items()}


def whole_numbers(values: NDArray[Any], decimals: int) -> tuple[NDArray[Any], str, int]:
    """The values as whole numbers of 10^-decimals, of two bytes or else four; fewer decimals where both are too small.

    They are rounded as text would be, from all their binary digits. Minus infinity and the like have no place here.
    """
    if not np.isfinite(values).all():
        raise ValueError("only finite numbers can be rounded")
    largest = float(np.abs(values).max(initial=0.0))
    while largest * 10**decimals > 2**31 - 1 and decimals > 0:
        decimals -= 1
    found = np.rint(values.astype(np.float64) * 10**decimals)
    dtype = "i2" if np.abs(found).max(initial=0.0) <= 2**15 - 1 else "i4"
    return found.astype(DTYPES[dtype]), dtype, decimals


def planes(values: NDArray[Any]) -> bytes:
    """The lowest byte of every value, then the next of every value, and so on: alike stands by alike."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(np.uint8).reshape(len(flat), flat.itemsize).T.tobytes()


def from_planes(data: bytes, entry: Plain) -> NDArray[Any]:
    """The plain twin of what the page does: an array of a file's unpacked bytes."""
    dtype = np.dtype(DTYPES[entry["dtype"]])
    count, start = int(np.prod(entry["shape"], dtype=np.int64)), entry["offset"]
    raw = np.frombuffer(data[start : start + count * dtype.itemsize], np.uint8).reshape(dtype.itemsize, count)
    values = np.ascontiguousarray(raw.T).view(dtype).reshape(entry["shape"])
    return values / 10 ** entry["decimals"] if "decimals" in entry else values


class Pack:
    """The arrays of a file, one behind another."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._places: dict[bytes, int] = {}
        self.packed = 0
        """letters that the text will have, about"""

    def add(self, array: Array) -> Plain:
        """Put an array in, unless one of the same bytes is there; answers with its entry."""
        entry, data = array.packed()
        entry["offset"] = self._places.setdefault(data, self._size)
        if entry["offset"] == self._size:
            filled = data + b"\0" * (-len(data) % ALIGNED)
            self._parts.append(filled)
            self._size += len(filled)
            self.packed += len(zlib.compress(data)) * 4 // 3
        return entry

    def text(self) -> str:
        """All of it, compressed, in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 9)).decode("ascii")


def short(value: float) -> float:
    """A number as the page needs it: seven digits, which is what a float32 holds."""
    return float(f"{value:.7g}")


def unpacked(text: str) -> bytes:
    """What `Pack.text` was made of."""
    return zlib.decompress(base64.b64decode(text))


def fixed(value: Tensor, axes: tuple[Axis, ...], *, decimals: int | None = None) -> Array:
    """An array whose numbers are there already."""

    def make(heads: Some, rows: Some) -> Tensor:
        return selected(value, axes, heads=heads, rows=rows)

    return Array(shape=tuple(value.shape), axes=axes, make=make, decimals=decimals)


def selected(value: Tensor, axes: Sequence[Axis], *, heads: Some = None, rows: Some = None) -> Tensor:
    """These heads and rows of a tensor with these axes."""
    if heads is not None:
        value = value.index_select(axes.index("head"), value.new_tensor(heads, dtype=int64))
    if rows is not None:
        value = value.index_select(axes.index("row"), value.new_tensor(rows, dtype=int64))
    return value
