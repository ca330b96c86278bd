"""Attention in a band: windows of keys in time and memory that grow linearly with length, without the n x n matrix.

The sequence is cut into blocks; a block of queries and the stretch of keys that any of them may see are one small
ordinary attention. Dilation first deals the sequence out to `dilation` shorter ones. Global positions are put in
front of each block's keys, and as queries they look at everything. This file is geometry only: the attention of each
block is handed in.

Shapes: B batch, H heads, G key heads, N sequence, R residues of the dilation, L blocks of C queries and W keys.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.masks import Causal, Dilated, GlobalSliding, Mask, Sliding
from regard.nn.relations import Relation
from regard.nn.views import View

Attend = Callable[[Tensor, Tensor, Tensor, View], Tensor]
"""Ordinary attention of queries to keys and values under a view."""


@dataclass(frozen=True, kw_only=True)
class Band:
    """How far a query looks, in steps of the dilation, and the positions beyond that all look at."""

    before: int
    after: int
    dilation: int = 1
    everywhere: tuple[int, ...] = ()

    @property
    def block(self) -> int:
        """Queries taken together: as many as the window reaches wastes a third of the products, and copies little."""
        return min(max(self.before, 64), 256)


def reach(mask: Mask) -> Band | None:
    """The band that a mask keeps to, if it keeps to one."""
    causal = any(isinstance(part, Causal) for part in mask.parts)
    for part in mask.parts:
        match part:
            case Sliding(window=window):
                return Band(before=window, after=0 if causal else window)
            case Dilated(window=window, dilation=dilation):
                return Band(before=window, after=0 if causal else window, dilation=dilation)
            case GlobalSliding(window=window, positions=positions):
                return Band(before=window, after=0 if causal else window, everywhere=positions)
    return None


def band_of(sight: View, relation: Relation | None) -> Band | None:
    """The band to compute in, or none where the whole matrix is as small, or cannot be avoided."""
    band = reach(sight.mask) if sight.square and sight.queries.shape[0] == 1 else None
    if band is None or (relation is not None and not relation.shift_invariant):
        return None
    length = sight.queries.shape[1]
    keys = (band.block + band.before + band.after) * band.dilation
    return band if length > max(128, keys) else None


def banded_attention(
    q_BHNK: Tensor, k_BGNK: Tensor, v_BGNV: Tensor, mask: Mask, band: Band, *, attend: Attend,
    relation: Relation | None = None,
) -> Tensor:  # fmt: skip
    """What each query finds under a mask that keeps to the band, (B, H, N, V).

    `relation` is what `attend` adds to the scores: its weights learn through here.
    """
    length = q_BHNK.shape[2]
    everywhere = tuple(position for position in band.everywhere if position < length)
    plan = _Plan(band=band, length=length, everywhere=everywhere, mask=mask, by_place=relation is not None)
    learned: list[Tensor] = list(relation.parameters()) if isinstance(relation, nn.Module) else []
    marked = torch.tensor(everywhere, device=q_BHNK.device, dtype=torch.long)
    front = (k_BGNK[:, :, marked], v_BGNV[:, :, marked])
    sides = (plan.fill_queries(q_BHNK), plan.fill_keys(k_BGNK), plan.fill_keys(v_BGNV), *front)
    out: Tensor = _Groups.apply(plan, attend, *sides, *learned)  # type: ignore[no-untyped-call]
    out = out[:, :, :length]
    if everywhere:
        sight = View(mask=mask, queries=marked[None], keys=torch.arange(length, device=q_BHNK.device)[None])
        out = out.index_copy(2, marked, attend(q_BHNK[:, :, marked], k_BGNK, v_BGNV, sight))
    return out


class _Groups(torch.autograd.Function):
    """The blocks, a group at a time; backward computes each group once more instead of keeping what it needs.

    So memory is the inputs, the output and one group's, and short-lived tensors stay in the cache: at 16,384 tokens
    this took less time than keeping everything, most of which went into fetching fresh memory.
    """

    @staticmethod
    def forward(ctx: Any, plan: "_Plan", attend: Attend, *tensors: Tensor) -> Tensor:
        q, v = tensors[0], tensors[2]
        ctx.plan, ctx.attend = plan, attend
        ctx.save_for_backward(*tensors)
        ctx.fate = torch.get_rng_state(), torch.cuda.get_rng_state_all()  # for the same dropout in backward
        out = q.new_empty(*q.shape[:3], v.shape[-1])
        for group in plan.groups(q):
            out[:, :, group.queries] = group.attend(attend, *tensors[:5])
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        plan: _Plan = ctx.plan
        q, k, v, *rest = ctx.saved_tensors
        wholes = [torch.zeros_like(side) for side in ctx.saved_tensors]
        with torch.enable_grad(), torch.random.fork_rng():
            torch.set_rng_state(ctx.fate[0])
            torch.cuda.set_rng_state_all(ctx.fate[1])
            for group in plan.groups(q):
                parts = [side.detach().requires_grad_() for side in group.parts(q, k, v)]
                front = [side.detach().requires_grad_() for side in rest[:2]]
                out = group.attend_parts(ctx.attend, *parts, *front)
                inputs = [*parts, *front, *rest[2:]]
                found = torch.autograd.grad(out, inputs, gradients[0][:, :, group.queries], allow_unused=True)
                places = [*group.parts(*wholes[:3]), *wholes[3:]]
                for place, gradient in zip(places, found, strict=True):
                    if gradient is not None:
                        place += gradient
        needed = zip(wholes, ctx.needs_input_grad[2:], strict=True)
        return None, None, *(whole if wanted else None for whole, wanted in needed)


@dataclass(frozen=True, eq=False)
class _Drawn(Mask):
    """A block's part of a mask, already drawn: (blocks or 1, C, W)."""

    seen: Tensor
    blinds: bool

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        return self.seen

    @property
    def may_blind(self) -> bool:
        return self.blinds


@dataclass(frozen=True, kw_only=True, eq=False)
class _Plan:
    """Which positions stand in which block."""

    band: Band
    length: int
    everywhere: tuple[int, ...]
    mask: Mask
    by_place: bool
    """whether positions count beside what the mask shows: a global one is at another distance in each block"""

    @property
    def blocks(self) -> int:
        """Blocks of each residue's sequence."""
        return -(-self.length // (self.band.dilation * self.band.block))

    @property
    def stretch(self) -> int:
        """Keys of a block, in steps of the dilation."""
        return self.band.before + self.band.block + self.band.after

    def fill_queries(self, q_BHNK: Tensor) -> Tensor:
        """Zeros at the end, to whole blocks."""
        return F.pad(q_BHNK, (0, 0, 0, self.blocks * self.band.block * self.band.dilation - self.length))

    def fill_keys(self, x_BGND: Tensor) -> Tensor:
        """Zeros at both ends, for the stretches of the first and the last blocks."""
        step, whole = self.band.dilation, self.blocks * self.band.block
        return F.pad(x_BGND, (0, 0, self.band.before * step, (whole + self.band.after) * step - self.length))

    def groups(self, q_BHNK: Tensor) -> Iterator["_Group"]:
        """All blocks in groups whose queries are about a quarter of a million numbers."""
        band = self.band
        block_size = q_BHNK.shape[0] * q_BHNK.shape[1] * q_BHNK.shape[3] * band.block * band.dilation
        most = max(1, 2**20 // block_size)
        for first, last, alike in self.runs():
            sight = self.sight(first, first + 1, q_BHNK, alike=True) if alike else None
            for start in range(first, last, most):
                stop = min(start + most, last)
                yield _Group(
                    plan=self, start=start, stop=stop, sight=sight or self.sight(start, stop, q_BHNK, alike=False)
                )

    def runs(self) -> list[tuple[int, int, bool]]:
        """Runs of blocks (start, stop, whether one drawing of the mask serves them all).

        Only at the two ends, and where a global position is near, does a block differ from its neighbours.
        """
        band = self.band
        placed = self.by_place and self.everywhere
        if placed or not all(part.shift_invariant or isinstance(part, GlobalSliding) for part in self.mask.parts):
            return [(0, self.blocks, False)]
        nearest = max((self.everywhere[-1] + band.before + 1 if self.everywhere else 0), band.before)
        first = -(-nearest // band.block)
        last = (self.length // band.dilation - band.after) // band.block
        if last - first < 2:
            return [(0, self.blocks, False)]
        runs = [(0, first, False), (first, last, True), (last, self.blocks, False)]
        return [run for run in runs if run[0] < run[1]]

    def sight(self, start: int, stop: int, q_BHNK: Tensor, *, alike: bool) -> View:
        """What the queries of some blocks see of their keys; `alike`: drawn once for all rows and residues."""
        band, device = self.band, q_BHNK.device
        residues = torch.arange(1 if alike else band.dilation, device=device)[:, None, None]
        firsts = torch.arange(start, stop, device=device)[:, None] * band.block
        queries = (firsts + torch.arange(band.block, device=device)) * band.dilation + residues
        stretch = torch.arange(-band.before, band.block + band.after, device=device)
        keys = (firsts + stretch) * band.dilation + residues
        inside = (keys >= 0) & (keys < self.length)
        if self.everywhere:
            marked = torch.tensor(self.everywhere, device=device)
            inside &= ~torch.isin(keys, marked)
            keys = torch.cat([marked.expand(*keys.shape[:-1], -1), keys], dim=-1)
            inside = F.pad(inside, (len(self.everywhere), 0), value=True)
        seen = self.mask.draw(queries[None], keys[None]) & inside[None, :, :, None, :]
        seen = (
            seen | (queries >= self.length)[None, :, :, :, None]
        )  # rows that only fill up the last block: cut off later
        rows = 1 if alike else q_BHNK.shape[0]
        seen = seen.expand(rows, -1, -1, -1, -1)
        return View(
            mask=_Drawn(seen=seen.reshape(-1, band.block, seen.shape[-1]), blinds=self.mask.may_blind),
            queries=queries.expand(rows, -1, -1, -1).reshape(-1, band.block),
            keys=keys.expand(rows, -1, -1, -1).reshape(-1, keys.shape[-1]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Group:
    """A few blocks that are computed together."""

    plan: _Plan
    start: int
    stop: int
    sight: View

    @property
    def queries(self) -> slice:
        """Their queries, among the filled up."""
        step = self.plan.band.block * self.plan.band.dilation
        return slice(self.start * step, self.stop * step)

    def parts(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Their part of the filled up queries, keys and values."""
        reach = (self.plan.band.before + self.plan.band.after) * self.plan.band.dilation
        keys = slice(self.queries.start, self.queries.stop + reach)
        return q[:, :, self.queries], k[:, :, keys], v[:, :, keys]

    def attend(self, attend: Attend, q: Tensor, k: Tensor, v: Tensor, k_front: Tensor, v_front: Tensor) -> Tensor:
        """Their output, (B, H, queries, V), from the whole."""
        return self.attend_parts(attend, *self.parts(q, k, v), k_front, v_front)

    def attend_parts(self, attend: Attend, q: Tensor, k: Tensor, v: Tensor, k_front: Tensor, v_front: Tensor) -> Tensor:
        """Their output from their parts."""
        band = self.plan.band
        blocks = self._deal(q).unflatten(3, (-1, band.block)).transpose(2, 3)
        out = attend(blocks.flatten(0, 2), self._stretches(k, k_front), self._stretches(v, v_front), self.sight)
        dealt = out.unflatten(0, (q.shape[0], band.dilation, self.stop - self.start))
        joined: Tensor = dealt.permute(0, 3, 2, 4, 1, 5).flatten(2, 4)
        return joined

    def _deal(self, x_BHND: Tensor) -> Tensor:
        """(B, H, N, D) to (B, R, H, N/R, D)."""
        dealt: Tensor = x_BHND.unflatten(2, (-1, self.plan.band.dilation))
        return dealt.permute(0, 3, 1, 2, 4)

    def _stretches(self, x_BGND: Tensor, front_BGED: Tensor) -> Tensor:
        """(B R L, G, W, D): of each block the global positions, then its stretch."""
        stretches = self._deal(x_BGND).unfold(3, self.plan.stretch, self.plan.band.block).permute(0, 1, 3, 2, 5, 4)
        if self.plan.everywhere:
            marked = front_BGED[:, None, None].expand(-1, 1, stretches.shape[2], -1, -1, -1)
            stretches = torch.cat([marked, stretches], dim=4)
        return stretches.flatten(0, 2)
