"""Which pieces go on: the likeliest of a beam, those of a diverse beam, or drawn ones.

Shapes: B sentences, G groups, w rows of a group, W = G·w, V pieces, N candidates.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import DecodingConfig
from regard.decoding.restrict import NEVER


class Choice(NamedTuple):
    """Candidates of each group, best first, (B, G, N); where there are too few, the rank of the rest is -inf."""

    rank: Tensor
    """what orders them"""
    totals: Tensor
    """the scores of the hypotheses that they make"""
    parents: Tensor
    """the rows that they continue"""
    pieces: Tensor


class Scores(NamedTuple):
    """What is known of each next piece."""

    logits: Tensor
    """(B, W, V); -inf for what may not be written"""
    norm: Tensor
    """(B, W) log of the sum of their exponentials, before anything was forbidden"""
    totals: Tensor
    """(B, W) of the hypotheses so far"""


def likeliest(scores: Scores, width: int, *, greedy: bool) -> Choice:
    """Of all continuations of all rows the 2 w best: enough for w that go on, whichever of them end.

    A row ends once at most, so its w + 1 best suffice; and of one greedy row its best.
    """
    count = 1 if greedy else 2 * width
    each = min(1 if greedy else width + 1, scores.logits.shape[-1])
    top, pieces = scores.logits.topk(each)
    totals = (top + (scores.totals - scores.norm)[:, :, None]).flatten(1)
    best, places = totals.topk(min(count, totals.shape[1]))
    parents = places.div(each, rounding_mode="floor")
    return _choice(best, best, parents, pieces.flatten(1).gather(1, places), count)


def diverse(scores: Scores, groups: int, width: int, strength: float) -> Choice:
    """Vijayakumar and others (2016): group after group; a piece loses `strength` for each group that chose it before.

    The loss counts for this step's choice only: totals stay those of the model.
    """
    batch, rows, pieces = scores.logits.shape
    chosen = torch.zeros(batch, pieces, device=scores.logits.device)
    found = []
    for group in range(groups):
        part = slice(0, 1) if rows == 1 else slice(group * width, (group + 1) * width)
        shunned = scores.logits[:, part] - strength * chosen[:, None]
        logp = (scores.logits - scores.norm[:, :, None])[:, part] + scores.totals[:, part, None]
        ranks = shunned - scores.norm[:, part, None] + scores.totals[:, part, None]
        rank, places = ranks.flatten(1).topk(min(2 * width, ranks[0].numel()))
        choice = _choice(
            rank, logp.flatten(1).gather(1, places), places // pieces + part.start, places % pieces, 2 * width
        )
        found.append(choice)
        first = choice.pieces[:, 0, :width]
        chosen.scatter_add_(1, first, (choice.rank[:, 0, :width] > NEVER).float())
    return Choice(*(torch.cat(sides, dim=1) for sides in zip(*found, strict=True)))


def drawn(scores: Scores, options: DecodingConfig, uniforms_BW: Tensor) -> Choice:
    """A piece for each row, by the distribution that temperature, top-k, top-p and min-p (in this order) leave."""
    rows = uniforms_BW.shape[1]
    logits = scores.logits.expand(-1, rows, -1)
    pieces = logits.shape[-1]
    sharp, order = (logits / options.temperature).topk(min(options.top_k or pieces, pieces))
    chance = sharp.double().softmax(-1)
    before = chance.cumsum(-1) - chance
    held = (before < options.top_p) & (chance >= options.min_p * chance[..., :1])
    summed = (chance * held).cumsum(-1)
    place = torch.searchsorted(summed, uniforms_BW[..., None] * summed[..., -1:], right=True)
    place = place.clamp(max=held.sum(-1, keepdim=True) - 1)
    chosen = order.gather(-1, place)[..., 0]
    totals = scores.totals + logits.gather(-1, chosen[..., None])[..., 0] - scores.norm
    parents = torch.arange(rows, device=chosen.device).expand(len(chosen), -1)
    if scores.logits.shape[1] == 1:
        parents = torch.zeros_like(parents)
    return Choice(*(side[:, None] for side in (totals, totals, parents, chosen)))


def uniforms(seed: int, keys: NDArray[np.uint64], rows: int, counts: NDArray[np.uint64]) -> Tensor:
    """Numbers from 0 to 1, (B, rows): each depends on seed, its sentence's key, its row and its count, and on nothing
    else. Mixed as Steele, Lea and Flood (2014) do it (SplitMix64).
    """  # fmt: skip
    state = _mixed(np.full((len(keys), rows), seed, dtype=np.uint64))
    for part in (keys[:, None], np.arange(rows, dtype=np.uint64)[None], counts[:, None]):
        state = _mixed(state ^ part)
    return torch.from_numpy((state >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = state ^ (state >> np.uint64(31))
    return mixed


def _choice(rank: Tensor, totals: Tensor, parents: Tensor, pieces: Tensor, count: int) -> Choice:
    """One group's choice, filled up to `count` with candidates that do not count."""
    missing = count - rank.shape[1]
    if missing > 0:
        rank, totals = (torch.nn.functional.pad(side, (0, missing), value=NEVER) for side in (rank, totals))
        parents, pieces = (torch.nn.functional.pad(side, (0, missing)) for side in (parents, pieces))
    return Choice(rank[:, None], totals[:, None], parents[:, None], pieces[:, None])
