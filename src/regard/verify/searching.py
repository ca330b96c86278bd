"""Equalities of searching: batched, in company, streamed and moved about, it finds what the plainest way finds."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from regard.config import DecodingConfig
from regard.decoding import (
    Ensemble,
    Given,
    Hypothesis,
    PlainModel,
    Request,
    Search,
    StepModel,
    force,
    search,
    search_stream,
    step_model,
)  # fmt: skip
from regard.decoding.stream import Sampling, write_on
from regard.models import DecoderOnly, EncoderDecoder
from regard.verify.certificate import Equality, Measured, difference
from regard.verify.plain_search import PlainAnswer, PlainSearch, Told
from regard.verify.subject import Subject, decoders
from regard.verify.trials import TRIALS, Decoder, Trial, asked, heads_of, in_turn
from regard.verify.witness import Witness

NARROW = 5e-5
"""Searches that something nearer than this decided are left out: float32 does not tell the two apart."""

COMPANIES = (
    Trial(DecodingConfig(beam=4)),
    Trial(DecodingConfig(beam=1)),
    Trial(DecodingConfig(beam=4, groups=2)),
    Trial(DecodingConfig(samples=3)),
)
ORDERS = (((0, 1, 2), 320), ((2, 1, 0), 320), ((1, 0, 2, 1, 0), 6))
"""Orders in which requests come, and rows that are written together: with few, some enter when others have left."""


@torch.no_grad()
def batched_is_plain(subject: Subject) -> Measured:
    """Every trial, by the model's own steps and by the fastest that there are, and an ensemble."""
    for name, model, trial in in_turn(subject, TRIALS):
        yield from _compared(name, [PlainModel(model), step_model(model)], [model], *asked(subject, model, trial))
    members = [model for _, model in decoders(subject.models) if isinstance(model, EncoderDecoder)]
    alike = [model for model in members if model.config.source_vocabulary == members[0].config.source_vocabulary]
    if len(alike) > 1:
        together = Ensemble([PlainModel(model) for model in alike[:2]])
        asking = asked(subject, alike[0], Trial(DecodingConfig(beam=3)))
        yield from _compared("two models", [together], alike[:2], *asking)


@torch.no_grad()
def alone_is_in_company(subject: Subject) -> Measured:
    """A beam, a greedy search, a diverse one and samples."""
    for name, model, trial in in_turn(subject, COMPANIES):
        requests, wanted = asked(subject, model, trial)
        alone = [search(PlainModel(model), [request], wanted)[0].answers for request in requests]
        clear = [_plain([model], request, wanted)[1] for request in requests]
        for order, rows in ORDERS:
            small = replace(wanted, options=replace(trial.options, batch_rows=rows))
            together = search(PlainModel(model), [requests[place] for place in order], small)
            for place, found in zip(order, together, strict=True):
                if clear[place]:
                    yield f"{name}, request {place}", _apart(found.answers, alone[place])


@torch.no_grad()
def streamed_is_whole(subject: Subject) -> Measured:
    """Requests of which two are held at once; and what a decoder alone writes on, a piece of every row at a time."""
    for name, model, trial in in_turn(subject, [Trial(DecodingConfig(beam=3)), Trial(DecodingConfig(samples=2))]):
        requests, wanted = asked(subject, model, trial)
        whole = search(PlainModel(model), requests, wanted)
        streamed = search_stream(PlainModel(model), iter(requests), wanted, window=2)
        for place, (one, other) in enumerate(zip(streamed, whole, strict=True)):
            if _plain([model], requests[place], wanted)[1]:
                yield f"{name}, request {place}", _apart(one.answers, other.answers)
        if isinstance(model, DecoderOnly):
            greedy = replace(wanted, options=DecodingConfig(beam=1, guard=False), nbest=1)
            for place, written in enumerate(_written_on(model, requests, wanted.end)):
                right, clear = _plain([model], requests[place], greedy)
                ids = [*right[0].ids, *([wanted.end] if right[0].ended else [])]
                if clear:
                    yield f"{name}, text {place}", 0.0 if written == ids else math.inf


@torch.no_grad()
def aligned_is_forced(subject: Subject) -> Measured:
    """Every hypothesis of a beam whose rows move and whose sentences come and go, and of samples."""
    trials = [Trial(DecodingConfig(beam=4, batch_rows=8)), Trial(DecodingConfig(samples=3))]
    for name, model, trial in in_turn(subject, trials):
        if not isinstance(model, EncoderDecoder):
            continue
        requests, wanted = asked(subject, model, trial)
        heads = heads_of(model)
        witness = Witness(PlainModel(model), heads)
        for place, found in enumerate(search(witness, requests, wanted)):
            for answer in found.answers:
                given = _given(requests[place], answer, wanted.end)
                (forced,) = force([model], [given], heads=heads)
                assert forced.weights is not None
                yield f"{name}, request {place}", difference(witness.seen(given), forced.weights)
                yield f"{name}, request {place}, score", _near(sum(forced.logps), answer.logp)


def _compared(
    name: str, writers: Sequence[StepModel], models: Sequence[Decoder], requests: list[Request], wanted: Search
) -> Measured:
    """What each way to take steps finds for the whole batch, beside what the plain search finds."""
    right = [_plain(models, request, wanted) for request in requests]
    for writer in writers:
        for place, found in enumerate(search(writer, requests, wanted)):
            answers, clear = right[place]
            if clear:
                yield f"{name}, request {place}, {type(writer).__name__}", _apart(found.answers, answers)


def _plain(models: Sequence[Decoder], request: Request, wanted: Search) -> tuple[list[PlainAnswer], bool]:
    """The plain search's answers, and whether nothing was decided too narrowly."""
    plain = PlainSearch(Told(models, wanted.coverage_heads), request, wanted)
    answers = plain.answers()
    return answers, plain.narrowest > NARROW


def _apart(found: Sequence[Hypothesis], right: Sequence[Hypothesis | PlainAnswer]) -> float:
    """The largest difference of scores; answers of other pieces are infinitely far apart."""
    if [(tuple(one.ids), one.ended) for one in found] != [(tuple(one.ids), one.ended) for one in right]:
        return math.inf
    sides = zip(found, right, strict=True)
    return max((max(_near(one.score, two.score), _near(one.logp, two.logp)) for one, two in sides), default=0.0)


def _near(one: float, other: float) -> float:
    return difference(torch.tensor([one], dtype=torch.float64), torch.tensor([other], dtype=torch.float64))


def _given(request: Request, answer: Hypothesis, end: int) -> Given:
    return Given(request.source, request.read, (*answer.ids, *([end] if answer.ended else [])))


def _written_on(model: DecoderOnly, requests: Sequence[Request], end: int) -> list[list[int]]:
    """What the stream writes behind each request's prompt, its likeliest pieces."""
    written: list[list[int]] = [[] for _ in requests]
    for pieces in write_on(
        PlainModel(model), [request.read for request in requests], sampling=Sampling(temperature=0),
        limits=[request.limit for request in requests], end=end, context=model.config.max_length,
    ):  # fmt: skip
        for piece in pieces:
            written[piece.row].append(piece.id)
    return written


SEARCHING = (
    Equality(
        name="batched search = plain search",
        says="under every option answers and scores are those of a search in plain Python that keeps no cache",
        bound=1e-4,
        measure=batched_is_plain,
    ),
    Equality(
        name="searched alone = in company",
        says="a text's answers do not depend on which others are searched, in which order, or when they enter",
        bound=1e-5,
        measure=alone_is_in_company,
    ),
    Equality(
        name="streamed = whole",
        says="answers that stream are those of all texts at once, and written text is that of a greedy search",
        bound=1e-5,
        measure=streamed_is_whole,
    ),
    Equality(
        name="alignment = forced alignment",
        says="what a hypothesis looked at while rows moved is what it looks at when forced through the model, whole",
        bound=1e-5,
        measure=aligned_is_forced,
    ),
)
"""What holds of searches."""
