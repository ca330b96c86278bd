"""Sampling: the pieces that plain Python draws from the same numbers, with the frequencies that the model states."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from regard.decoding import Request
from regard.decoding.choose import uniforms

from .conftest import BEGIN, END, asked, found
from .reference import Reference

OPTIONS = [
    {}, {"temperature": 0.6}, {"top_k": 3}, {"top_p": 0.7}, {"min_p": 0.2},
    {"temperature": 1.8, "top_k": 6, "top_p": 0.9, "min_p": 0.05, "no_repeat_ngram": 2},
]  # fmt: skip


def allowed(ranked, *, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, **rest):
    """Pieces with their chances, likeliest first."""
    pieces = sorted((piece for piece, x in enumerate(ranked) if x > -math.inf), key=lambda piece: -ranked[piece])
    pieces = pieces[: top_k or len(pieces)]
    weights = [math.exp(ranked[piece] / temperature) for piece in pieces]
    chances = [weight / sum(weights) for weight in weights]
    held, before = [], 0.0
    for piece, chance in zip(pieces, chances, strict=True):
        if before < top_p and chance >= min_p * chances[0]:
            held.append((piece, chance))
        before += chance
    return held


def mixed(state):
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)


def chance_of(seed, key, row, count):
    return (mixed(mixed(mixed(mixed(seed) ^ key) ^ row) ^ count) >> 11) / 2**53


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_plain_python_draws(options, model):
    requests = [asked(model, row, key=97 * row + 5) for row in range(5)]
    for request, (answers, _) in zip(requests, found(model, requests, samples=4, seed=3, **options), strict=True):
        reference = Reference(model, request, END, **options)
        expected = []
        for row in range(4):
            written, own = [], 0.0
            while len(written) < request.limit and (not written or written[-1] != END):
                logp, ranked = reference.next(written)
                held = allowed(ranked, **options)
                total = sum(chance for _, chance in held)
                left = chance_of(3, request.key, row, len(written)) * total
                sums = itertools.accumulate(chance for _, chance in held)
                piece = next(piece for (piece, _), summed in zip(held, sums, strict=True) if summed > left)
                written.append(piece)
                own += logp[piece]
            ended = written[-1] == END
            ids = tuple(written[:-1] if ended else written)
            expected.append((not ended, -own / len(written), ids))
        drawn = sorted((not answer.ended, -answer.score, tuple(answer.ids)) for answer in answers)
        assert [ids for *_, ids in drawn] == [ids for *_, ids in sorted(expected)]
        assert [score for _, score, _ in drawn] == pytest.approx([score for _, score, _ in sorted(expected)], abs=1e-4)


def test_frequencies_are_the_probabilities(translator):
    requests = [Request(source=(5, 3, END), read=(BEGIN,), limit=1, key=key) for key in range(40)]
    answers = found(translator, requests, samples=100)
    drawn = Counter(answer.ids[0] if answer.ids else END for own, _ in answers for answer in own)
    logp, _ = Reference(translator, requests[0], END).next([])
    for piece, log in enumerate(logp):
        chance = math.exp(log)
        assert abs(drawn[piece] / 4000 - chance) < 4 * math.sqrt(chance * (1 - chance) / 4000)


def test_numbers_depend_on_all_of_their_parts():
    keys, counts = np.array([0, 1, 2**63], dtype=np.uint64), np.array([0, 0, 7], dtype=np.uint64)
    drawn = uniforms(5, keys, 3, counts)
    assert drawn.shape == (3, 3)
    assert len(set(drawn.flatten().tolist())) == 9
    assert drawn[2, 1] == chance_of(5, 2**63, 1, 7)
    assert not drawn.equal(uniforms(6, keys, 3, counts))
    many = uniforms(1, np.arange(2000, dtype=np.uint64), 5, np.zeros(2000, dtype=np.uint64))
    assert abs(float(many.mean()) - 0.5) < 0.01
