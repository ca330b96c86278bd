"""What a model writes, from the beginning or on from given pieces, with heads switched off or not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.decoding import Hypothesis, PlainModel, Request, Search, search
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
    request = Request(source=tuple(source), read=(specials.begin, *prefix), limit=limit - len(prefix))
    options = Search(
        end=specials.end, options=replace(run.recipe.decoding, beam=width, groups=1, samples=0), nbest=width
    )
    answers = search(PlainModel(model, heads_off=heads_off), [request], options)[0].answers
    return Written(beam=width, length_penalty=penalty, prefix=tuple(prefix), answers=tuple(answers))
