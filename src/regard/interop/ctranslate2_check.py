"""What an exported model answers beside the model that it was made of: the certificate of an export."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config import DecodingConfig
from regard.decoding import Given, PlainModel, Request, Search, force, search
from regard.models import EncoderDecoder
from regard.text.tokenizer import Specials

BOUNDS = {"float32": 1e-3, "int8": 0.5}
"""Largest difference of a piece's log-probability that counts as the same. In float32 both sides only add in another
order (1e-6 to 1e-4 is seen); int8 has 255 steps, and what it changes is a matter of the model (0.02 to 0.3 is seen in
the root of the mean square, which is what is held against the bound)."""
MOST = 100
"""samples that are compared"""
RANDOM = 24
"""random sources, where no pairs are known"""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What was measured."""

    format: str
    version: str
    """of the program that was exported to"""
    precision: str
    samples: int
    pieces: int
    """whose log-probabilities were compared"""
    logp_largest: float
    """largest difference of a given piece's log-probability"""
    logp_spread: float
    """root of the mean square of these differences"""
    bound: float
    greedy_equal: float
    """share of the samples whose greedy answers are the same, piece by piece"""
    beam_equal: float
    """the same for a beam of 4, each side as it defines and stops it, with length_penalty 0"""
    faults: tuple[str, ...]
    """why the two disagree, if they do"""
    not_carried: tuple[str, ...] = ()
    """of the recipe's search, what theirs does in another way"""

    @property
    def held(self) -> bool:
        """Whether they agree."""
        return not self.faults

    def to_plain(self) -> dict[str, object]:
        """For JSON."""
        plain = asdict(self)
        for name, value in plain.items():
            if isinstance(value, float) and not math.isfinite(value):
                plain[name] = None
        return {"held": self.held, **plain}


def compare(
    model: EncoderDecoder, folder: Path, samples: Sequence[Given], *, precision: str, names: Sequence[str],
    source_names: Sequence[str], specials: Specials, not_carried: tuple[str, ...] = (),
) -> Certificate:  # fmt: skip
    """Given pieces' log-probabilities, then greedy and beam answers, of both sides."""
    import ctranslate2

    theirs = ctranslate2.Translator(str(folder), device="cpu", compute_type=precision, intra_threads=1)
    given = list(samples[:MOST]) or random_samples(model, specials)
    sources = [[source_names[id] for id in each.source] for each in given]
    ours = force([model], given)
    told = theirs.score_batch(sources, [[names[id] for id in each.written[:-1]] for each in given])
    apart = torch.tensor([
        one - two
        for mine, its in zip(ours, told, strict=True)
        for one, two in zip(mine.logps, its.log_probs, strict=True)
    ])  # fmt: skip
    greedy = _searched(model, theirs, given, sources, names, specials, beam=1)
    beam = _searched(model, theirs, given, sources, names, specials, beam=4)
    largest, spread = float(apart.abs().max()), float(apart.square().mean().sqrt())
    bound, counts = BOUNDS[precision], largest if precision == "float32" else spread
    faults = []
    if not counts <= bound:
        faults.append(f"log-probabilities of given pieces differ by {counts:.2g}, more than {bound:g}")
    different = [
        each for each, (own, other) in zip(given, greedy, strict=True)
        if own != other and not _tied(model, each, own, other, 2 * bound)
    ]  # fmt: skip
    if different and precision == "float32":
        faults.append(f"greedy answers to {len(different)} of {len(given)} sources differ, and not by a tie")
    return Certificate(
        format="ctranslate2", version=ctranslate2.__version__, precision=precision, samples=len(given),
        pieces=len(apart), logp_largest=largest, logp_spread=spread, bound=bound, greedy_equal=_share(greedy),
        beam_equal=_share(beam), faults=tuple(faults), not_carried=not_carried,
    )  # fmt: skip


Answers = list[tuple[list[int], list[int]]]


def _searched(
    model: EncoderDecoder, theirs: Any, given: Sequence[Given], sources: Sequence[Sequence[str]],
    names: Sequence[str], specials: Specials, *, beam: int,
) -> Answers:  # fmt: skip
    """Each sample's answer by both sides, with neither a penalty nor a guard."""
    limit = min(model.config.max_length - 1, max(len(each.source) for each in given) + 20)
    options = DecodingConfig(beam=beam, length_penalty=0, guard=False)
    requests = [Request(source=each.source, read=(specials.begin,), limit=limit) for each in given]
    ours = search(PlainModel(model), requests, Search(end=specials.end, options=options))
    its = theirs.translate_batch(
        sources, beam_size=beam, length_penalty=0, min_decoding_length=0, max_decoding_length=limit, max_batch_size=32,
        max_input_length=0,
    )  # fmt: skip
    ids = {name: id for id, name in enumerate(names)}
    return [
        (mine.answers[0].ids, [ids[name] for name in other.hypotheses[0]])
        for mine, other in zip(ours, its, strict=True)
    ]  # fmt: skip


def _tied(model: EncoderDecoder, given: Given, own: Sequence[int], other: Sequence[int], near: float) -> bool:
    """Whether two answers part where two pieces are as likely as each other."""
    place = next((k for k, (one, two) in enumerate(zip(own, other, strict=False)) if one != two), None)
    if place is None:
        return False
    sides = [Given(given.source, given.read, tuple(answer[: place + 1])) for answer in (own, other)]
    first, second = (forced.logps[-1] for forced in force([model], sides))
    return abs(first - second) <= near


def _share(answers: Answers) -> float:
    return sum(own == other for own, other in answers) / len(answers)


def random_samples(model: EncoderDecoder, specials: Specials) -> list[Given]:
    """Random pieces of the model's vocabularies, for a run whose text is not there any more."""
    config, draw = model.config, torch.Generator().manual_seed(1)
    longest = min(20, config.max_length - 2)
    taken = {specials.pad, specials.unknown, specials.begin, specials.end}

    def pieces(vocabulary: int, length: int) -> tuple[int, ...]:
        drawn = torch.randint(vocabulary, (length,), generator=draw).tolist()
        return tuple(id for id in drawn if id not in taken)

    sizes = torch.randint(1, longest + 1, (RANDOM, 2), generator=draw).tolist()
    target = config.vocabulary or 1
    return [
        Given(
            (*pieces(config.source_vocabulary or target, source), specials.end), (specials.begin,),
            (*pieces(target, written), specials.end),
        )
        for source, written in sizes
    ]  # fmt: skip
