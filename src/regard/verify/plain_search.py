"""The searches of docs/decoding.md once more, as plainly as they can be said: one sentence at a time, and every step
anew over the whole prefix. Of `regard.decoding` it knows nothing but what is asked: `Request` and `Search`.

It also tells how narrowly it decided. Where two candidates are nearer than float32 tells apart, either is right, and
what goes on behind them is no matter of equality.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from regard.decoding import CrossHead, Request, Search
from regard.models import DecoderOnly, EncoderDecoder
from regard.nn import Trace

NEVER = float("-inf")
PERIODS, LONGEST_LOOP, TURNS = 16, 16, 4
"""of the guard against runaway repetition"""
UNSEEN = 1e-6
"""least attention that the coverage penalty counts"""
WORD = 2**64

Ids = tuple[int, ...]


class PlainAnswer(NamedTuple):
    """What a search answers."""

    ids: Ids
    score: float
    logp: float
    ended: bool


class _Written(NamedTuple):
    """A hypothesis that goes on."""

    ids: Ids
    total: float
    """what ranks it"""
    logp: float
    """the model's own"""


class Told:
    """What models say after a prefix, without a cache; of several the mean. Each prefix is computed once."""

    def __init__(self, models: Sequence[EncoderDecoder | DecoderOnly], heads: Sequence[CrossHead] = ()) -> None:
        self.models, self.heads = models, heads
        self._known: dict[tuple[Ids, Ids], tuple[Tensor, Tensor | None]] = {}

    def __call__(self, source: Ids, read: Ids) -> tuple[Tensor, Tensor | None]:
        """The score of each next piece, and the heads' mean attention of each read piece, (T, M)."""
        if (source, read) not in self._known:
            sides = [self._one(model, source, read) for model in self.models]
            scores = sides[0][0]
            if len(sides) > 1:
                scores = torch.stack([side.log_softmax(-1) for side, _ in sides]).exp().mean(0).log()
            seen = [attention for _, attention in sides if attention is not None]
            self._known[source, read] = scores, torch.stack(seen).mean(0) if seen else None
        return self._known[source, read]

    @torch.no_grad()
    def _one(self, model: EncoderDecoder | DecoderOnly, source: Ids, read: Ids) -> tuple[Tensor, Tensor | None]:
        device = model.output[0].device
        ids = torch.tensor([read], device=device)
        trace = Trace(parts=("decoder.cross",)) if self.heads else None
        if isinstance(model, EncoderDecoder):
            states = model(
                torch.tensor([source], device=device), torch.tensor([len(source)], device=device), ids, trace=trace
            )
        else:
            states = model(ids)
        scores = model.logits(states[:, -1])[0].double().cpu()
        if trace is None:
            return scores, None
        heads = [trace[f"decoder.cross.{layer}.weights"][0, head].cpu() for layer, head in self.heads]
        return scores, torch.stack(heads).mean(0)


class PlainSearch:
    """One request under some options."""

    def __init__(self, told: Told, request: Request, search: Search) -> None:
        self.told, self.request, self.search, self.options = told, request, search, search.options
        self.narrowest = math.inf
        """the least difference that decided anything"""

    def answers(self) -> list[PlainAnswer]:
        """All that are found, best first."""
        found = self._drawn() if self.options.samples else self._searched()
        found = sorted(found, key=self._order)
        for one, other in pairwise(found):
            if one.ids != other.ids and self._order(one)[:2] == self._order(other)[:2]:
                self._decided(one.score - other.score)
        return found

    def next(self, written: Ids) -> tuple[Tensor, Tensor]:
        """Of each piece its log-probability, and what it is ranked by (-inf: may not be written)."""
        options, everything = self.options, (*self.request.read, *written)
        scores, _ = self.told(self.request.source, everything)
        logp = scores.log_softmax(-1)
        if options.repetition_penalty != 1:
            scores = scores.clone()
            for piece in set(everything):
                divides = scores[piece] > 0
                scores[piece] *= 1 / options.repetition_penalty if divides else options.repetition_penalty
        ranked = scores.log_softmax(-1)
        ranked[list(self._forbidden(written, everything))] = NEVER
        return logp, ranked

    def _forbidden(self, written: Ids, everything: Ids) -> set[int]:
        """Pieces that may not be written next."""
        size, options = self.options.no_repeat_ngram, self.options
        runs = list(self.search.forbidden)
        if size:
            runs += [everything[at : at + size] for at in range(len(everything) - size + 1)]
        pieces = {run[-1] for run in runs if everything[len(everything) - len(run) + 1 :] == run[:-1]}
        if len(written) < self.request.least:
            pieces.add(self.search.end)
        if options.guard:
            pieces |= loops(written, self.request.source)
        return pieces

    def _searched(self) -> list[PlainAnswer]:
        """A beam, or several that shun what those before them chose; a beam of one is over with its first answer."""
        options, groups, end = self.options, self.options.groups, self.search.end
        width = options.beam // groups
        going = [[_Written((), 0.0, 0.0)] for _ in range(groups)]
        done: list[list[PlainAnswer]] = [[] for _ in range(groups)]
        closed = [False] * groups
        for length in range(1, self.request.limit + 1):
            chosen: dict[int, int] = {}
            for group in range(groups):
                candidates = self._candidates(going[group], chosen, width)
                for _, each in candidates[:width]:
                    chosen[each.ids[-1]] = chosen.get(each.ids[-1], 0) + 1
                    if each.ids[-1] == end and not closed[group]:
                        score = each.total / self._norm(length) + self._coverage(each.ids[:-1])
                        done[group].append(PlainAnswer(each.ids[:-1], score, each.logp, True))
                done[group] = self._best(done[group], width)
                going[group] = [each for _, each in candidates if each.ids[-1] != end][:width]
                if width == 1 and done[group]:
                    going[group] = []
                closed[group] = closed[group] or self._stops(going[group], done[group], width, length)
        for group in range(groups):
            missing = 0 if closed[group] else width - len(done[group])
            for each in going[group][:missing]:
                score = each.total / self._norm(self.request.limit) + self._coverage(each.ids[:-1])
                done[group].append(PlainAnswer(each.ids, score, each.logp, False))
        unique: dict[Ids, PlainAnswer] = {}
        for answer in sorted((each for group in done for each in group), key=self._order):
            unique.setdefault(answer.ids, answer)
        return list(unique.values())

    def _stops(self, going: list[_Written], done: list[PlainAnswer], width: int, length: int) -> bool:
        """Whether a group takes no more answers. Stopping safely answers what never stopping does, and so is none."""
        if self.options.stopping == "safe" or width == 1 or len(done) < width:
            return False
        if self.options.stopping == "full" or not going:
            return True
        gap = done[-1].score - max(each.total for each in going) / self._norm(length)
        self._decided(gap)
        return gap >= 0

    def _candidates(self, going: list[_Written], chosen: dict[int, int], width: int) -> list[tuple[float, _Written]]:
        """The 2 w best that go on from these, each with what ranked it, best first."""
        found = []
        for written, total, own in going:
            logp, ranked = self.next(written)
            shunned = ranked.clone()
            for piece, times in chosen.items():
                shunned[piece] -= self.options.diversity * times
            special = {self.search.end, *(piece for phrase in self.request.phrases for piece in phrase)}
            most = min(2 * width + 1 + len(special), len(ranked))  # all others are like one another, and outscored
            for piece in sorted({*shunned.topk(most).indices.tolist(), *special}):
                if float(ranked[piece]) > NEVER:
                    longer = _Written((*written, piece), total + float(ranked[piece]), own + float(logp[piece]))
                    found.append((total + float(shunned[piece]), longer))
        found.sort(key=lambda each: -each[0])
        if self.request.phrases:
            return self._in_turns(found, width)[: 2 * width]
        self._between(found, width, always=self.options.groups > 1)
        self._between([each for each in found if each[1].ids[-1] != self.search.end], width, always=True)
        return found[: 2 * width]

    def _in_turns(self, candidates: list[tuple[float, _Written]], width: int) -> list[tuple[float, _Written]]:
        """Those that have met the same of the phrases compete; the best of each such bank come first, and so on."""
        phrases, banks = self.request.phrases, dict[int, list[tuple[float, _Written]]]()
        for each in candidates:
            ids = each[1].ids
            if any(_count(ids, phrase) > 1 for phrase in phrases):
                continue
            if ids[-1] == self.search.end and not all(_count(ids, phrase) for phrase in phrases):
                continue
            banks.setdefault(self._met(ids), []).append(each)
        for bank in banks.values():
            for one, other in pairwise(bank[: 2 * width + 1]):
                self._decided(one[0] - other[0])
        ordered = [banks[met] for met in sorted(banks, reverse=True)]
        return [bank[turn] for turn in range(len(candidates)) for bank in ordered if turn < len(bank)]

    def _drawn(self) -> list[PlainAnswer]:
        """Every row writes by itself what its own random numbers say."""
        found = []
        for row in range(self.options.samples):
            each, ended = _Written((), 0.0, 0.0), False
            while not ended and len(each.ids) < self.request.limit:
                logp, ranked = self.next(each.ids)
                chance = chance_of(self.options.seed, self.request.key, row, len(each.ids))
                piece = self._piece_at(chance, self.chances(ranked))
                ended = piece == self.search.end
                each = _Written(
                    (*each.ids, piece), each.total + float(ranked[piece]), each.logp + float(logp[piece])
                )  # fmt: skip
            ids = each.ids[:-1] if ended else each.ids
            found.append(PlainAnswer(ids, each.total / self._norm(len(each.ids)), each.logp, ended))
        return found

    def _piece_at(self, share: float, chances: dict[int, float]) -> int:
        """The piece at which the chances, summed up, exceed this share of them all."""
        left = share * sum(chances.values())
        for piece, chance in chances.items():
            left -= chance
            self._decided(left)
            if left < 0:
                return piece
        return piece

    def chances(self, ranked: Tensor) -> dict[int, float]:
        """What temperature, top-k, top-p and min-p, in this order, leave of the pieces: likeliest first."""
        options = self.options
        sharp, order = (ranked / options.temperature).sort(descending=True)
        kept = int((sharp > NEVER).sum())
        if 0 < options.top_k < kept:
            self._decided(float(sharp[options.top_k - 1] - sharp[options.top_k]))
            kept = options.top_k
        held: dict[int, float] = {}
        before, first = 0.0, 0.0
        for piece, chance in zip(order[:kept].tolist(), sharp[:kept].softmax(-1).tolist(), strict=True):
            first = first or chance
            if options.top_p < 1:
                self._decided(before - options.top_p)
            if options.min_p:
                self._decided(chance - options.min_p * first)
            if before < options.top_p and chance >= options.min_p * first:
                held[piece] = chance
            before += chance
        return held

    def _norm(self, length: int) -> float:
        """What scores are divided by."""
        counted = (5 + length) / 6 if self.options.length_norm == "gnmt" else length
        return float(counted**self.options.length_penalty)

    def _coverage(self, written: Ids) -> float:
        """Google's: the log of each source piece's attention, at most 1 of it and at least a millionth."""
        if not self.options.coverage_penalty:
            return 0.0
        _, seen = self.told(self.request.source, (*self.request.read, *written))
        assert seen is not None
        got = seen[len(self.request.read) - 1 :].sum(0).tolist()
        return self.options.coverage_penalty * sum(math.log(min(max(one, UNSEEN), 1.0)) for one in got)

    def _best(self, answers: list[PlainAnswer], width: int) -> list[PlainAnswer]:
        ranked = sorted(answers, key=lambda each: -each.score)
        if len(ranked) > width:
            self._decided(ranked[width - 1].score - ranked[width].score)
        return ranked[:width]

    def _order(self, answer: PlainAnswer) -> tuple[bool, int, float]:
        return not answer.ended, 0 if answer.ended else -self._met(answer.ids), -answer.score

    def _met(self, ids: Ids) -> int:
        """Pieces of the phrases that are met."""
        return sum(len(phrase) if _count(ids, phrase) else _ends(ids, phrase) for phrase in self.request.phrases)

    def _between(self, ranked: list[tuple[float, _Written]], width: int, *, always: bool) -> None:
        """What decided who is among the best `width`; unless always, only where an end is concerned."""
        if len(ranked) > width:
            inside, outside = ranked[width - 1], ranked[width]
            if always or self.search.end in (inside[1].ids[-1], outside[1].ids[-1]):
                self._decided(inside[0] - outside[0])

    def _decided(self, gap: float) -> None:
        self.narrowest = min(self.narrowest, abs(gap))


def loops(written: Ids, source: Ids) -> set[int]:
    """Pieces that would go on with a runaway loop: 16 pieces and four turns, and twice what the source repeats."""
    spans = [_span(source[:end], period) for end in range(len(source) + 1) for period in range(1, PERIODS + 1)]
    periods = [period for _ in range(len(source) + 1) for period in range(1, PERIODS + 1)]
    own = max((span for span, period in zip(spans, periods, strict=True) if span >= 3 * period), default=0)
    return {
        written[-period]
        for period in range(1, PERIODS + 1)
        if _span(written, period) >= max(LONGEST_LOOP, TURNS * period, 2 * own)
    }


def chance_of(seed: int, key: int, row: int, count: int) -> float:
    """The random number of a row's piece: SplitMix64 of seed, key, row and count."""
    state = _mixed(seed)
    for part in (key, row, count):
        state = _mixed(state ^ part)
    return (state >> 11) / 2**53


def _mixed(state: int) -> int:
    state = (state + 0x9E3779B97F4A7C15) % WORD
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % WORD
    return state ^ (state >> 31)


def _span(ids: Ids, period: int) -> int:
    """Pieces at the end that have the period."""
    length = 0
    while length + period < len(ids) and ids[-1 - length] == ids[-1 - length - period]:
        length += 1
    return length + period if length else 0


def _count(ids: Ids, phrase: Ids) -> int:
    return sum(ids[at : at + len(phrase)] == phrase for at in range(len(ids) - len(phrase) + 1))


def _ends(ids: Ids, phrase: Ids) -> int:
    """How many first pieces of the phrase stand at the end."""
    return max(size for size in range(len(phrase) + 1) if size == 0 or ids[-size:] == phrase[:size])
