"""The cache of a decoder that looks through a window: memory is bounded by the window, however long the text grows.

Slots form a ring: a token at position p lies in slot p mod ring, over the one that no query can see any more. Global
positions, which all later queries see, have slots of their own in front. A slot's position follows from how many tokens
its row holds, so nothing but keys and values is kept. A slot that holds nothing to be seen is given a position in the
future, which no causal query sees.

Shapes: B rows, G key heads, S slots, T new tokens, K d_k, V d_v.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.config import ModelConfig
from regard.errors import InputError
from regard.nn.banded import reach
from regard.nn.cache import Cache, Step
from regard.nn.masks import Mask
from regard.nn.views import View

STEP = 64
"""tokens that a step may bring at most: longer prompts are read in parts"""


@dataclass(kw_only=True, eq=False)
class WindowCache(Cache):
    """Keys and values of the last tokens of each row, and of the global ones."""

    most: int
    """tokens that a step may bring"""
    everywhere: tuple[int, ...]
    """global positions; the first slots are theirs, in this order"""
    longest: int
    """tokens that a row may come to"""

    @property
    def capacity(self) -> int:
        """Tokens a row, of which most are forgotten on the way."""
        return self.longest

    @property
    def ring(self) -> int:
        """Slots that are used again and again."""
        return self.keys[0].shape[2] - len(self.everywhere)

    def open(self, mask: Mask, tokens: int) -> Step:
        """The next `tokens` of each row, under a decoder's mask."""
        furthest = max(self.lengths) + tokens
        if tokens > self.most:
            raise InputError(f"step of {tokens} tokens: a windowed cache takes {self.most} at a time")
        if furthest > self.longest:
            raise InputError(f"cache of {self.longest} tokens a row: {furthest} are asked for")
        device, front = self.keys[0].device, len(self.everywhere)
        even = min(self.lengths) == max(self.lengths)
        held = torch.tensor(self.lengths[:1] if even else self.lengths, device=device)[:, None]
        used = min(self.ring, furthest)
        last = held + tokens - 1
        keys = last - (last - torch.arange(used, device=device)) % self.ring
        marked = torch.tensor(self.everywhere, device=device, dtype=torch.long)
        keys = keys.masked_fill((keys < 0) | torch.isin(keys, marked), furthest)
        keys = torch.cat([marked.expand(len(keys), -1), keys], dim=1)
        positions = held + torch.arange(tokens, device=device)
        return Step(
            positions=positions,
            furthest=furthest,
            sight=View(mask=mask, queries=positions, keys=keys),
            slots=slice(0, front + used),
            start=self.lengths[0] if even else None,
        )

    def write(self, layer: int, k_BGTK: Tensor, v_BGTV: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        """Put a layer's new keys and values into their slots; gives all that the step may look at."""
        front = len(self.everywhere)
        slots = front + step.positions % self.ring
        for side, new in ((self.keys[layer], k_BGTK), (self.values[layer], v_BGTV)):
            if step.start is not None:
                side.index_copy_(2, slots[0], new.to(side.dtype))
            else:
                row = torch.arange(side.shape[0], device=side.device)[:, None]
                side[row, :, slots] = new.transpose(1, 2).to(side.dtype)
            for place, position in enumerate(self.everywhere):
                for row, token in (step.positions == position).nonzero().tolist():
                    rows = slice(None) if step.start is not None else row
                    side[rows, :, place] = new[rows, :, token]
        return self.keys[layer][:, :, step.slots], self.values[layer][:, :, step.slots]

    def select(self, rows: Sequence[int] | Tensor) -> "WindowCache":
        """These rows in this order."""
        return self._like(super().select(rows))

    def join(self, other: Cache) -> "WindowCache":
        """This cache's rows and then the other's, which has to be of the same model."""
        return self._like(super().join(other))

    def _like(self, cache: Cache) -> "WindowCache":
        return WindowCache(
            keys=cache.keys, values=cache.values, lengths=cache.lengths, memory=cache.memory, most=self.most,
            everywhere=self.everywhere, longest=self.longest,
        )  # fmt: skip


def window_cache(
    config: ModelConfig, mask: Mask, *, rows: int, capacity: int, device: torch.device, dtype: torch.dtype
) -> WindowCache | None:
    """A cache bounded by the mask's window that holds nothing yet; none where the mask has no window.

    While a global position is read it may look at all before it, so the ring reaches back to the last of them.
    """
    band = reach(mask)
    if band is None:
        return None
    most = min(STEP, capacity)
    everywhere = tuple(position for position in band.everywhere if position < capacity)
    ring = max(band.before * band.dilation, *everywhere, 0) + most
    shape = (rows, config.key_heads, len(everywhere) + min(ring, capacity + most))

    def empty(width: int) -> list[Tensor]:
        return [torch.zeros(*shape, width, device=device, dtype=dtype) for _ in range(config.decoder_layers)]

    return WindowCache(
        keys=empty(config.key_width), values=empty(config.value_width), lengths=[0] * rows, most=most,
        everywhere=everywhere, longest=capacity,
    )  # fmt: skip
