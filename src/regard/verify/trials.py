"""Searches to hold against each other: what is asked of a model, and under which options.

Every option that changes an answer is in one trial at least. Trials go round: each runs on one model of each family,
and the next on the next model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch

from regard.config import DecodingConfig
from regard.decoding import CrossHead, Request, Search
from regard.models import DecoderOnly, EncoderDecoder, Model
from regard.verify.plain_search import Told
from regard.verify.subject import Subject, decoders

Decoder = EncoderDecoder | DecoderOnly
Asks = Literal["nothing more", "a prefix", "phrases", "least and most pieces", "two pieces only"]

SOURCES, LIMITS = (5, 2, 7), (6, 3, 7)
"""pieces that the requests read, and that they may write"""
FEW = 100
"""pieces of a vocabulary up to which all but two are forbidden one by one, so that the guard has something to do"""


class Trial(NamedTuple):
    """Options, and what the requests ask of their own."""

    options: DecodingConfig
    asks: Asks = "nothing more"

    def __str__(self) -> str:
        plain = DecodingConfig()
        stated = [f"{name} {value}" for name, value in vars(self.options).items() if value != getattr(plain, name)]
        return ", ".join([*stated, *([self.asks] if self.asks != "nothing more" else [])]) or "as usual"


TRIALS = (
    Trial(DecodingConfig(beam=1)),
    Trial(DecodingConfig(beam=5, length_penalty=0)),
    Trial(DecodingConfig(beam=4, length_penalty=0.6)),
    Trial(DecodingConfig(beam=4, length_norm="gnmt", length_penalty=0.8)),
    Trial(DecodingConfig(beam=2, stopping="likely")),
    Trial(DecodingConfig(beam=3, stopping="full")),
    Trial(DecodingConfig(beam=4, coverage_penalty=0.5)),
    Trial(DecodingConfig(beam=3, repetition_penalty=1.7)),
    Trial(DecodingConfig(beam=4, no_repeat_ngram=2)),
    Trial(DecodingConfig(beam=4, groups=2, diversity=0.7)),
    Trial(DecodingConfig(beam=3, groups=3, diversity=2.0, no_repeat_ngram=1)),
    Trial(DecodingConfig(samples=4)),
    Trial(DecodingConfig(samples=3, temperature=1.8, top_k=9, top_p=0.9, min_p=0.05)),
    Trial(DecodingConfig(beam=1), "a prefix"),
    Trial(DecodingConfig(beam=4), "a prefix"),
    Trial(DecodingConfig(beam=1), "phrases"),
    Trial(DecodingConfig(beam=4), "phrases"),
    Trial(DecodingConfig(beam=4), "least and most pieces"),
    Trial(DecodingConfig(beam=2), "two pieces only"),
)


def in_turn(subject: Subject, trials: Sequence[Trial]) -> Iterator[tuple[str, Decoder, Trial]]:
    """Each trial on a model of each family, with a name for the case."""
    families: dict[type[Model], list[tuple[str, Decoder]]] = {}
    for name, model in decoders(subject.models):
        families.setdefault(type(model), []).append((name, model))
    for number, trial in enumerate(trials):
        for cases in families.values():
            name, model = cases[number % len(cases)]
            looks = isinstance(model, EncoderDecoder) or not trial.options.coverage_penalty
            small = model.output[0].shape[0] <= FEW or trial.asks != "two pieces only"
            if looks and small:
                yield f"{name}, {trial}", model, trial


def asked(subject: Subject, model: Decoder, trial: Trial) -> tuple[list[Request], Search]:
    """Random requests, all of whose answers are wanted. Without a run a likely piece is the end, so that they end."""
    draw, pieces = subject.draw(), model.output[0].shape[0]
    options, encoder, most = trial.options, isinstance(model, EncoderDecoder), model.config.max_length
    read_of = (model.config.source_vocabulary if encoder else None) or pieces
    sources = [tuple(torch.randint(read_of, (length,), generator=draw).tolist()) for length in SOURCES]
    begin = subject.specials[0] if subject.specials else 1
    first = Told([model])(sources[0] if encoder else (), (begin,) if encoder else (*sources[0][: most - 2], begin))[0]
    likely = first.argsort(descending=True).tolist()
    end = subject.specials[1] if subject.specials else likely[1]
    others = [piece for piece in range(pieces) if piece != end]

    def drawn(count: int) -> tuple[int, ...]:
        return tuple(others[place] for place in torch.randint(len(others), (count,), generator=draw).tolist())

    requests = []
    for key, (source, limit) in enumerate(zip(sources, LIMITS, strict=True)):
        begun = (begin, *drawn(2 * key)) if trial.asks == "a prefix" else (begin,)
        read = begun if encoder else (*source, *begun)[-(most - 2) :]
        request = Request(
            source=source if encoder else (), read=read, limit=min(limit, most - len(read)), key=7 * key
        )  # fmt: skip
        match trial.asks:
            case "phrases":
                request = replace(request, phrases=tuple(dict.fromkeys((drawn(1), drawn(2))[: 1 + key % 2])))
            case "least and most pieces":
                request = replace(request, least=max(0, request.limit - key))
            case "two pieces only":
                longer = min(24, most - len(read))
                request = replace(request, limit=longer, least=longer)
        requests.append(request)
    forbidden: tuple[tuple[int, ...], ...] = ()
    if trial.asks == "a prefix":
        forbidden = (*[(piece,) for piece in likely[:3] if piece != end], drawn(2))
    if trial.asks == "two pieces only":
        forbidden = tuple((piece,) for piece in others[2:])
    search = Search(
        end=end, options=options, nbest=options.samples or options.beam, forbidden=forbidden,
        coverage_heads=heads_of(model) if options.coverage_penalty else (),
    )  # fmt: skip
    return requests, search


def heads_of(model: Decoder) -> tuple[CrossHead, ...]:
    """Two heads of cross-attention, or the only one twice."""
    config = model.config
    return ((0, config.heads - 1), (config.decoder_layers - 1, 0))
