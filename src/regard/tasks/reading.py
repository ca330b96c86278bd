"""Texts for an encoder in use: cut into pieces, in batches of like length, to states; never in training.

What is longer than the model takes is cut off at the end, and counted.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.batch import labelled_batch
from regard.data.labelled import joined_texts
from regard.data.ragged import Ragged
from regard.models import EncoderOnly
from regard.text import Ids, LabelledText, Tokenizer

BATCH_TOKENS = 8192
"""pieces, padding included, that are read together"""

Text = str | tuple[str, str]
"""One text, or two that are read together."""


class ReadBatch(NamedTuple):
    """Some of the texts, read."""

    rows: list[int]
    """their numbers"""
    states: Tensor
    """(B, S, D)"""
    lengths: Tensor
    """(B,)"""


class Reader:
    """Texts to states."""

    def __init__(self, model: EncoderOnly, tokenizer: Tokenizer, *, lowercase: bool) -> None:
        self.model, self.tokenizer, self.lowercase = model, tokenizer, lowercase
        self.room = model.config.max_length - 2
        """pieces that the model takes, beside begin and end"""
        self.cut = 0
        """texts that were cut off so far"""

    def pieces(self, texts: Sequence[Text]) -> list[tuple[Ids, int]]:
        """Each text's ids, cut off where they are too many; and how many are the first one's."""
        rows = [_row(text, lower=self.lowercase) for text in texts]
        found = []
        for ids, first in joined_texts(rows, self.tokenizer):
            self.cut += len(ids) > self.room
            found.append((ids[: self.room], min(first, self.room)))
        return found

    def read(self, texts: Sequence[Text]) -> Iterator[ReadBatch]:
        """The texts that are not blank, the longest first."""
        said = [row for row, text in enumerate(texts) if not is_blank(text)]
        cuts = dict(zip(said, self.pieces([texts[row] for row in said]), strict=True))
        two = any(not isinstance(texts[row], str) for row in said)
        device = next(self.model.parameters()).device
        for rows in _by_length(cuts):
            batch = labelled_batch(
                Ragged.of([cuts[row][0] for row in rows]), torch.zeros(len(rows)), np.array(rows),
                specials=self.tokenizer.specials, firsts=np.array([cuts[row][1] for row in rows]) if two else None,
            ).to(device)  # fmt: skip
            with torch.no_grad():
                states = self.model(batch.texts, batch.lengths, segments_BS=batch.segments)
            yield ReadBatch(rows, states, batch.lengths)


def is_blank(text: Text) -> bool:
    """Whether there is nothing to read; of two texts, in one of them."""
    return not text.strip() if isinstance(text, str) else not all(map(str.strip, text))


def _row(text: Text, *, lower: bool) -> LabelledText:
    first, second = (text, None) if isinstance(text, str) else text
    if lower:
        first, second = first.lower(), second and second.lower()
    return LabelledText(first, (), 0, second)


def _by_length(cuts: dict[int, tuple[Ids, int]]) -> Iterator[list[int]]:
    batch: list[int] = []
    for row in sorted(cuts, key=lambda row: -len(cuts[row][0])):
        if batch and (len(batch) + 1) * (len(cuts[batch[0]][0]) + 2) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
