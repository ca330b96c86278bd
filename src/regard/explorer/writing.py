"""What a model writes, from the beginning or on from given pieces, with heads switched off or not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from regard.config import DecodingConfig
from regard.decoding import Hypothesis, PlainModel, Request, Search, SearchTree, search, step_model
from regard.errors import InputError
from regard.explorer.looks import source_ids
from regard.models import EncoderDecoder, Model
from regard.nn import Head
from regard.tasks.run import Run

WIDEST = 16
"""beam"""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What came of a search."""

    decoding: DecodingConfig
    """how it was searched"""
    prefix: tuple[int, ...]
    """pieces that were given"""
    answers: tuple[Hypothesis, ...]
    """best first; their pieces are those behind the prefix"""
    tree: SearchTree | None = None
    """of the search, if there was one"""

    def norm(self, count: int) -> float:
        """What a sum of log-probabilities of so many pieces is divided by."""
        length = count if self.decoding.length_norm == "average" else (5 + count) / 6
        return float(length**self.decoding.length_penalty)

    @property
    def ids(self) -> tuple[int, ...]:
        """The best answer's pieces, the prefix before them."""
        return (*self.prefix, *(self.answers[0].ids if self.answers else ()))


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
    decoding = replace(run.recipe.decoding, beam=width, groups=1, samples=0, mbr=False)
    specials = run.tokenizer.specials
    if wrong := [id for id in prefix if not 0 <= id < run.tokenizer.size]:
        raise InputError(f"piece {wrong[0]}: there are pieces 0 to {run.tokenizer.size - 1}")
    if not text.strip():
        return Written(decoding=decoding, prefix=tuple(prefix), answers=())
    source = source_ids(run, text, tag)
    longest = decoding.max_length or int(decoding.max_ratio * (len(source) - 1)) + 20
    limit = min(longest, run.recipe.model.max_length)
    if len(prefix) >= limit:
        raise InputError(f"{len(prefix)} pieces to begin with: a target has {limit} at most")
    request = Request(source=tuple(source), read=(specials.begin, *prefix), limit=limit - len(prefix))
    options = Search(
        end=specials.end, options=decoding, nbest=width, tree=True,
        coverage_heads=run.translator.alignment_heads if decoding.coverage_penalty else (),
    )  # fmt: skip
    steps = PlainModel(model, heads_off=heads_off) if heads_off else step_model(model, threads=torch.get_num_threads())
    found = search(steps, [request], options)[0]
    return Written(decoding=decoding, prefix=tuple(prefix), answers=tuple(found.answers), tree=found.tree)
