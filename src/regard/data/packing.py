"""Rows of a language model's text: short documents packed whole into rows, long ones read through windows.

A document is read as begin, its pieces, end. Where it fits the window it is read whole, beside others that fill up the
row; none sees another, and positions are counted anew in each, so that the loss is what each alone would give. A longer
one is cut in windows. In training each window is moved by a random part of its width, so that over epochs a text is
read from everywhere; without randomness the windows stand side by side, and every piece is told once.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.batch import TextBatch, text_batch
from regard.data.documents import TextStore
from regard.data.plan import Lengths
from regard.text import Specials

SPAN = np.dtype([(name, np.int64) for name in ("document", "first", "last", "low", "high")])
"""A stretch of a document, from place `first` to before `last`: place 0 is the begin, the last one the end. All but the
first are told from those before them. It may be moved between `low` and `high`."""

Spans = NDArray[Any]
"""Of the type SPAN."""

_LARGE = 2**26
"""bytes of text from which mapped pages are given back"""


class PackedStore:
    """Spans of a text store in rows that tell at most `window` pieces."""

    def __init__(self, texts: TextStore, sets: Sequence[Spans], *, window: int, specials: Specials) -> None:
        self._texts, self._specials, self.window = texts, specials, window
        packed = [_rows(spans, window) for spans in sets]
        self.sets = tuple(len(sizes) for _, sizes in packed)
        """rows of each set, which stand one behind another"""
        self._parts = np.concatenate([parts for parts, _ in packed])
        self._ends = np.cumsum(np.concatenate([sizes for _, sizes in packed]))
        told = np.concatenate([_told(spans) for spans in sets])
        self.documents = len(told)
        """documents that are read"""
        self.long = int((told > window).sum())
        """those that are longer than the window"""
        self.pieces = int(told.sum())
        """pieces that are told"""
        self.share_long = float(told[told > window].sum() / max(self.pieces, 1))
        """share of them that long documents hold"""

    def __len__(self) -> int:
        return len(self._ends)

    def __str__(self) -> str:
        """One line for people."""
        long = f", {self.long:,} of them longer and read in parts" if self.long else ""
        return f"{self.documents:,} documents of {self.pieces:,} pieces in {len(self):,} rows of {self.window}{long}"

    def lengths(self) -> tuple[Lengths]:
        """The pieces that each row tells."""
        whole = np.concatenate([[0], _told(self._parts).cumsum()])
        return (np.diff(whole[self._ends], prepend=0),)

    def batch(self, rows: NDArray[np.integer], random: np.random.Generator | None = None) -> TextBatch:
        """These rows as a batch; with randomness, the windows of long documents are moved."""
        filled = [list(self._row(row, random)) for row in rows.tolist()]
        if self._texts.documents.values.nbytes > _LARGE:
            self._texts.documents.release()
        return text_batch(filled, rows, pad=self._specials.pad)

    def documents_alone(self) -> Iterator[NDArray[np.int64]]:
        """The ids of each span, specials included, one by one."""
        for row in range(len(self)):
            yield from self._row(row, None)

    def _row(self, row: int, random: np.random.Generator | None) -> Iterator[NDArray[np.int64]]:
        start = int(self._ends[row - 1]) if row else 0
        for document, first, last, low, high in self._parts[start : self._ends[row]].tolist():
            if random is not None and high - low > last - first:
                width = self.window + 1
                place = min(max(first + int(random.integers(self.window)), low), high - width)
                yield self._ids(document, place, place + width)
            else:
                yield self._ids(document, first, last)

    def _ids(self, document: int, first: int, last: int) -> NDArray[np.int64]:
        """The document's places from `first` to before `last`."""
        pieces = self._texts.documents[document]
        ids = np.empty(last - first, dtype=np.int64)
        starts, ends = first == 0, last == len(pieces) + 2
        ids[starts : len(ids) - ends] = pieces[max(first - 1, 0) : last - 1 - ends]
        if starts:
            ids[0] = self._specials.begin
        if ends:
            ids[-1] = self._specials.end
        return ids


def whole_spans(texts: TextStore) -> list[Spans]:
    """Every document of each set."""
    sizes = texts.documents.lengths(more=2).astype(np.int64)
    ends = np.cumsum(texts.sets)
    return [
        _spans(np.arange(end - count, end), 0, sizes[end - count : end])
        for end, count in zip(ends.tolist(), texts.sets, strict=True)
    ]


def hold_out(sets: Sequence[Spans], share: float, window: int) -> tuple[list[Spans], list[Spans]]:
    """Each set parted at its end: what is learned from, and the `share` that is held out.

    A document where they part is cut in two if it is longer than the window; else it is learned from.
    """
    kept, held = [], []
    for spans in sets:
        ends = _told(spans).cumsum()
        whole = int(ends[-1]) if len(ends) else 0
        limit = round(whole * (1 - share))
        place = int(np.searchsorted(ends, limit))
        kept.append(spans[:place].copy())
        held.append(spans[place + 1 :].copy())
        if place == len(spans):
            continue
        parted, told = spans[place : place + 1], int(_told(spans)[place])
        cut = int(parted["first"][0]) + limit - (int(ends[place]) - told)
        if told <= window or limit == ends[place]:
            kept[-1] = np.concatenate([kept[-1], parted])
            continue
        kept[-1] = np.concatenate([kept[-1], _spans(parted["document"], parted["first"], np.array([cut + 1]))])
        held[-1] = np.concatenate([_spans(parted["document"], np.array([cut]), parted["last"]), held[-1]])
    return kept, held


def _spans(document: NDArray[np.int64], first: NDArray[np.int64] | int, last: NDArray[np.int64]) -> Spans:
    """Spans that cannot be moved."""
    spans = np.empty(len(document), dtype=SPAN)
    spans["document"], spans["first"], spans["last"] = document, first, last
    spans["low"], spans["high"] = first, last
    return spans


def _told(spans: Spans) -> NDArray[np.int64]:
    told: NDArray[np.int64] = spans["last"] - spans["first"] - 1
    return told


def _rows(spans: Spans, window: int) -> tuple[Spans, NDArray[np.int64]]:
    """The parts that the spans are read in, row by row, and how many each row has."""
    told = _told(spans)
    short, long = np.flatnonzero(told <= window), np.flatnonzero(told > window)
    order, sizes = pack(told[short], window)
    counts = -(-told[long] // window)
    parts = np.repeat(spans[long], counts)
    number = np.arange(len(parts)) - np.repeat(counts.cumsum() - counts, counts)
    parts["first"] += number * window
    parts["last"] = np.minimum(parts["first"] + window + 1, parts["last"])
    return (
        np.concatenate([spans[short][order], parts]),
        np.concatenate([sizes, np.ones(len(parts), dtype=np.int64)]),
    )


def pack(lengths: NDArray[np.int64], window: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of the things of these lengths share a row of `window`: all of them row by row, and each row's number.

    The longest first, each into the row with the least room that holds it ("best fit decreasing").
    """
    rows: list[list[int]] = []
    open_rows: list[list[int]] = [[] for _ in range(window + 1)]  # by the room that is left
    rooms = 0  # bit r: some row has room r
    for thing in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[thing])
        fitting = rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            row = open_rows[room].pop()
            if not open_rows[room]:
                rooms ^= 1 << room
            rows[row].append(thing)
        else:
            room, row = window, len(rows)
            rows.append([thing])
        left = room - length
        open_rows[left].append(row)
        rooms |= 1 << left
    order = np.array([thing for row in rows for thing in row], dtype=np.int64)
    return order, np.array([len(row) for row in rows], dtype=np.int64)
