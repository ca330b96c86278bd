"""The searches of docs/decoding.md once more, in plain Python: every step anew over the whole prefix, one sentence at a
time, never stopped early, with nothing taken from `regard.decoding`.
"""

import math

import torch

from regard.models import EncoderDecoder
from regard.nn import Trace

NEVER = float("-inf")
KNOWN = {}
"""Logits by model and prefix; the model is kept too, so that its id stays its own."""


class Reference:
    """One request under some options."""

    def __init__(self, model, request, end, *, heads=(), forbidden=(), **options):
        self.model, self.request, self.end, self.heads, self.forbidden = model, request, end, heads, forbidden
        self.options = options

    def option(self, name, default):
        return self.options.get(name, default)

    def logits(self, written):
        """Computed once for each prefix, since many tests ask for the same."""
        key = (id(self.model), self.request.source, self.request.read, tuple(written), self.heads)
        if key not in KNOWN:
            KNOWN[key] = (self.model, *self.computed(written))
        return list(KNOWN[key][1]), KNOWN[key][2]

    @torch.no_grad()
    def computed(self, written):
        read = torch.tensor([[*self.request.read, *written]])
        trace = Trace(parts=("decoder.cross",)) if self.heads else None
        if isinstance(self.model, EncoderDecoder):
            source = torch.tensor([self.request.source])
            states = self.model(source, torch.tensor([source.shape[1]]), read, trace=trace)
        else:
            states = self.model(read)
        seen = [
            trace[f"decoder.cross.{layer}.weights"][0, head, len(self.request.read) - 1 :] for layer, head in self.heads
        ]
        return self.model.logits(states)[0, -1].tolist(), seen

    def next(self, written):
        """For each piece its log-probability, and what it is ranked by (-inf: may not be written)."""
        logits, _ = self.logits(written)
        logp = normal(logits)
        penalty = self.option("repetition_penalty", 1.0)
        everything = [*self.request.read, *written]
        if penalty != 1:
            logits = [
                (x / penalty if x > 0 else x * penalty) if piece in everything else x for piece, x in enumerate(logits)
            ]
        ranked = normal(logits)
        size = self.option("no_repeat_ngram", 0)
        for piece in range(len(ranked)):
            longer = [*everything, piece]
            stands = [tuple(everything[at : at + size]) for at in range(len(everything) - size + 1)]
            if size and len(longer) >= size and tuple(longer[-size:]) in stands:
                ranked[piece] = NEVER
            if any(tuple(longer[-len(run) :]) == run for run in self.forbidden):
                ranked[piece] = NEVER
        if len(written) < self.request.least:
            ranked[self.end] = NEVER
        if self.option("guard", True):
            for piece in loops(written, self.request.source):
                ranked[piece] = NEVER
        return logp, ranked

    def norm(self, length):
        length = (5 + length) / 6 if self.option("length_norm", "average") == "gnmt" else length
        return length ** self.option("length_penalty", 1.0)

    def coverage(self, written):
        """Google's: the log of each source piece's attention, at most 1 of it and at least a millionth."""
        beta = self.option("coverage_penalty", 0.0)
        if not beta:
            return 0.0
        _, seen = self.logits(written)
        got = torch.stack(seen).mean(0).sum(0).tolist()
        return beta * sum(math.log(min(max(one, 1e-6), 1.0)) for one in got)

    def answers(self):
        """All `beam` answers: (ids, score, logp, ended), those that ended first, then by score."""
        beam, groups = self.option("beam", 5), self.option("groups", 1)
        width = beam // groups
        going = [[((), 0.0, 0.0)] for _ in range(groups)]
        done = [[] for _ in range(groups)]
        for length in range(1, self.request.limit + 1):
            chosen = {}
            for group in range(groups):
                candidates = []
                for written, total, own in going[group]:
                    logp, ranked = self.next(written)
                    for piece, gain in enumerate(ranked):
                        if gain > NEVER:
                            shunned = self.option("diversity", 0.5) * chosen.get(piece, 0)
                            candidates.append(
                                (total + gain - shunned, (*written, piece), total + gain, own + logp[piece])
                            )
                candidates = self.ranked(candidates)[: 2 * width]
                for _, ids, _, _ in candidates[:width]:
                    chosen[ids[-1]] = chosen.get(ids[-1], 0) + 1
                for _, ids, total, own in candidates[:width]:
                    if ids[-1] == self.end:
                        score = total / self.norm(length) + self.coverage(ids[:-1])
                        done[group].append((ids[:-1], score, own, True))
                going[group] = [each[1:] for each in candidates if each[1][-1] != self.end][:width]
                if width == 1 and done[group]:
                    going[group] = []
        for group in range(groups):
            done[group] = sorted(done[group], key=lambda each: -each[1])[:width]
            for ids, total, own in going[group][: width - len(done[group])]:
                score = total / self.norm(self.request.limit) + self.coverage(ids[:-1])
                done[group].append((ids, score, own, False))
        unique = {}
        for answer in sorted((each for group in done for each in group), key=self.order):
            unique.setdefault(answer[0], answer)
        return list(unique.values())

    def order(self, answer):
        ids, score, _, ended = answer
        met = sum(len(p) if count(ids, p) else ends(ids, p) for p in self.request.phrases)
        return not ended, 0 if ended else -met, -score

    def ranked(self, candidates):
        phrases = self.request.phrases
        if not phrases:
            return sorted(candidates, key=lambda each: -each[0])
        banks = {}
        for each in candidates:
            ids = each[1]
            if any(count(ids, phrase) > 1 for phrase in phrases):
                continue
            if ids[-1] == self.end and not all(count(ids, phrase) for phrase in phrases):
                continue
            met = sum(len(p) if count(ids, p) else ends(ids, p) for p in phrases)
            banks.setdefault(met, []).append(each)
        ordered = [sorted(banks[met], key=lambda each: -each[0]) for met in sorted(banks, reverse=True)]
        return [bank[turn] for turn in range(len(candidates)) for bank in ordered if turn < len(bank)]


def normal(logits):
    """Log-probabilities."""
    whole = math.log(sum(math.exp(one) for one in logits))
    return [one - whole for one in logits]


def count(ids, phrase):
    return sum(tuple(ids[at : at + len(phrase)]) == phrase for at in range(len(ids) - len(phrase) + 1))


def span(ids, period):
    """Pieces at the end that have the period."""
    length = 0
    while length + period < len(ids) and ids[-1 - length] == ids[-1 - length - period]:
        length += 1
    return length + period if length else 0


def loops(written, source):
    """Pieces that would go on with a runaway loop."""
    own = max(
        (span(source[:end], period) for end in range(len(source) + 1) for period in range(1, 17)
         if span(source[:end], period) >= 3 * period), default=0,
    )  # fmt: skip
    return {written[-period] for period in range(1, 17) if span(written, period) >= max(16, 4 * period, 2 * own)}


def ends(ids, phrase):
    return max(size for size in range(len(phrase) + 1) if size == 0 or ids[-size:] == phrase[:size])
