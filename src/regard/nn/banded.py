"""Attention in a band: windows of keys in time and memory that grow linearly with length, without the n x n matrix.

The sequence is cut into blocks; a block of queries and the stretch of keys that any of them may see are one small
ordinary attention. Dilation first deals the sequence out to `dilation` shorter ones. Global positions are put in
front of each block's keys, and as queries they look at everything. This file is geometry only: the attention of each
block is handed in.

Shapes: B batch, H heads, G key heads, N sequence, R residues of the dilation, L blocks of C queries and W keys.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

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
    q_BHNK: Tensor, k_BGNK: Tensor, v_BGNV: Tensor, mask: Mask, band: Band, *, attend: Attend, by_place: bool
) -> Tensor:
    """What each query finds under a mask that keeps to the band, (B, H, N, V).

    `by_place` says whether `attend` adds a relation, for which a global position is at another distance in each block.
    """
    batch, _, length, _ = q_BHNK.shape
    everywhere = tuple(position for position in band.everywhere if position < length)
    plan = _Plan(band=band, length=length, everywhere=everywhere, device=q_BHNK.device)
    q, k, v = plan.query_blocks(q_BHNK), plan.key_blocks(k_BGNK), plan.key_blocks(v_BGNV)
    runs = plan.stretches(mask, by_place=by_place)
    sizes = [stop - start for start, stop, _ in runs]
    outs = []
    # split and not slices: the gradients of slices are each filled up with zeros to the whole, which cost a third of it
    for (start, stop, alike), *parts in zip(runs, *(side.split(sizes, dim=2) for side in (q, k, v)), strict=True):
        sight = plan.sight(mask, start, stop, batch=batch, alike=alike)
        q_part, k_part, v_part = (part.flatten(0, 2) for part in parts)
        outs.append(attend(q_part, k_part, v_part, sight).unflatten(0, (batch, band.dilation, stop - start)))
    out = plan.join(torch.cat(outs, dim=2))
    if everywhere:
        marked = torch.tensor(everywhere, device=q_BHNK.device)
        sight = View(mask=mask, queries=marked[None], keys=torch.arange(length, device=q_BHNK.device)[None])
        out = out.index_copy(2, marked, attend(q_BHNK[:, :, marked], k_BGNK, v_BGNV, sight))
    return out


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
    device: torch.device

    @property
    def blocks(self) -> int:
        """Blocks of each residue's sequence."""
        return -(-self.length // (self.band.dilation * self.band.block))

    def _deal(self, x_BHND: Tensor) -> Tensor:
        """(B, H, N, D) to (B, R, H, N/R, D), filled up with zeros to whole blocks."""
        whole = self.blocks * self.band.block * self.band.dilation
        filled = F.pad(x_BHND, (0, 0, 0, whole - self.length))
        dealt: Tensor = filled.unflatten(2, (-1, self.band.dilation))
        return dealt.permute(0, 3, 1, 2, 4)

    def query_blocks(self, q_BHNK: Tensor) -> Tensor:
        """(B, R, L, H, C, K)."""
        blocks: Tensor = self._deal(q_BHNK).unflatten(3, (self.blocks, self.band.block))
        return blocks.transpose(2, 3)

    def key_blocks(self, x_BGND: Tensor) -> Tensor:
        """(B, R, L, G, W, D): of each block the global positions, then its stretch."""
        band = self.band
        dealt = F.pad(self._deal(x_BGND), (0, 0, band.before, band.after))
        stretches = dealt.unfold(3, band.before + band.block + band.after, band.block).permute(0, 1, 3, 2, 5, 4)
        if not self.everywhere:
            return stretches
        marked = x_BGND[:, :, list(self.everywhere)][:, None, None].expand(-1, 1, self.blocks, -1, -1, -1)
        return torch.cat([marked, stretches], dim=4)

    def join(self, out: Tensor) -> Tensor:
        """(B, R, L, H, C, V) back to (B, H, N, V)."""
        return out.permute(0, 3, 2, 4, 1, 5).flatten(2, 4)[:, :, : self.length]

    def stretches(self, mask: Mask, *, by_place: bool) -> list[tuple[int, int, bool]]:
        """Runs of blocks (start, stop, whether one drawing of the mask serves them all).

        Only at the two ends, and where a global position is near, does a block differ from its neighbours.
        """
        band = self.band
        if by_place and self.everywhere:
            return [(0, self.blocks, False)]
        if not all(part.shift_invariant or isinstance(part, GlobalSliding) for part in mask.parts):
            return [(0, self.blocks, False)]
        nearest = max((self.everywhere[-1] + band.before + 1 if self.everywhere else 0), band.before)
        first = -(-nearest // band.block)
        last = (self.length // band.dilation - band.after) // band.block
        if last - first < 2:
            return [(0, self.blocks, False)]
        runs = [(0, first, False), (first, last, True), (last, self.blocks, False)]
        return [run for run in runs if run[0] < run[1]]

    def sight(self, mask: Mask, start: int, stop: int, *, batch: int, alike: bool) -> View:
        """What the queries of some blocks see of their keys."""
        band = self.band
        residues = torch.arange(1 if alike else band.dilation, device=self.device)[:, None, None]
        firsts = torch.arange(start, start + 1 if alike else stop, device=self.device)[:, None] * band.block
        queries = (firsts + torch.arange(band.block, device=self.device)) * band.dilation + residues
        stretch = torch.arange(-band.before, band.block + band.after, device=self.device)
        keys = (firsts + stretch) * band.dilation + residues
        inside = (keys >= 0) & (keys < self.length)
        if self.everywhere:
            marked = torch.tensor(self.everywhere, device=self.device)
            inside &= ~torch.isin(keys, marked)
            keys = torch.cat([marked.expand(*keys.shape[:-1], -1), keys], dim=-1)
            inside = F.pad(inside, (len(self.everywhere), 0), value=True)
        seen = mask.draw(queries[None], keys[None]) & inside[None, :, :, None, :]
        seen = (
            seen | (queries >= self.length)[None, :, :, :, None]
        )  # rows that only fill up the last block: cut off later
        if not alike:
            rows = batch if seen.shape[0] == 1 else 1
            seen = seen.repeat(rows, 1, 1, 1, 1)
        flat = (-1, band.block, seen.shape[-1])
        rows = 1 if alike else batch
        return View(
            mask=_Drawn(seen=seen.reshape(flat), blinds=mask.may_blind),
            queries=queries[None].expand(rows, -1, -1, -1).reshape(-1, band.block),
            keys=keys[None].expand(rows, -1, -1, -1).reshape(-1, keys.shape[-1]),
        )
