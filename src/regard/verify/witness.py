"""A step model that another hides behind, and that remembers what every row looked at, wherever rows were moved."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from regard.decoding import CrossHead, Given, StepModel, Steps

Ids = tuple[int, ...]


class Witness:
    """Steps of another model, watched."""

    def __init__(self, model: StepModel, heads: Sequence[CrossHead]) -> None:
        self.model, self.heads = model, heads
        self.rows: dict[tuple[Ids, Ids], Tensor] = {}
        """by source and by what a row has read: the heads' mean attention of the last piece read, (M)"""

    @property
    def pieces(self) -> int:
        """The other's."""
        return self.model.pieces

    @property
    def device(self) -> torch.device:
        """The other's."""
        return self.model.device

    def start(
        self, sources: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], *, capacity: int,
        observe: Sequence[CrossHead] = (),
    ) -> "WitnessSteps":  # fmt: skip
        """The other's, with its heads observed."""
        steps = self.model.start(sources, prompts, capacity=capacity, observe=self.heads)
        return WitnessSteps(self, steps, [tuple(each) for each in sources], [[tuple(each)] for each in prompts])

    def seen(self, given: Given) -> Tensor:
        """(T, M) while each written piece was told."""
        whole = (*given.read, *given.written)
        first = len(given.read)
        rows = [self.rows[given.source, whole[:last]] for last in range(first, len(whole))]
        return torch.stack(rows)


class WitnessSteps:
    """Beside the other's steps, what each row has read."""

    def __init__(self, owner: Witness, steps: Steps, sources: list[Ids], read: list[list[Ids]]) -> None:
        self.owner, self.steps, self.sources, self.read = owner, steps, sources, read

    @property
    def sentences(self) -> int:
        """The other's."""
        return self.steps.sentences

    def advance(self, tokens_BW: Tensor, parents_BW: Tensor) -> Tensor:
        """The other's; what it looked at is kept under what each row has now read."""
        scores = self.steps.advance(tokens_BW, parents_BW)
        seen = self.steps.observed().mean(2).cpu()
        sides = zip(self.read, tokens_BW.tolist(), parents_BW.tolist(), strict=True)
        self.read = [
            [(*rows[parent], token) for token, parent in zip(tokens, parents, strict=True)]
            for rows, tokens, parents in sides
        ]
        for sentence, source in enumerate(self.sources):
            for row, read in enumerate(self.read[sentence]):
                self.owner.rows[source, read] = seen[sentence, row, : len(source)]
        return scores

    def keep(self, sentences: Tensor) -> None:
        """The same sentences stay."""
        self.steps.keep(sentences)
        self.sources = [self.sources[place] for place in sentences.tolist()]
        self.read = [self.read[place] for place in sentences.tolist()]

    def add(self, other: Self) -> None:
        """The other's behind these."""
        self.steps.add(other.steps)
        self.sources += other.sources
        self.read += other.read

    def observed(self) -> Tensor:
        """The other's."""
        return self.steps.observed()
