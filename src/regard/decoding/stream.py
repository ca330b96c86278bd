"""Writing on from prompts, piece by piece, as a stream: every row by itself, whoever else is in the batch.

Shapes: B rows still written, V pieces.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.decoding.steps import StepModel
from regard.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next piece is chosen."""

    temperature: float = 1.0
    """scores are divided by it; 0: the likeliest piece"""
    top_k: int = 0
    """among so many likeliest pieces; 0: all"""
    top_p: float = 1.0
    """among the likeliest pieces that together have this probability"""
    min_p: float = 0.0
    """among pieces that have this share of the likeliest one's probability"""
    seed: int = 1
    """each row has random numbers of its own, from this and its number"""

    def __post_init__(self) -> None:
        """Refuse what nothing can be drawn with."""
        if self.temperature < 0 or self.top_k < 0 or self.seed < 0:
            raise InputError(
                f"temperature = {self.temperature}, top_k = {self.top_k}, seed = {self.seed}: must be 0 or more"
            )
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p = {self.top_p}: must be above 0 and at most 1")
        if not 0 <= self.min_p <= 1:
            raise InputError(f"min_p = {self.min_p}: must be from 0 to 1")

    def generator(self, row: int) -> torch.Generator:
        """A row's random numbers, one for each piece."""
        return torch.Generator().manual_seed((self.seed << 20) + row)


class Written(NamedTuple):
    """One more piece of a row."""

    row: int
    id: int
    logp: float | None
    """its log-probability by the model, whatever sampling makes of it; none if it was not asked for"""


@torch.no_grad()
def write_on(
    model: StepModel,
    prompts: Sequence[Sequence[int]],
    *,
    sampling: Sampling,
    limits: Sequence[int],
    end: int,
    context: int,
    never: Sequence[int] = (),
    stopped: Collection[int] = (),
    with_logp: bool = False,
) -> Iterator[list[Written]]:
    """What each row writes behind its prompt, a piece a row at a time, `end` included, up to the row's limit.

    A row is over with its end, at its limit, or once the caller has put its number into `stopped`. The model reads at
    most `context` pieces at once: when a row has more it goes on from the last half of them, read anew. `never` are
    pieces that are not written.
    """
    held = [list(prompt) for prompt in prompts]
    if not all(held):
        raise InputError("a prompt is empty; it must have a piece, such as the begin")
    generators = [sampling.generator(row) for row in range(len(held))]
    written = [0] * len(held)
    alive = [row for row in range(len(held)) if limits[row] > 0]
    capacity = min(context, max((len(held[row]) + limits[row] for row in alive), default=1))
    steps = None
    while alive:
        full = [row for row in alive if len(held[row]) > context]
        for row in full:
            held[row] = held[row][-max(1, context // 2) :]
        if steps is None or full:
            steps = model.start([()] * len(alive), [held[row][:-1] for row in alive], capacity=capacity)
        tokens = torch.tensor([[held[row][-1]] for row in alive], device=model.device)
        logits = steps.advance(tokens, torch.zeros_like(tokens))
        chosen, logp = choose(logits, never, sampling, [generators[row] for row in alive], with_logp=with_logp)
        new = [Written(row, id, one) for row, id, one in zip(alive, chosen, logp, strict=True)]
        for row, id, _ in new:
            held[row].append(id)
            written[row] += 1
        yield new
        stays = [
            place
            for place, (row, id, _) in enumerate(new)
            if id != end and written[row] < limits[row] and row not in stopped
        ]
        if len(stays) < len(alive):
            alive = [alive[place] for place in stays]
            steps.keep(torch.tensor(stays, dtype=torch.long, device=model.device))


def choose(
    logits_BV: Tensor, never: Sequence[int], sampling: Sampling, generators: list[torch.Generator], *, with_logp: bool
) -> tuple[list[int], Sequence[float | None]]:
    """A piece for each row, and its log-probability if it is asked for."""
    norm = logits_BV.float().logsumexp(-1) if with_logp else None
    allowed = (
        logits_BV.index_fill(-1, torch.tensor(never, device=logits_BV.device), float("-inf")) if never else logits_BV
    )
    chosen = allowed.argmax(-1) if sampling.temperature == 0 else draw(allowed, sampling, generators)
    logp: Sequence[float | None] = [None] * len(generators)
    if norm is not None:
        logp = (logits_BV.gather(-1, chosen[:, None])[:, 0].float() - norm).tolist()
    return chosen.tolist(), logp


def draw(logits_BV: Tensor, sampling: Sampling, generators: list[torch.Generator]) -> Tensor:
    """A piece for each row, (B), by what temperature, top-k, top-p and min-p (in this order) leave of its chances."""
    scores = logits_BV.float() / sampling.temperature
    order = None
    if sampling.top_k or sampling.top_p < 1:
        scores, order = scores.topk(min(sampling.top_k or scores.shape[-1], scores.shape[-1]))
    chances = scores.double().softmax(-1)
    if sampling.top_p < 1:
        chances = chances.masked_fill(chances.cumsum(-1) - chances >= sampling.top_p, 0.0)
    if sampling.min_p:
        chances = chances.masked_fill(chances < sampling.min_p * chances.amax(-1, keepdim=True), 0.0)
    summed = chances.cumsum(-1)
    drawn = torch.stack([torch.rand(1, generator=generator, dtype=torch.float64) for generator in generators])
    place = torch.searchsorted(summed, drawn.to(summed.device) * summed[:, -1:], right=True)
    last = (chances > 0).long().cumsum(-1).argmax(-1, keepdim=True)  # rounding must not lead beyond the last chance
    place = place.minimum(last)
    return (place if order is None else order.gather(-1, place))[:, 0]
