"""A language model in use: prompts in, text out as it is written."""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import torch

from regard.config import Recipe
from regard.decoding.chosen import Chosen, Kind, choose_steps
from regard.decoding.drafted import AHEAD, Draft, write_drafted
from regard.decoding.steps import StepModel
from regard.decoding.stream import Sampling, write_on
from regard.errors import InputError
from regard.models import DecoderOnly
from regard.tasks.generate import window_of
from regard.text import Tokenizer

Ending = Literal["end", "stop", "length"]
"""Why a text ends: the model ended it, a stop string came, or it is as long as was asked for."""


@dataclass(frozen=True, kw_only=True)
class Generated:
    """What was written behind one prompt."""

    prompt: str
    text: str
    """without the prompt; a stop string is left out"""
    ended: Ending
    tokens: tuple[str, ...]
    """the pieces, also those that were written before a stop string was seen"""
    logp: tuple[float, ...] | None
    """their log-probabilities, if they were asked for"""
    unread: int
    """pieces at the prompt's beginning that the model could not read, since it takes no more at once"""


Precision = Kind | Literal["auto"]


class Part(NamedTuple):
    """A little more of one row's text; with the last part the whole."""

    row: int
    text: str
    whole: Generated | None


class Writer:
    """Prompts in, text out."""

    def __init__(
        self, model: DecoderOnly, tokenizer: Tokenizer, recipe: Recipe, *, precision: Precision | None = None,
        draft: "Writer | None" = None, ahead: int = AHEAD,
    ) -> None:  # fmt: skip
        """`precision` is what is multiplied in, the recipe's if none is stated; `draft` guesses so many pieces `ahead`,
        and then the model's own steps are taken.
        """
        self.model, self.tokenizer, self.recipe = model, tokenizer, recipe
        self.draft = draft and Draft(draft.model, draft.context, ahead)
        self.precision: Precision = precision or recipe.decoding.precision
        self._chosen: tuple[object, Chosen] | None = None
        self.context: int = recipe.model.max_length if recipe.model.attention != "full" else window_of(recipe)
        """pieces that the model reads at once: as many as it was trained on, or any number through its window"""

    @property
    def steps(self) -> StepModel:
        """How the model takes its steps; chosen when first needed, and anew when the weights have changed."""
        return self._choice().steps

    @property
    def reason(self) -> str:
        """What is multiplied in, and why."""
        return "the model's own steps, for a draft guesses" if self.draft else self._choice().reason

    def _choice(self) -> Chosen:
        weights = [(weight.data_ptr(), weight._version) for weight in self.model.parameters()]
        if self._chosen is None or self._chosen[0] != weights:
            self._chosen = weights, choose_steps(self.model, self.precision, threads=torch.get_num_threads())
        return self._chosen[1]

    def write(
        self, prompts: Sequence[str], *, length: int = 256, samples: int = 1, sampling: Sampling | None = None,
        stop: Sequence[str] = (), with_logp: bool = False,
    ) -> list[Generated]:  # fmt: skip
        """What comes after each prompt: `samples` texts of at most `length` pieces for each, one behind another."""
        parts = self.stream(
            prompts, length=length, samples=samples, sampling=sampling, stop=stop, with_logp=with_logp
        )  # fmt: skip
        found = sorted((part.row, part.whole) for part in parts if part.whole is not None)
        return [whole for _, whole in found]

    def stream(
        self, prompts: Sequence[str], *, length: int = 256, samples: int = 1, sampling: Sampling | None = None,
        stop: Sequence[str] = (), with_logp: bool = False,
    ) -> Iterator[Part]:  # fmt: skip
        """The same as it is written: parts of all rows' texts; row r belongs to prompt r // samples."""
        if length < 1 or samples < 1:
            raise InputError(f"length = {length}, samples = {samples}: must be 1 or more")
        if not all(stop):
            raise InputError("a stop string is empty: it would stop at once")
        texts = [prompt for prompt in prompts for _ in range(samples)]
        ids = [read for prompt in prompts for read in [self._read(prompt)] * samples]
        rows = [
            _Row(prompt, self.tokenizer, stop=stop, unread=max(0, len(read) - self.context))
            for prompt, read in zip(texts, ids, strict=True)
        ]
        specials, stopped = self.tokenizer.specials, set[int]()
        never = sorted({specials.pad, specials.unknown, specials.begin} - {specials.end})
        write = partial(write_drafted, self.model, self.draft) if self.draft else partial(write_on, self.steps)
        for new in write(
            [read[-self.context :] for read in ids], sampling=sampling or Sampling(), limits=[length] * len(rows),
            end=specials.end, context=self.context, never=never, stopped=stopped, with_logp=with_logp,
        ):  # fmt: skip
            for number, id, logp in new:
                row = rows[number]
                shown = row.add(id, logp, last=row.count + 1 == length)
                if row.ended is not None:
                    stopped.add(number)
                if shown or row.ended is not None:
                    yield Part(number, shown, row.whole() if row.ended is not None else None)

    def _read(self, prompt: str) -> list[int]:
        """The prompt's ids as the model was trained to read them: from a begin, or from anywhere in a text."""
        specials = self.tokenizer.specials
        if not self.recipe.data.continuous:
            return [specials.begin, *self.tokenizer.encode(prompt)]
        if prompt:
            return self.tokenizer.encode(prompt)
        line_end = self.tokenizer.encode("\n", continued=True)
        return [specials.begin] if specials.begin == specials.end or specials.unknown in line_end else line_end


class _Row:
    """One text as it grows."""

    def __init__(self, prompt: str, tokenizer: Tokenizer, *, stop: Sequence[str], unread: int) -> None:
        self.prompt, self.tokenizer, self.stop, self.unread = prompt, tokenizer, stop, unread
        self.ended: Ending | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._text, self._shown = "", 0
        self._ids: list[int] = []
        self._logp: list[float] = []

    @property
    def count(self) -> int:
        """Pieces so far."""
        return len(self._ids)

    def add(self, id: int, logp: float | None, *, last: bool) -> str:
        """One more piece; answers with the text that can be shown now: no half character, no begun stop string."""
        self._ids.append(id)
        if logp is not None:
            self._logp.append(logp)
        ends = id == self.tokenizer.specials.end
        content = b"" if ends else self.tokenizer.bytes_of([id])
        before = len(self._text)
        self._text += self._decoder.decode(content, final=ends or last)
        if not self.prompt and before == 0:
            self._text = self._text.removeprefix(self.tokenizer.prefix)
        longest = max(map(len, self.stop), default=0)
        found = [place for one in self.stop if (place := self._text.find(one, max(0, before - longest))) >= 0]
        if found:
            self._text, self.ended = self._text[: min(found)], "stop"
        elif ends or last:
            self.ended = "end" if ends else "length"
        until = len(self._text) - (0 if self.ended else self._begun())
        shown, self._shown = self._text[self._shown : until], max(self._shown, until)
        return shown

    def _begun(self) -> int:
        """Characters at the text's end that may be the beginning of a stop string."""
        return max(
            (size for one in self.stop for size in range(1, len(one)) if self._text.endswith(one[:size])), default=0
        )

    def whole(self) -> Generated:
        """The finished text."""
        assert self.ended is not None
        return Generated(
            prompt=self.prompt, text=self._text, ended=self.ended,
            tokens=tuple(self.tokenizer.piece(id) for id in self._ids),
            logp=tuple(self._logp) if self._logp else None, unread=self.unread,
        )  # fmt: skip
