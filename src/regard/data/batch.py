"""Batches: rows of ids filled up to a rectangle, with the lengths that tell what is real.

A source ends with `end` (as Marian's and fairseq's do: the encoder has a piece to put the sentence's end in), a
target is read from `begin` on and written up to `end`, and a labelled text stands between both. Rows are filled up with
`pad`; behind a row's length nothing means anything, and losses leave it out by the lengths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.ragged import Ragged
from regard.text import Specials


@dataclass(frozen=True, kw_only=True, eq=False)
class PairBatch:
    """B pairs of S source and T target pieces."""

    index: Tensor
    """(B,) int64: the rows' numbers in the store"""
    source: Tensor
    """(B, S) int64: tag if there is one, pieces, end"""
    source_lengths: Tensor
    """(B,) int64"""
    target_in: Tensor
    """(B, T) int64: begin, pieces"""
    target_out: Tensor
    """(B, T) int64: pieces, end"""
    target_lengths: Tensor
    """(B,) int64, of `target_in` and `target_out` alike"""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def tokens(self) -> int:
        """Real target pieces, each row's end included: what a loss is the mean over."""
        return int(self.target_lengths.sum())

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return type(self)(
            index=self.index.to(device),
            source=self.source.to(device),
            source_lengths=self.source_lengths.to(device),
            target_in=self.target_in.to(device),
            target_out=self.target_out.to(device),
            target_lengths=self.target_lengths.to(device),
        )

    def twice(self) -> Self:
        """Every row again behind all rows."""
        return type(self)(
            index=self.index.repeat(2),
            source=self.source.repeat(2, 1),
            source_lengths=self.source_lengths.repeat(2),
            target_in=self.target_in.repeat(2, 1),
            target_out=self.target_out.repeat(2, 1),
            target_lengths=self.target_lengths.repeat(2),
        )

    def cut(self, count: int) -> tuple[Self, ...]:
        """`count` parts, which one after another are the batch; the last are empty if there are too few rows.

        Row counts differ by one at most, and each part is as narrow as its own rows allow.
        """
        return tuple(self._rows(start, end) for start, end in shares(len(self), count))

    def _rows(self, start: int, end: int) -> Self:
        rows = slice(start, end)
        source = slice(0, _longest(self.source_lengths[rows]))
        target = slice(0, _longest(self.target_lengths[rows]))
        return type(self)(
            index=self.index[rows],
            source=self.source[rows, source].contiguous(),
            source_lengths=self.source_lengths[rows],
            target_in=self.target_in[rows, target].contiguous(),
            target_out=self.target_out[rows, target].contiguous(),
            target_lengths=self.target_lengths[rows],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledBatch:
    """B labelled texts of S pieces."""

    index: Tensor
    """(B,) int64: the rows' numbers in the store"""
    texts: Tensor
    """(B, S) int64: begin, pieces, end"""
    lengths: Tensor
    """(B,) int64"""
    segments: Tensor | None = None
    """(B, S) int64: which of two texts a piece belongs to; none where there is one text"""
    labels: Tensor
    """(B,) int64: the label's number; where texts have several labels (B, labels) float32 of zeros and ones"""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def tokens(self) -> int:
        """Texts: what is told of each is its label, and a loss is the mean over them."""
        return len(self)

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return type(self)(
            index=self.index.to(device),
            texts=self.texts.to(device),
            lengths=self.lengths.to(device),
            segments=None if self.segments is None else self.segments.to(device),
            labels=self.labels.to(device),
        )

    def cut(self, count: int) -> tuple[Self, ...]:
        """`count` parts, as those of a `PairBatch`."""
        return tuple(self._rows(start, end) for start, end in shares(len(self), count))

    def _rows(self, start: int, end: int) -> Self:
        rows = slice(start, end)
        width = slice(0, _longest(self.lengths[rows]))
        return type(self)(
            index=self.index[rows],
            texts=self.texts[rows, width].contiguous(),
            lengths=self.lengths[rows],
            segments=None if self.segments is None else self.segments[rows, width].contiguous(),
            labels=self.labels[rows],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class TextBatch:
    """B rows of a language model's text, T pieces long."""

    index: Tensor
    """(B,) int64: the rows' numbers in the store"""
    tokens_in: Tensor
    """(B, T) int64: what is read"""
    tokens_out: Tensor
    """(B, T) int64: the piece that follows each"""
    lengths: Tensor
    """(B,) int64, of both alike"""
    positions: Tensor | None
    """(B, T) int64: counted from 0 in each of a row's documents; none where each row is of one"""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def tokens(self) -> int:
        """Pieces that are told."""
        return int(self.lengths.sum())

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return type(self)(
            index=self.index.to(device),
            tokens_in=self.tokens_in.to(device),
            tokens_out=self.tokens_out.to(device),
            lengths=self.lengths.to(device),
            positions=None if self.positions is None else self.positions.to(device),
        )

    def cut(self, count: int) -> tuple[Self, ...]:
        """`count` parts, as those of a `PairBatch`."""
        return (self,) if count == 1 else tuple(self._rows(start, end) for start, end in shares(len(self), count))

    def _rows(self, start: int, end: int) -> Self:
        rows = slice(start, end)
        width = slice(0, _longest(self.lengths[rows]))
        return type(self)(
            index=self.index[rows],
            tokens_in=self.tokens_in[rows, width].contiguous(),
            tokens_out=self.tokens_out[rows, width].contiguous(),
            lengths=self.lengths[rows],
            positions=None if self.positions is None else self.positions[rows, width].contiguous(),
        )


Batch = PairBatch | LabelledBatch | TextBatch
"""Any of them."""


def pair_batch(
    source: Ragged, target: Ragged, index: NDArray[np.integer], *, source_specials: Specials, specials: Specials
) -> PairBatch:
    """All these pairs as one batch; `index` gives the numbers they go by."""
    filled, source_lengths = fill(source, source_specials, end=True)
    target_in, target_lengths = fill(target, specials, begin=True)
    target_out, _ = fill(target, specials, end=True)
    return PairBatch(
        index=torch.from_numpy(index.astype(np.int64)),
        source=filled,
        source_lengths=source_lengths,
        target_in=target_in,
        target_out=target_out,
        target_lengths=target_lengths,
    )


def labelled_batch(
    texts: Ragged, labels: Tensor, index: NDArray[np.integer], *, specials: Specials,
    firsts: NDArray[np.integer] | None = None,
) -> LabelledBatch:  # fmt: skip
    """All these texts as one batch; `index` gives the numbers they go by.

    Of two texts `firsts` says how many pieces the first one has, the end that parts them included.
    """
    filled, lengths = fill(texts, specials, begin=True, end=True)
    return LabelledBatch(
        index=torch.from_numpy(index.astype(np.int64)), texts=filled, lengths=lengths, labels=labels,
        segments=None if firsts is None else segments_of(firsts, filled.shape[1]),
    )  # fmt: skip


def segments_of(firsts: NDArray[np.integer], width: int) -> Tensor:
    """For each place 0 in the first of two texts, begin included, and 1 behind it."""
    return torch.from_numpy((np.arange(width) > firsts[:, None]).astype(np.int64))


def text_batch(rows: Sequence[Sequence[NDArray[np.int64]]], index: NDArray[np.integer], *, pad: int) -> TextBatch:
    """Rows of documents, specials included, as one batch: each document's last piece is only told, never read."""
    lengths = [sum(len(part) - 1 for part in parts) for parts in rows]
    shape = (len(rows), max(lengths, default=0))
    read, told = np.full(shape, pad), np.full(shape, pad)
    positions = np.tile(np.arange(shape[1]), (shape[0], 1))
    for row, parts in enumerate(rows):
        place = 0
        for part in parts:
            end = place + len(part) - 1
            read[row, place:end], told[row, place:end] = part[:-1], part[1:]
            positions[row, place:] -= positions[row, place]
            place = end
    several = any(len(parts) > 1 for parts in rows)
    return TextBatch(
        index=torch.from_numpy(index.astype(np.int64)),
        tokens_in=torch.from_numpy(read),
        tokens_out=torch.from_numpy(told),
        lengths=torch.tensor(lengths, dtype=torch.int64),
        positions=torch.from_numpy(positions) if several else None,
    )


def fill(rows: Ragged, specials: Specials, *, begin: bool = False, end: bool = False) -> tuple[Tensor, Tensor]:
    """The rows, with begin before and end behind where asked, filled up to a rectangle; and their lengths."""
    lengths = np.diff(rows.offsets) + begin
    ids = np.full((len(rows), int(lengths.max(initial=0)) + end), specials.pad, dtype=np.int64)
    places = np.arange(ids.shape[1])
    if begin:
        ids[:, :1] = specials.begin
    ids[(places >= begin) & (places < lengths[:, None])] = rows.values  # row by row, as the flat array has them
    if end:
        ids[np.arange(len(rows)), lengths] = specials.end
        lengths = lengths + 1
    return torch.from_numpy(ids), torch.from_numpy(lengths)


def shares(rows: int, count: int) -> list[tuple[int, int]]:
    """Where `count` shares of the rows begin and end: the first are longer by one where it does not come out even."""
    short, more = divmod(rows, count)
    ends = [short * (i + 1) + min(i + 1, more) for i in range(count)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _longest(lengths: Tensor) -> int:
    return int(lengths.max()) if len(lengths) else 0
