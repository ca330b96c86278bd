"""One more piece for every hypothesis: what a search asks of a model, and the plain way to answer.

A search knows no model. It starts `Steps` for some sentences, then says again and again which pieces were chosen and
which rows they continue, and is told a score for each next piece. How rows move, what the rows of a sentence share
and in which type is computed is the implementation's affair; `PlainModel` is the twin that every other is held equal
to.

Shapes: B sentences, W rows (hypotheses) of each, R = B·W, V pieces, M source pieces, A observed heads.
"""

from collections.abc import Sequence
from typing import Protocol, Self

import torch
from torch import Tensor

from regard.errors import InputError
from regard.models import DecoderOnly, EncoderDecoder
from regard.nn import Cache, Head, Trace

CrossHead = tuple[int, int]
"""Layer and head of a decoder's cross-attention."""


class Steps(Protocol):
    """Sentences that are being written, some rows each. A value: whoever started it owns it."""

    @property
    def sentences(self) -> int:
        """How many there are, B."""

    def advance(self, tokens_BW: Tensor, parents_BW: Tensor) -> Tensor:
        """Read one more piece a row; gives a score for each next piece, (R, V), before the softmax.

        Row w of a sentence continues what that sentence's row `parents[w]` had read, and reads `tokens[w]`. A row may
        be continued several times or not at all; W may differ from one call to the next. At the first call a sentence
        has one row, 0, which has read its prompt.
        """

    def keep(self, sentences: Tensor) -> None:
        """Let only these sentences go on, in this order, (B') of int64; their rows stay as they are."""

    def add(self, other: Self) -> None:
        """Let the other's sentences go on behind these, wherever each stands; it is not used again.

        At the next call each sentence's parents are its own rows: those that came later may have fewer of them.
        """

    def observed(self) -> Tensor:
        """The observed heads' weights in the last `advance`, (B, W, A, M): each row's piece over its source."""


class StepModel(Protocol):
    """A model that can write."""

    @property
    def pieces(self) -> int:
        """Size of the vocabulary, V."""

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""

    def start(
        self, sources: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], *, capacity: int,
        observe: Sequence[CrossHead] = (),
    ) -> Steps:  # fmt: skip
        """Sentences of one row each.

        `sources` are what an encoder reads, end included (a decoder alone has none: they are empty). `prompts` are
        pieces that the decoder reads now, before the first `advance`, and may be empty. There is room for `capacity`
        pieces a row, prompt included. `observe` are the heads that `observed` tells of.
        """


class PlainModel:
    """Any model that decodes, by its own cached steps: rows are moved by copying. `heads_off` give zeros."""

    def __init__(
        self, model: EncoderDecoder | DecoderOnly, *, heads_off: frozenset[Head] = frozenset(), bounded: bool = False
    ) -> None:
        """`bounded`: a decoder alone that looks through a window forgets what lies behind it."""
        self.model, self.heads_off, self.bounded = model, heads_off, bounded

    @property
    def pieces(self) -> int:
        """Size of the vocabulary."""
        return self.model.output[0].shape[0]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.output[0].device

    @torch.no_grad()
    def start(
        self, sources: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], *, capacity: int,
        observe: Sequence[CrossHead] = (),
    ) -> "PlainSteps":  # fmt: skip
        """Encode the sources, read the prompts."""
        if isinstance(self.model, EncoderDecoder):
            ids, lengths = padded(sources, self.device)
            cache = self.model.start(ids, lengths, capacity=capacity, trace=self._off())
        elif observe:
            raise InputError("a decoder alone has no cross-attention to observe")
        else:
            cache = self.model.start(rows=len(prompts), capacity=capacity, bounded=self.bounded)
        if any(prompts):
            ids, lengths = padded(prompts, self.device)
            self.model.step(ids, cache, counts=lengths.tolist(), trace=self._off())
        return PlainSteps(self.model, cache, tuple(observe), self.heads_off)

    def _off(self) -> Trace | None:
        return Trace(kinds=frozenset(), heads_off=self.heads_off) if self.heads_off else None


class PlainSteps:
    """Rows of a cache; `first` holds where each sentence's begin."""

    def __init__(
        self, model: EncoderDecoder | DecoderOnly, cache: Cache, observe: tuple[CrossHead, ...],
        heads_off: frozenset[Head] = frozenset(),
    ) -> None:  # fmt: skip
        self.model, self.cache, self.observe, self.heads_off = model, cache, observe, heads_off
        self.first = torch.arange(cache.rows, device=cache.keys[0].device)
        self._trace: Trace | None = None

    @property
    def sentences(self) -> int:
        """How many there are."""
        return len(self.first)

    @torch.no_grad()
    def advance(self, tokens_BW: Tensor, parents_BW: Tensor) -> Tensor:
        """Move the rows, then a step of the model."""
        width = tokens_BW.shape[1]
        rows = (self.first[:, None] + parents_BW).flatten()
        if len(rows) != self.cache.rows or not rows.equal(torch.arange(len(rows), device=rows.device)):
            self.cache = self.cache.select(rows)
        self.first = torch.arange(0, len(rows), width, device=rows.device)
        self._trace = self._observer()
        states = self.model.step(tokens_BW.reshape(-1, 1), self.cache, trace=self._trace)
        logits: Tensor = self.model.logits(states[:, -1])
        return logits

    def keep(self, sentences: Tensor) -> None:
        """The others' rows are dropped when rows are moved next."""
        self.first = self.first[sentences]

    def add(self, other: Self) -> None:
        """The other's rows under these."""
        self.first = torch.cat([self.first, other.first + self.cache.rows])
        self.cache = self.cache.join(other.cache)

    def observed(self) -> Tensor:
        """From the trace of the last step."""
        assert self._trace is not None, "nothing is observed"
        heads = self._trace.heads or ()
        weights = [
            self._trace[f"decoder.cross.{layer}.weights"][:, heads.index(head), 0] for layer, head in self.observe
        ]
        seen = torch.stack(weights, dim=1)
        return seen.view(self.sentences, -1, *seen.shape[1:])

    def _observer(self) -> Trace | None:
        if not self.observe:
            return Trace(kinds=frozenset(), heads_off=self.heads_off) if self.heads_off else None
        layers, heads = (tuple(sorted(set(numbers))) for numbers in zip(*self.observe, strict=True))
        return Trace(parts=("decoder.cross",), layers=layers, heads=heads, heads_off=self.heads_off)


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of ids under each other, filled up with 0 behind their ends, and their lengths."""
    lengths = [len(row) for row in rows]
    longest = max(lengths)
    flat = [id for row in rows for id in (*row, *[0] * (longest - len(row)))]
    return torch.tensor(flat, device=device).view(len(rows), longest), torch.tensor(lengths, device=device)
