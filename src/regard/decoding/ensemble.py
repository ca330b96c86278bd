"""Several models that write together: the mean of their probabilities. They share a vocabulary and nothing else."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from regard.decoding.steps import CrossHead, StepModel, Steps
from regard.errors import InputError


class Ensemble:
    """A model for a search, made of models."""

    def __init__(self, members: Sequence[StepModel]) -> None:
        sizes = {member.pieces for member in members}
        if len(sizes) != 1:
            raise InputError(f"an ensemble of {len(members)} models with {sorted(sizes)} pieces: must have the same")
        self.members = tuple(members)

    @property
    def pieces(self) -> int:
        """Size of the vocabulary."""
        return self.members[0].pieces

    @property
    def device(self) -> torch.device:
        """Where all of them are."""
        return self.members[0].device

    def start(
        self, sources: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], *, capacity: int,
        observe: Sequence[CrossHead] = (),
    ) -> "EnsembleSteps":  # fmt: skip
        """Every member starts."""
        return EnsembleSteps(
            [member.start(sources, prompts, capacity=capacity, observe=observe) for member in self.members]
        )


class EnsembleSteps:
    """The members' steps, side by side."""

    def __init__(self, members: Sequence[Steps]) -> None:
        self.members = members

    @property
    def sentences(self) -> int:
        """How many there are."""
        return self.members[0].sentences

    def advance(self, tokens_BW: Tensor, parents_BW: Tensor) -> Tensor:
        """Log of the mean probability of each next piece."""
        sides = [member.advance(tokens_BW, parents_BW).float().log_softmax(-1) for member in self.members]
        return torch.stack(sides).logsumexp(0) - torch.tensor(len(sides), device=sides[0].device).log()

    def keep(self, sentences: Tensor) -> None:
        """In every member."""
        for member in self.members:
            member.keep(sentences)

    def add(self, other: Self) -> None:
        """Member to member."""
        for member, its in zip(self.members, other.members, strict=True):
            member.add(its)

    def observed(self) -> Tensor:
        """The mean over the members."""
        return torch.stack([member.observed() for member in self.members]).mean(0)
