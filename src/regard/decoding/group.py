"""Sentences that are searched together: their state, and one step of it.

Everything about the hypotheses stands in tensors, so that a step costs a few operations however many there are; only
an answer that ended is a Python value. Sentences leave when they are over and others enter, so counts differ.

Shapes: B sentences, G groups of a diverse beam (else 1), w rows of a group, W = G·w rows (1 before the first step),
V pieces, C room for pieces, M source pieces, N candidates.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decoding.choose import Choice, Scores, diverse, drawn, likeliest, uniforms
from regard.decoding.phrases import constrained, met
from regard.decoding.recorder import Recorder
from regard.decoding.request import Found, Hypothesis, Ids, Request, Search
from regard.decoding.restrict import NEVER, Guard, forbid_early_end, forbid_repeats, forbid_runs, penalise
from regard.decoding.steps import StepModel, Steps
from regard.errors import InputError

UNSEEN = 1e-6
"""least attention that the coverage penalty counts: a piece that nothing looked at costs 13.8, not infinitely much"""


class _Answer(NamedTuple):
    hypothesis: Hypothesis
    group: int
    node: int | None
    """its place in the tree"""


class Group:
    """A batch of a search."""

    def __init__(self, model: StepModel, requests: Sequence[tuple[int, Request]], search: Search) -> None:
        """Start these numbered requests."""
        self.search, self.options = search, search.options
        self.numbers = [number for number, _ in requests]
        self.requests = [request for _, request in requests]
        asked, device = self.requests, model.device
        if any(each.phrases for each in asked) and (self.options.samples or search.groups > 1):
            raise InputError("a request with phrases: only a beam without groups writes what has to be written")
        room = max(len(each.read) + each.limit for each in asked)
        self.steps: Steps = model.start(
            [each.source for each in asked], [each.read[:-1] for each in asked], capacity=room,
            observe=search.coverage_heads if self.options.coverage_penalty else (),
        )  # fmt: skip
        self.tokens = torch.tensor([[each.read[-1]] for each in asked], device=device)
        self.parents = torch.zeros_like(self.tokens)
        rows = [[*each.read, *[0] * (room - len(each.read))] for each in asked]
        self.written = torch.tensor(rows, device=device)[:, None]
        """(B, W, C) what was read and written"""
        self.starts = torch.tensor([len(each.read) for each in asked], device=device)
        self.counts = torch.zeros(len(asked), dtype=torch.long, device=device)
        """(B) pieces written"""
        self.limits = torch.tensor([each.limit for each in asked], device=device)
        self.leasts = torch.tensor([each.least for each in asked], device=device)
        self.totals = torch.zeros(len(asked), 1, device=device)
        """(B, W) what ranks the hypotheses; -inf for a row that is none"""
        self.logps = self.totals
        """(B, W) the model's log-probability of each; the same tensor where nothing makes them differ"""
        self.width = search.width // search.groups
        self.done = torch.full((len(asked), search.groups, self.width), NEVER, device=device)
        """(B, G, w) scores of the best answers so far, best first"""
        self.closed = torch.zeros(len(asked), search.groups, dtype=torch.bool, device=device)
        """(B, G) groups that take no more answers"""
        self.answers: list[list[_Answer]] = [[] for _ in asked]
        self.guard = Guard([each.source for each in asked], device) if self.options.guard else None
        self.recorder = Recorder(self.numbers) if search.tree else None
        longest = max(len(each.source) for each in asked)
        self.coverage = torch.zeros(len(asked), 1, longest, device=device) if self.options.coverage_penalty else None
        """(B, W, M) attention that each source piece has got; 1 behind a source's end"""
        if self.coverage is not None:
            lengths = torch.tensor([len(each.source) for each in asked], device=device)
            self.coverage = (torch.arange(longest, device=device) >= lengths[:, None])[:, None].float()

    @property
    def sentences(self) -> int:
        """How many there are."""
        return len(self.numbers)

    def step(self) -> None:
        """Write one more piece of every hypothesis."""
        logits = self.steps.advance(self.tokens, self.parents).float().view(self.sentences, self.tokens.shape[1], -1)
        if self.coverage is not None:
            moved = self.coverage.gather(1, self.parents[:, :, None].expand(-1, -1, self.coverage.shape[2]))
            self.coverage = moved + self.steps.observed().float().mean(2)
        norm = logits.logsumexp(-1)
        choice, logps = self._choose(logits, norm)
        self.counts = self.counts + 1
        ends = choice.pieces == self.search.end
        kept = self._kept(choice, ends)
        if self.recorder:
            own, before = (choice.totals, self.totals) if logps is None else (logps, self.logps)
            gained = own - before.gather(1, choice.parents.flatten(1)).view_as(own)
            self.recorder.step(self.numbers, choice, gained, kept, ends, self.width)
        self._finish(choice, logps, ends)
        self._go_on(choice, logps, kept)
        self._close()

    def leave(self) -> list[tuple[int, Found]]:
        """Those that are over, with their answers."""
        over = self.closed.all(1).tolist()
        if not any(over):
            return []
        left = [(self.numbers[place], self._found(place)) for place, ended in enumerate(over) if ended]
        stay = [place for place, ended in enumerate(over) if not ended]
        self._keep(stay)
        return left

    def add(self, other: Self) -> None:
        """The other's sentences, which have taken a step too, go on here."""
        self.steps.add(other.steps)
        room = max(self.written.shape[2], other.written.shape[2])
        self.written = torch.cat([F.pad(side.written, (0, room - side.written.shape[2])) for side in (self, other)])
        same = self.logps is self.totals
        for name in ("tokens", "parents", "starts", "counts", "limits", "leasts", "totals", "logps", "done", "closed"):
            setattr(self, name, torch.cat([getattr(self, name), getattr(other, name)]))
        if same:
            self.logps = self.totals
        self.numbers += other.numbers
        self.requests += other.requests
        self.answers += other.answers
        if self.guard and other.guard:
            self.guard.add(other.guard)
        if self.recorder and other.recorder:
            self.recorder.add(other.recorder)
        if self.coverage is not None and other.coverage is not None:
            longest = max(self.coverage.shape[2], other.coverage.shape[2])
            sides = (F.pad(each, (0, longest - each.shape[2]), value=1.0) for each in (self.coverage, other.coverage))
            self.coverage = torch.cat(list(sides))

    def _choose(self, logits: Tensor, norm: Tensor) -> tuple[Choice, Tensor | None]:
        """The candidates; and the model's own log-probability of each, where their totals are something else."""
        options, lengths = self.options, self.starts + self.counts
        plain = logits
        if options.repetition_penalty != 1:
            logits = penalise(logits, self.written, lengths, options.repetition_penalty)
            norm_here = logits.logsumexp(-1)
        else:
            norm_here = norm
        if options.no_repeat_ngram:
            forbid_repeats(logits, self.written, lengths, options.no_repeat_ngram)
        forbid_runs(logits, self.written, lengths, self.search.forbidden)
        if any(each.least for each in self.requests):
            forbid_early_end(logits, self.counts, self.leasts, self.search.end)
        if self.guard:
            self.guard.forbid(logits, self.written, lengths)
        choice = self._candidates(Scores(logits, norm_here, self.totals))
        if plain is logits:
            return choice, None
        sentence = torch.arange(self.sentences, device=logits.device)[:, None, None]
        gained = plain[sentence, choice.parents, choice.pieces] - norm[sentence, choice.parents]
        return choice, self.logps[sentence, choice.parents] + gained

    def _candidates(self, scores: Scores) -> Choice:
        options = self.options
        if options.samples:
            keys = np.array([each.key for each in self.requests], dtype=np.uint64)
            counts = self.counts.cpu().numpy().astype(np.uint64)
            chances = uniforms(options.seed, keys, options.samples, counts)
            return drawn(scores, options, chances.to(scores.logits.device))
        if any(each.phrases for each in self.requests):
            written = [
                [row[start : start + count] for row in rows]
                for rows, start, count in zip(
                    self.written.tolist(), self.starts.tolist(), self.counts.tolist(), strict=True
                )
            ]
            phrases = [each.phrases for each in self.requests]
            return constrained(scores, written, phrases, width=self.width, end=self.search.end)
        if self.search.groups > 1:
            return diverse(scores, self.search.groups, self.width, options.diversity)
        return likeliest(scores, self.width, greedy=self.width == 1)

    def _finish(self, choice: Choice, logps: Tensor | None, ends: Tensor) -> None:
        """Put away the candidates that ended, if they are among the best `w` of their group."""
        first = slice(0, self.width)
        ended = ends[..., first] & (choice.rank[..., first] > NEVER) & ~self.closed[:, :, None]
        if not bool(ended.any()):
            return
        scores = choice.totals[..., first] / self._norm(self.counts)[:, None, None]
        if self.coverage is not None:
            missed = self.coverage.clamp(UNSEEN, 1).log().sum(-1)
            sentence = torch.arange(self.sentences, device=missed.device)[:, None, None]
            scores = scores + self.options.coverage_penalty * missed[sentence, choice.parents[..., first]]
        scores = scores.masked_fill(~ended, NEVER)
        self.done = torch.cat([self.done, scores], dim=-1).topk(self.width).values
        places = ended.nonzero()
        sentences = places[:, 0]
        rows = choice.parents[..., first][ended]
        own = choice.totals if logps is None else logps
        acted = self.guard.acted[sentences, rows].tolist() if self.guard else [False] * len(places)
        counts = self.counts.tolist()
        for (sentence, group, rank), ids, score, logp, guarded in zip(
            places.tolist(), self.written[sentences, rows].tolist(), scores[ended].tolist(),
            own[..., first][ended].tolist(), acted, strict=True,
        ):  # fmt: skip
            answers, start = self.answers[sentence], len(self.requests[sentence].read)
            node = self.recorder.place(self.numbers[sentence], group, rank) if self.recorder else None
            written = ids[start : start + counts[sentence] - 1]
            answers.append(_Answer(Hypothesis(written, score, logp, True, guarded), group, node))

    def _kept(self, choice: Choice, ends: Tensor) -> Tensor:
        """Places of the candidates that go on, (B, G, w): the best that do not end; in sampling, every row's own."""
        if self.options.samples:
            return torch.arange(self.width, device=ends.device).expand_as(choice.rank)
        return choice.rank.masked_fill(ends, NEVER).topk(self.width).indices

    def _go_on(self, choice: Choice, logps: Tensor | None, kept: Tensor) -> None:
        """Move the rows to those that go on, and write their pieces."""
        pieces = choice.pieces.gather(-1, kept)
        dead = (choice.rank.gather(-1, kept) == NEVER) | (pieces == self.search.end)
        if self.width == 1:  # a beam of one is over with its first answer, however the rest would weigh
            dead = dead | (self.done > NEVER)
        self.totals = choice.totals.gather(-1, kept).masked_fill(dead, NEVER).flatten(1)
        self.logps = self.totals if logps is None else logps.gather(-1, kept).flatten(1)
        self.tokens, self.parents = pieces.flatten(1), choice.parents.gather(-1, kept).flatten(1)
        rows, lengths = self.parents[:, :, None], self.starts + self.counts
        self.written = self.written.gather(1, rows.expand(-1, -1, self.written.shape[2]))
        self.written.scatter_(2, (lengths - 1)[:, None, None].expand_as(rows), self.tokens[:, :, None])
        if self.guard:
            self.guard.follow(self.parents, self.written, lengths, self.starts)

    def _close(self) -> None:
        """Close the groups that are over. With safe stopping no answer would be another if they went on."""
        totals = self.totals.view_as(self.done)
        best = totals.amax(-1)
        over = best == NEVER
        if self.width > 1 and not self.options.samples:
            match self.options.stopping:
                case "safe":  # pieces to come add nothing above 0, and no length divides by more than the limit's
                    needed = min(self.search.nbest, self.width)
                    won = best / self._norm(self.limits)[:, None] <= self.done[..., needed - 1]
                case "likely":
                    won = best / self._norm(self.counts)[:, None] <= self.done[..., -1]
                case "full":
                    won = self.done[..., -1] > NEVER
            over = over | won
        cut = self.counts >= self.limits
        if bool(cut.any()):
            self._cut((cut[:, None] & ~self.closed & ~over).nonzero().tolist())
        self.closed = self.closed | over | cut[:, None]

    def _cut(self, groups: list[list[int]]) -> None:
        """At the limit, what is unfinished fills up the answers of a group of which too few ended."""
        for sentence, group in groups:
            asked, rows = self.requests[sentence], range(group * self.width, (group + 1) * self.width)
            missing = int((self.done[sentence, group] == NEVER).sum())
            alive = [row for row in rows if float(self.totals[sentence, row]) > NEVER][:missing]
            count, start = int(self.counts[sentence]), len(asked.read)
            norm = float(self._norm(self.counts[sentence]))
            for row in alive:
                ids = self.written[sentence, row, start : start + count].tolist()
                guarded = bool(self.guard.acted[sentence, row]) if self.guard else False
                score, logp = float(self.totals[sentence, row]) / norm, float(self.logps[sentence, row])
                if self.coverage is not None:
                    missed = self.coverage[sentence, int(self.parents[sentence, row])].clamp(UNSEEN, 1).log().sum()
                    score += self.options.coverage_penalty * float(missed)
                node = self.recorder.cut(self.numbers[sentence], row) if self.recorder else None
                answer = Hypothesis(ids, score, logp, False, guarded)
                self.answers[sentence].append(_Answer(answer, group, node))

    def _norm(self, counts: Tensor) -> Tensor:
        """What scores of answers of these lengths are divided by."""
        lengths = counts if self.options.length_norm == "average" else (5 + counts) / 6
        norm: Tensor = lengths.to(self.totals.dtype) ** self.options.length_penalty
        return norm

    def _found(self, place: int) -> Found:
        """A sentence's answers, best first; groups of a diverse beam may have found the same."""
        phrases = self.requests[place].phrases
        ranked = sorted(self.answers[place], key=lambda each: _order(each.hypothesis, phrases))
        if self.search.groups > 1:
            best = [
                each
                for group in range(self.search.groups)
                for each in [one for one in ranked if one.group == group][: self.width]
            ]
            first: dict[tuple[int, ...], _Answer] = {}
            for each in sorted(best, key=ranked.index):
                first.setdefault(tuple(each.hypothesis.ids), each)
            ranked = list(first.values())
        ranked = ranked[: self.search.nbest]
        nodes = tuple(each.node for each in ranked if each.node is not None)
        tree = self.recorder.tree(self.numbers[place], nodes) if self.recorder else None
        return Found([each.hypothesis for each in ranked], tree)

    def _keep(self, stay: list[int]) -> None:
        index = torch.tensor(stay, dtype=torch.long, device=self.tokens.device)
        self.steps.keep(index)
        same = self.logps is self.totals
        for name in (
            "tokens", "parents", "written", "starts", "counts", "limits", "leasts", "totals", "logps", "done", "closed",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name)[index])
        if same:
            self.logps = self.totals
        self.numbers = [self.numbers[place] for place in stay]
        self.requests = [self.requests[place] for place in stay]
        self.answers = [self.answers[place] for place in stay]
        if self.guard:
            self.guard.keep(index)
        if self.coverage is not None:
            self.coverage = self.coverage[index]


def _order(answer: Hypothesis, phrases: Sequence[Ids]) -> tuple[bool, int, float]:
    """Those that ended come first, which have all phrases; of the others those that are furthest with them."""
    return not answer.ended, 0 if answer.ended else -met(answer.ids, phrases), -answer.score
