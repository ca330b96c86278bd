"""Plain text some pieces of which are hidden, for an encoder to tell (masked language modelling, BERT).

Of the pieces that are to be told most are replaced by the mask, some by any other piece, and some stay, so that the
model cannot know which of those that it sees are right (Devlin et al. 2019). Which ones is drawn anew for each epoch,
from random numbers that depend on the place in the data only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batch import fill, shares
from regard.data.documents import TextStore
from regard.data.plan import Lengths
from regard.data.ragged import Ragged
from regard.errors import InputError
from regard.text import Tokenizer

MASKED, RANDOM = 0.8, 0.1
"""of the pieces to be told: how many are hidden, and how many become another; the rest stays"""
UNTOLD = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenBatch:
    """B texts of S pieces, some of them hidden."""

    index: Tensor
    """(B,) int64: the rows' numbers in the store"""
    texts: Tensor
    """(B, S) int64: begin, pieces as they are shown, end"""
    lengths: Tensor
    """(B,) int64"""
    targets: Tensor
    """(B, S) int64: the right piece where it is to be told, else -1"""

    def __len__(self) -> int:
        return len(self.index)

    @property
    def tokens(self) -> int:
        """Pieces that are to be told: what a loss is the mean over."""
        return int((self.targets != UNTOLD).sum())

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return type(self)(
            index=self.index.to(device),
            texts=self.texts.to(device),
            lengths=self.lengths.to(device),
            targets=self.targets.to(device),
        )

    def cut(self, count: int) -> tuple[Self, ...]:
        """`count` parts, as those of a `PairBatch`."""
        return tuple(self._rows(start, end) for start, end in shares(len(self), count))

    def _rows(self, start: int, end: int) -> Self:
        rows = slice(start, end)
        width = slice(0, int(self.lengths[rows].max()) if end > start else 0)
        return type(self)(
            index=self.index[rows],
            texts=self.texts[rows, width].contiguous(),
            lengths=self.lengths[rows],
            targets=self.targets[rows, width].contiguous(),
        )


class HiddenStore:
    """The documents of a text store, in rows of at most `window` pieces; longer ones are cut evenly."""

    def __init__(
        self, texts: TextStore, tokenizer: Tokenizer, *, window: int, share: float, whole_words: bool = False
    ) -> None:
        if tokenizer.specials.mask is None:
            raise InputError("this tokeniser has no mask to hide pieces with")
        self._documents, self._tokenizer, self._share, self._whole_words = (
            texts.documents, tokenizer, share, whole_words,
        )  # fmt: skip
        self._specials, self._mask = tokenizer.specials, tokenizer.specials.mask
        silent = {self._specials.pad, self._specials.begin, self._specials.end, self._specials.unknown, self._mask}
        self._ordinary = np.array([id for id in range(tokenizer.size) if id not in silent], dtype=np.int64)
        self._spans = np.array(list(_spans(texts.documents, window)), dtype=np.int64).reshape(-1, 3)
        ends = np.cumsum(texts.sets)
        counts = np.searchsorted(self._spans[:, 0], ends)
        self.sets = tuple(np.diff(counts, prepend=0).tolist())
        """rows of each set, which stand one behind another"""

    def __len__(self) -> int:
        return len(self._spans)

    def lengths(self) -> tuple[Lengths]:
        """Each row's pieces, begin and end included."""
        return (self._spans[:, 2] - self._spans[:, 1] + 2,)

    def batch(self, rows: NDArray[np.integer], random: np.random.Generator | None = None) -> HiddenBatch:
        """These rows as a batch. Without `random` the same pieces are hidden each time."""
        draw = random or np.random.default_rng(0)
        shown, told = [], []
        for row in rows.tolist():
            document, start, end = self._spans[row]
            ids = self._documents[document][start:end].astype(np.int64)
            chosen = self._chosen(ids, draw)
            told.append(np.where(chosen, ids, UNTOLD))
            shown.append(self._hidden(ids, chosen, draw))
        texts, lengths = fill(Ragged.of(shown), self._specials, begin=True, end=True)
        targets = np.full(texts.shape, UNTOLD, dtype=np.int64)
        for row, right in enumerate(told):
            targets[row, 1 : 1 + len(right)] = right
        return HiddenBatch(
            index=torch.from_numpy(rows.astype(np.int64)), texts=texts, lengths=lengths,
            targets=torch.from_numpy(targets),
        )  # fmt: skip

    def _chosen(self, ids: NDArray[np.int64], draw: np.random.Generator) -> NDArray[np.bool_]:
        """Which pieces are to be told: each with the share's chance, words as a whole if asked; one at least."""
        units = np.array(self._tokenizer.words(ids.tolist())) if self._whole_words else np.arange(len(ids))
        count = int(units[-1]) + 1
        drawn = draw.random(count) < self._share
        if not drawn.any():
            drawn[draw.integers(count)] = True
        chosen: NDArray[np.bool_] = drawn[units]
        return chosen

    def _hidden(
        self, ids: NDArray[np.int64], chosen: NDArray[np.bool_], draw: np.random.Generator
    ) -> NDArray[np.int64]:
        """The pieces as they are shown."""
        kind = draw.random(len(ids))
        others = self._ordinary[draw.integers(len(self._ordinary), size=len(ids))]
        shown = np.where(chosen & (kind < MASKED), self._mask, ids)
        return np.where(chosen & (kind >= MASKED) & (kind < MASKED + RANDOM), others, shown)


def _spans(documents: Ragged, window: int) -> Iterator[tuple[int, int, int]]:
    """Document, start and end of each row."""
    for document, length in enumerate(np.diff(documents.offsets).tolist()):
        parts = -(-length // window)
        for part in range(parts):
            yield document, part * length // parts, (part + 1) * length // parts
