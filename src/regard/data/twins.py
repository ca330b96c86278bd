"""Pairs of texts that belong together, each side read for itself: what a text's vector is learned from by contrast."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batch import fill, shares
from regard.data.pairs import PairStore
from regard.data.plan import Lengths
from regard.text import FilterReport, Tokenizer


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinBatch:
    """B texts and their B partners."""

    index: Tensor
    """(B,) int64: the rows' numbers in the store"""
    left: Tensor
    """(B, S) int64: begin, pieces, end"""
    left_lengths: Tensor
    """(B,) int64"""
    right: Tensor
    """(B, T) int64: begin, pieces, end of each one's partner"""
    right_lengths: Tensor
    """(B,) int64"""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def tokens(self) -> int:
        """Pairs: what a loss is the mean over."""
        return len(self)

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return type(self)(
            index=self.index.to(device),
            left=self.left.to(device),
            left_lengths=self.left_lengths.to(device),
            right=self.right.to(device),
            right_lengths=self.right_lengths.to(device),
        )

    def cut(self, count: int) -> tuple[Self, ...]:
        """`count` parts, as those of a `PairBatch`; a pair then is told from fewer others."""
        return tuple(self._rows(slice(start, end)) for start, end in shares(len(self), count))

    def _rows(self, rows: slice) -> Self:
        lefts, rights = self.left_lengths[rows], self.right_lengths[rows]
        return type(self)(
            index=self.index[rows],
            left=self.left[rows, : int(lefts.max()) if len(lefts) else 0].contiguous(),
            left_lengths=lefts,
            right=self.right[rows, : int(rights.max()) if len(rights) else 0].contiguous(),
            right_lengths=rights,
        )


class TwinStore:
    """The pairs of a pair store whose two sides one tokeniser has cut."""

    def __init__(self, pairs: PairStore, tokenizer: Tokenizer) -> None:
        self._pairs, self._specials = pairs, tokenizer.specials
        self.sets = pairs.sets
        """pairs of each set, which stand one behind another"""
        self.report: FilterReport = pairs.report
        """how many pairs were kept, and how many left out for each reason"""

    def __len__(self) -> int:
        return len(self._pairs)

    def lengths(self) -> tuple[Lengths, Lengths]:
        """Each row's pieces on both sides, begin and end included."""
        return self._pairs.source.lengths(more=2), self._pairs.target.lengths(more=2)

    def batch(self, rows: NDArray[np.integer], random: np.random.Generator | None = None) -> TwinBatch:
        """These rows as a batch; nothing is random here."""
        left, left_lengths = fill(self._pairs.source.take(rows), self._specials, begin=True, end=True)
        right, right_lengths = fill(self._pairs.target.take(rows), self._specials, begin=True, end=True)
        return TwinBatch(
            index=torch.from_numpy(rows.astype(np.int64)), left=left, left_lengths=left_lengths, right=right,
            right_lengths=right_lengths,
        )  # fmt: skip
