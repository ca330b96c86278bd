"""What a model writes, from the beginning or on from given pieces, with heads switched off or not."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decoding import Hypothesis, beam_search
from regard.errors import InputError
from regard.explorer.looks import source_ids
from regard.models import EncoderDecoder, Model
from regard.nn import Cache, Head, Trace
from regard.tasks.run import Run

WIDEST = 16
"""beam"""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What came of a search."""

    beam: int
    length_penalty: float
    prefix: tuple[int, ...]
    """pieces that were given"""
    answers: tuple[Hypothesis, ...]
    """best first; their pieces are those behind the prefix"""

    @property
    def ids(self) -> tuple[int, ...]:
        """The best answer's pieces, the prefix before them."""
        return (*self.prefix, *(self.answers[0].ids if self.answers else ()))


class Switched:
    """A model of which some heads are off."""

    def __init__(self, model: EncoderDecoder, off: frozenset[Head]) -> None:
        self.model, self.off = model, off

    def _trace(self) -> Trace | None:
        return Trace(kinds=frozenset(), heads_off=self.off) if self.off else None

    @torch.no_grad()
    def start(self, source: Sequence[int], *, capacity: int) -> Cache:
        """A cache for one source."""
        device = next(self.model.parameters()).device
        ids = torch.tensor([list(source)], device=device)
        return self.model.start(
            ids, torch.tensor([len(source)], device=device), capacity=capacity, trace=self._trace()
        )  # fmt: skip

    @torch.no_grad()
    def step(self, tokens_BT: Tensor, cache: Cache) -> Tensor:
        """One more step of each row."""
        return self.model.step(tokens_BT, cache, trace=self._trace())

    def logits(self, states: Tensor) -> Tensor:
        """A score for each piece."""
        return self.model.logits(states)


def write(
    run: Run, model: Model, text: str, *, tag: str | None, prefix: Sequence[int] = (), beam: int | None = None,
    heads_off: frozenset[Head] = frozenset(),
) -> Written:  # fmt: skip
    """The model's translation of the text that begins with `prefix`; what `regard translate` says, if there is none."""
    if not isinstance(model, EncoderDecoder):
        raise InputError(f"{run.folder}: its task is {run.recipe.task}, it writes no target")
    width = run.recipe.decoding.beam if beam is None else beam
    if not 1 <= width <= WIDEST:
        raise InputError(f"beam = {width}: must be 1 to {WIDEST}")
    specials, penalty = run.tokenizer.specials, run.recipe.decoding.length_penalty
    if wrong := [id for id in prefix if not 0 <= id < run.tokenizer.size]:
        raise InputError(f"piece {wrong[0]}: there are pieces 0 to {run.tokenizer.size - 1}")
    if not text.strip():
        return Written(beam=width, length_penalty=penalty, prefix=tuple(prefix), answers=())
    source = source_ids(run, text, tag)
    limit = min(2 * (len(source) - 1) + 20, run.recipe.model.max_length)
    if len(prefix) >= limit:
        raise InputError(f"{len(prefix)} pieces to begin with: a target has {limit} at most")
    switched = Switched(model, heads_off)
    cache = switched.start(source, capacity=limit)
    read = [specials.begin, *prefix]
    if len(read) > 1:
        device = next(model.parameters()).device
        switched.step(torch.tensor([read[:-1]], device=device), cache)
    answers = beam_search(
        switched, cache, beam=width, limits=[limit - len(prefix)], begin=read[-1], end=specials.end,
        length_penalty=penalty,
    )[0]  # fmt: skip
    return Written(beam=width, length_penalty=penalty, prefix=tuple(prefix), answers=tuple(answers))
