"""The cache: keys and values of the tokens that a decoder has seen, so that each step computes only the new ones.

A value that the decoder owns and passes in; no module holds state between calls. Memory is taken once. A token's slot
is its position, so rows of different length stand side by side: what lies behind a row's end is never seen, since no
query looks ahead, and is overwritten when the row grows.

Shapes: B rows, G key heads, C capacity, T new tokens, S visible slots, K d_k, V d_v.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import ModelConfig
from regard.errors import InputError
from regard.nn.banded import reach
from regard.nn.masks import Mask, padding
from regard.nn.views import View


@dataclass(kw_only=True, eq=False)
class Memory:
    """What a decoder's cross-attention looks at: each layer's keys and values of the source, and what of it is real."""

    layers: list[tuple[Tensor, Tensor]]
    """for each layer (B, G, M, K) and (B, G, M, V), M the longest source"""
    lengths: Tensor
    """(B) the sources' lengths"""

    @property
    def mask(self) -> Mask:
        """The sources' padding."""
        return padding(self.lengths)

    @property
    def longest(self) -> int:
        """Tokens of the longest source, padding included."""
        return self.layers[0][0].shape[2]

    def select(self, rows: Tensor) -> "Memory":
        """These rows in this order."""
        return Memory(layers=[(k[rows], v[rows]) for k, v in self.layers], lengths=self.lengths[rows])

    def join(self, other: "Memory") -> "Memory":
        """These rows and then the other's."""
        layers = [(_under(a, c), _under(b, d)) for (a, b), (c, d) in zip(self.layers, other.layers, strict=True)]
        return Memory(layers=layers, lengths=torch.cat([self.lengths, other.lengths]))


@dataclass(kw_only=True, eq=False)
class Step:
    """Where the tokens of one forward go, and what they may look at."""

    positions: Tensor
    """(B or 1, T) of the new tokens"""
    furthest: int
    """all positions are below this"""
    sight: View
    slots: slice | Tensor
    """the slots that `sight` is of"""
    start: int | None
    """first slot to write if all rows are of one length"""


@dataclass(kw_only=True, eq=False)
class Cache:
    """Room for `capacity` tokens a row."""

    keys: list[Tensor]
    """for each layer (B, G, C, K)"""
    values: list[Tensor]
    """for each layer (B, G, C, V)"""
    lengths: list[int]
    """tokens that each row holds"""
    memory: Memory | None = None
    """of an encoder-decoder"""

    @property
    def capacity(self) -> int:
        """Tokens a row that there is room for."""
        return self.keys[0].shape[2]

    @property
    def rows(self) -> int:
        """Rows in use."""
        return len(self.lengths)

    def open(self, mask: Mask, tokens: int) -> Step:
        """The next `tokens` of each row, under a decoder's mask."""
        shortest, longest = min(self.lengths), max(self.lengths)
        furthest = longest + tokens
        if furthest > self.capacity:
            raise InputError(f"cache of {self.capacity} tokens a row: {furthest} are asked for")
        device = self.keys[0].device
        start = shortest if shortest == longest else None
        held = torch.tensor([shortest] if start is not None else self.lengths, device=device)
        positions = held[:, None] + torch.arange(tokens, device=device)
        slots = _slots(mask, shortest, furthest, device)
        keys = torch.arange(furthest, device=device)[slots][None]
        square = start == 0 and isinstance(slots, slice)
        sight = View(mask=mask, queries=positions, keys=keys, square=square)
        return Step(positions=positions, furthest=furthest, sight=sight, slots=slots, start=start)

    def write(self, layer: int, k_BGTK: Tensor, v_BGTV: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        """Put a layer's new keys and values into their slots; gives all that the step may look at."""
        for held, new in ((self.keys[layer], k_BGTK), (self.values[layer], v_BGTV)):
            if step.start is not None:
                held[:, :, step.start : step.start + new.shape[2]] = new
            else:
                row = torch.arange(held.shape[0], device=held.device)[:, None]
                held[row, :, step.positions] = new.transpose(1, 2).to(held.dtype)
        return self.keys[layer][:, :, step.slots], self.values[layer][:, :, step.slots]

    def close(self, step: Step, counts: Sequence[int] | None) -> None:
        """Count the new tokens as held: all of them, or of each row only the first `counts`."""
        tokens = step.positions.shape[1]
        new = [tokens] * self.rows if counts is None else list(counts)
        if len(new) != self.rows or min(new) < 0 or max(new) > tokens:
            raise InputError(f"counts = {new}: must be {self.rows} numbers from 0 to {tokens}")
        self.lengths = [held + more for held, more in zip(self.lengths, new, strict=True)]

    def select(self, rows: Sequence[int] | Tensor) -> "Cache":
        """These rows in this order: reorders, drops and repeats them."""
        index = torch.as_tensor(rows, device=self.keys[0].device)
        return Cache(
            keys=[side[index] for side in self.keys],
            values=[side[index] for side in self.values],
            lengths=[self.lengths[row] for row in index.tolist()],
            memory=self.memory and self.memory.select(index),
        )

    def join(self, other: "Cache") -> "Cache":
        """This cache's rows and then the other's: waiting sentences enter."""
        return Cache(
            keys=[_under(a, b) for a, b in zip(self.keys, other.keys, strict=True)],
            values=[_under(a, b) for a, b in zip(self.values, other.values, strict=True)],
            lengths=self.lengths + other.lengths,
            memory=self.memory.join(other.memory) if self.memory and other.memory else None,
        )


def empty_cache(
    config: ModelConfig,
    *,
    rows: int,
    capacity: int,
    device: torch.device,
    dtype: torch.dtype,
    memory: Memory | None = None,
) -> Cache:
    """A cache that holds nothing yet."""
    if capacity > config.max_length and config.positions in ("learned", "normalised_index"):
        raise InputError(
            f"cache of {capacity} tokens a row: {config.positions} positions end at max_length = {config.max_length}"
        )
    shape = (rows, config.key_heads, capacity)
    return Cache(
        keys=[torch.zeros(*shape, config.key_width, device=device, dtype=dtype) for _ in range(config.decoder_layers)],
        values=[
            torch.zeros(*shape, config.value_width, device=device, dtype=dtype) for _ in range(config.decoder_layers)
        ],
        lengths=[0] * rows,
        memory=memory,
    )


def _slots(mask: Mask, shortest: int, furthest: int, device: torch.device) -> slice | Tensor:
    """The slots that queries at or behind `shortest` can see: all, or under a window the last and the global ones."""
    band = reach(mask)
    first = 0 if band is None else max(0, shortest - band.before * band.dilation)
    marked = [] if band is None else [position for position in band.everywhere if position < first]
    if any(shortest <= position < furthest for position in (band.everywhere if band else ())):
        return slice(0, furthest)  # a global query looks at everything
    if not marked:
        return slice(first, furthest)
    return torch.tensor([*marked, *range(first, furthest)], device=device)


def _under(first: Tensor, second: Tensor) -> Tensor:
    """Rows of two tensors (B, G, C, D) under each other, the shorter filled up with zeros."""
    longest = max(first.shape[2], second.shape[2])
    return torch.cat([F.pad(side, (0, 0, 0, longest - side.shape[2])) for side in (first, second)])
