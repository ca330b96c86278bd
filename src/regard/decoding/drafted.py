"""Writing on with a draft: a smaller model guesses some pieces, and the model reads them all in one forward.

What is written is what `write_on` writes, piece for piece. The model chooses every piece from its own chances, by the
random numbers that it would use alone; the draft guesses by the same numbers; and guesses count as far as they are what
the model chose. (Leviathan and others 2023 accept more guesses, and write something else: only its distribution is the
same.) A draft can make it slower, never other.

Shapes: B rows still written, N guesses, V pieces.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.decoding.steps import padded
from regard.decoding.stream import Sampling, Written, choose
from regard.errors import InputError
from regard.models import DecoderOnly
from regard.nn import Cache

AHEAD = 4


class Draft(NamedTuple):
    """Who guesses."""

    model: DecoderOnly
    context: int
    """pieces that it reads at once"""
    ahead: int = AHEAD
    """pieces that it guesses before the model reads them"""


@torch.no_grad()
def write_drafted(
    model: DecoderOnly,
    draft: Draft,
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
    """As `regard.decoding.stream.write_on`, which says what is what."""
    if draft.ahead < 1 or draft.context < 2:
        raise InputError(f"ahead = {draft.ahead}: must be 1 or more, of a draft that reads 2 pieces or more at once")
    if not all(prompts):
        raise InputError("a prompt is empty; it must have a piece, such as the begin")
    every = zip(prompts, limits, strict=True)
    rows = [_Row(number, list(prompt), limit, sampling) for number, (prompt, limit) in enumerate(every) if limit > 0]
    longest = max((len(row.text) + row.left for row in rows), default=1)
    reader, guesser = _Reader(model, context, longest), _Reader(draft.model, draft.context, longest)
    while rows:
        for row in (row for row in rows if len(row.text) > context):
            row.text = row.text[-max(1, context // 2) :]
            reader, guesser = _Reader(model, context, longest), _Reader(draft.model, draft.context, longest)
        ahead = min(draft.ahead, context - max(len(row.text) for row in rows), max(row.left for row in rows) - 1)
        guesses = _guessed(guesser, rows, ahead, never, sampling)
        logits = reader.scores([row.text + guess for row, guess in zip(rows, guesses, strict=True)], ahead + 1)
        numbers = [copy for row in rows for copy in [row.numbers()] * (ahead + 1)]
        chosen, logp = choose(logits.flatten(0, 1), never, sampling, numbers, with_logp=with_logp)
        pieces = list(zip(chosen, logp, strict=True))
        for place, (row, guess) in enumerate(zip(rows, guesses, strict=True)):
            row.coming = _agreed(guess, pieces[place * (ahead + 1) : (place + 1) * (ahead + 1)])
        going = list(rows)
        while new := [row.take() for row in going if row.coming]:
            yield new
            going = [row for row in going if row.text[-1] != end and row.left and row.number not in stopped]
        places = [place for place, row in enumerate(rows) if row in going]
        rows = going
        for each in (reader, guesser):
            each.keep(places, [row.text for row in rows])


class _Row:
    """A text that is written."""

    def __init__(self, number: int, text: list[int], left: int, sampling: Sampling) -> None:
        self.number, self.text, self.sampling = number, text, sampling
        self.left = left
        """pieces that it may still have"""
        self.coming: list[tuple[int, float | None]] = []
        """pieces that are agreed, with their log-probabilities"""
        self._generator = sampling.generator(number)

    def numbers(self) -> torch.Generator:
        """The random numbers of the pieces to come, for somebody who tries them."""
        copy = torch.Generator()
        copy.set_state(self._generator.get_state())
        return copy

    def take(self) -> Written:
        """The next of the agreed pieces, and the number that it was drawn by."""
        id, logp = self.coming.pop(0)
        self.text.append(id)
        self.left -= 1
        if self.sampling.temperature:
            torch.rand(1, generator=self._generator, dtype=torch.float64)
        return Written(self.number, id, logp)


class _Reader:
    """A model that has read the rows' texts, or of texts that are too long for it their ends."""

    def __init__(self, model: DecoderOnly, context: int, longest: int) -> None:
        self.model, self.context = model, context
        self.capacity = min(context, longest + 1)
        self.cache: Cache | None = None
        self.starts: list[int] = []
        """where in each text it began to read"""

    def scores(self, texts: Sequence[Sequence[int]], last: int) -> Tensor:
        """(B, last, V) for the piece behind each of the last pieces of each text."""
        if self.cache is None or max(self._sizes(texts)) > self.context:
            longest = max(map(len, texts))
            room = longest if longest <= self.context else max(last, self.context // 2)
            self.starts = [max(0, len(text) - room) for text in texts]
            self.cache = self.model.start(rows=len(texts), capacity=self.capacity)
        read = zip(texts, self.starts, self.cache.lengths, strict=True)
        ids, lengths = padded([text[start + held :] for text, start, held in read], self.model.pieces.weight.device)
        states = self.model.step(ids, self.cache, counts=lengths.tolist())
        places = lengths[:, None] - last + torch.arange(last, device=lengths.device)
        return self.model.logits(states.gather(1, places[:, :, None].expand(-1, -1, states.shape[2])))

    def keep(self, places: Sequence[int], texts: Sequence[Sequence[int]]) -> None:
        """Only these rows go on, and of what was read only what their texts hold, the last piece aside."""
        if self.cache is None or not places:
            return
        if len(places) < self.cache.rows:
            self.cache = self.cache.select(places)
            self.starts = [self.starts[place] for place in places]
        real = [len(text) - 1 - start for text, start in zip(texts, self.starts, strict=True)]
        if min(real) < 0:  # it began to read among guesses that were wrong
            self.cache = None
        else:
            self.cache.lengths = [min(held, most) for held, most in zip(self.cache.lengths, real, strict=True)]

    def _sizes(self, texts: Sequence[Sequence[int]]) -> list[int]:
        """Pieces of each text with what pads it when rows have different numbers of pieces to read."""
        assert self.cache is not None
        sides = zip(texts, self.starts, self.cache.lengths, strict=True)
        new = max(len(text) - start - held for text, start, held in sides)
        return [held + new for held in self.cache.lengths]


def _guessed(
    guesser: _Reader, rows: Sequence[_Row], ahead: int, never: Sequence[int], sampling: Sampling
) -> list[list[int]]:
    """The draft's own choice of the next pieces of each text, by the numbers that the model will choose by."""
    numbers = [row.numbers() for row in rows]
    guesses: list[list[int]] = [[] for _ in rows]
    for _ in range(ahead):
        scores = guesser.scores([row.text + guess for row, guess in zip(rows, guesses, strict=True)], 1)
        chosen, _ = choose(scores[:, 0], never, sampling, numbers, with_logp=False)
        for guess, piece in zip(guesses, chosen, strict=True):
            guess.append(piece)
    return guesses


def _agreed(guess: Sequence[int], chosen: Sequence[tuple[int, float | None]]) -> list[tuple[int, float | None]]:
    """What the model chose, up to its first piece behind a guess that is another's."""
    ids = (id for id, _ in chosen)
    same = next((place for place, (one, two) in enumerate(zip(guess, ids, strict=False)) if one != two), len(guess))
    return list(chosen[: same + 1])
