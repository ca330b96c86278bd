"""A view: where the queries and keys of one attention stand, and what the mask shows between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.nn.masks import WINDOWS, Full, Mask


@dataclass(frozen=True, eq=False)
class View:
    """Made once by a stack and handed to all its layers, so the mask is drawn at most once a forward.

    Shapes: B batch, T queries, S keys.
    """

    mask: Mask
    queries: Tensor
    """(B or 1, T) positions"""
    keys: Tensor
    """(B or 1, S) positions"""
    square: bool = False
    """whether queries and keys are the same positions 0, 1, 2, … in every row"""

    @cached_property
    def seen(self) -> Tensor | None:
        """(B or 1, 1, T, S), true where a query may look; none if everywhere."""
        return None if isinstance(self.mask, Full) else self.mask.draw(self.queries, self.keys)[:, None]

    @cached_property
    def blind(self) -> Tensor | None:
        """(B or 1, 1, T, 1), true where a query may look at nothing; none if there surely is no such query."""
        beside = not self.square and any(isinstance(part, WINDOWS) for part in self.mask.parts)  # no key may be near
        if self.seen is None or not (self.mask.may_blind or beside):
            return None
        return ~self.seen.any(-1, keepdim=True)

    @cached_property
    def additive(self) -> Tensor | None:
        """The mask as the kernels take it: 0 where seen, minus infinity elsewhere; blind rows see all, for now."""
        if self.seen is None:
            return None
        hidden = ~self.seen if self.blind is None else ~(self.seen | self.blind)
        return torch.zeros(hidden.shape, device=hidden.device).masked_fill_(hidden, float("-inf"))

    def rows(self, rows: Sequence[int]) -> "View":
        """The same for a few of the queries."""
        index = torch.tensor(list(rows), device=self.queries.device)
        return View(mask=self.mask, queries=self.queries[:, index], keys=self.keys)


def view(mask: Mask, queries: int, keys: int, *, device: torch.device | None = None) -> View:
    """The view of a whole sequence by a whole sequence, both counted from 0."""
    both = torch.arange(max(queries, keys), device=device)[None]
    return View(mask=mask, queries=both[:, :queries], keys=both[:, :keys], square=queries == keys)
