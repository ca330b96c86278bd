"""Beam search over a model's cached steps, a batch of sentences at once; a beam of one is greedy.

Shapes: B sentences still searched, K beam, R = B·K rows, V pieces.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from regard.nn import Cache


class SequenceModel(Protocol):
    """What a search needs of a model: one more step, and scores for the next piece."""

    def step(self, tokens_BT: Tensor, cache: Cache) -> Tensor:
        """States of each row's next tokens."""

    def logits(self, states: Tensor) -> Tensor:
        """A score for each piece."""


class Hypothesis(NamedTuple):
    """One answer."""

    ids: list[int]
    """pieces, without begin and end"""
    score: float
    """sum of log-probabilities, end included, over length to the power of the penalty"""
    ended: bool
    """whether it came to its end, or was cut at the limit"""


@dataclass(kw_only=True, eq=False)
class _Search:
    """One sentence's state that is not in tensors."""

    limit: int
    done: list[Hypothesis] = field(default_factory=list)


@torch.no_grad()
def beam_search(
    model: SequenceModel,
    cache: Cache,
    *,
    beam: int,
    limits: list[int],
    begin: int,
    end: int,
    length_penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """The `beam` best answers of each of the cache's rows, best first.

    `limits` are the most pieces that each row may write. A sentence is over when no unfinished hypothesis can still
    beat its worst kept one, whatever it would go on with; so stopping early changes no answer.
    """
    searches = [_Search(limit=limit) for limit in limits]
    alive = list(range(len(searches)))
    device = cache.keys[0].device
    if beam > 1:
        cache = cache.select([row for row in alive for _ in range(beam)])
    tokens = torch.full((len(alive) * beam, 1), begin, device=device)
    written = tokens[:, :0]
    scores = torch.full((len(alive), beam), float("-inf"), device=device)
    scores[:, 0] = 0.0  # all beams start alike: let only the first of them count
    length = 0
    while alive:
        length += 1
        logp = model.logits(model.step(tokens, cache)[:, -1]).float().log_softmax(-1).view(len(alive), beam, -1)
        pieces = logp.shape[-1]
        width = min(2 * beam, beam * pieces)
        best, places = (scores[:, :, None] + logp).flatten(1).topk(width)
        parents, chosen = places // pieces, places % pieces
        ends = chosen == end
        _finish(searches, alive, written, best, parents, ends, length, beam, length_penalty)
        next_scores, kept = best.masked_fill(ends, float("-inf")).topk(beam)
        rows = (torch.arange(len(alive), device=device)[:, None] * beam + parents.gather(1, kept)).flatten()
        pieces_now = chosen.gather(1, kept).view(-1, 1)
        written = torch.cat([written[rows], pieces_now], dim=1)
        over = [
            length >= searches[number].limit
            or _cannot_improve(searches[number], float(next_scores[place, 0]), beam, length_penalty)
            for place, number in enumerate(alive)
        ]
        for place, number in enumerate(alive):
            if length >= searches[number].limit:
                _cut(searches[number], written, next_scores[place].tolist(), place * beam, length, length_penalty)
        stays = [place for place, ended in enumerate(over) if not ended]
        if len(stays) < len(alive):
            keep = torch.tensor(
                [place * beam + k for place in stays for k in range(beam)], device=device, dtype=torch.long
            )
            rows, pieces_now, written = rows[keep], pieces_now[keep], written[keep]
            next_scores = next_scores[stays]
            alive = [alive[place] for place in stays]
        if alive and (beam > 1 or len(rows) < cache.rows):
            cache = cache.select(rows)
        tokens, scores = pieces_now, next_scores
    return [sorted(search.done, key=lambda answer: -answer.score)[:beam] for search in searches]


def _finish(
    searches: list[_Search], alive: list[int], written: Tensor, best: Tensor, parents: Tensor, ends: Tensor,
    length: int, beam: int, penalty: float,
) -> None:  # fmt: skip
    """Put away the candidates that ended, if they are among the best of their sentence."""
    for place, rank in ends[:, :beam].nonzero().tolist():
        row = place * beam + int(parents[place, rank])
        total = float(best[place, rank])
        if total > float("-inf"):
            answer = Hypothesis(ids=written[row].tolist(), score=total / length**penalty, ended=True)
            searches[alive[place]].done.append(answer)


def _cannot_improve(search: _Search, best: float, beam: int, penalty: float) -> bool:
    """Whether enough answers are done and the best unfinished one, at the length that suits it, is worse than all.

    A beam of one is greedy: it ends with its first answer, however the penalty would weigh the second likeliest piece.
    """
    if beam == 1:
        return bool(search.done)
    if len(search.done) < beam or best == float("-inf"):
        return len(search.done) >= beam
    kept = sorted(answer.score for answer in search.done)[-beam]
    return bool(best / search.limit**penalty <= kept)


def _cut(search: _Search, written: Tensor, totals: list[float], first: int, length: int, penalty: float) -> None:
    """Take what is unfinished at the limit as answers, if too few came to an end."""
    for offset, total in enumerate(totals):
        if len(search.done) < len(totals) and total > float("-inf"):
            search.done.append(
                Hypothesis(ids=written[first + offset].tolist(), score=total / length**penalty, ended=False)
            )
