"""Sampling: the pieces that plain Python draws from the same numbers, with the frequencies that the model states."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from regard.decoding import Request
from regard.decoding.choose import uniforms
from regard.verify.plain_search import chance_of

from .conftest import BEGIN, END, asked, found, reference

OPTIONS = [
    {}, {"temperature": 0.6}, {"top_k": 3}, {"top_p": 0.7}, {"min_p": 0.2},
    {"temperature": 1.8, "top_k": 6, "top_p": 0.9, "min_p": 0.05, "no_repeat_ngram": 2},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_plain_python_draws(options, model):
    requests = [asked(model, row, key=97 * row + 5) for row in range(5)]
    for request, (answers, _) in zip(requests, found(model, requests, samples=4, seed=3, **options), strict=True):
        expected = reference(model, request, samples=4, seed=3, **options).answers()
        assert sorted(tuple(answer.ids) for answer in answers) == sorted(ids for ids, *_ in expected)
        assert [answer.ended for answer in answers] == [ended for *_, ended in expected]
        assert [answer.score for answer in answers] == pytest.approx([score for _, score, _, _ in expected], abs=1e-4)


@pytest.mark.parametrize("options", OPTIONS[:5], ids=str)
def test_what_is_left_to_draw_from_is_what_transformers_leaves(options, translator):
    from transformers.generation.logits_process import (
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    kinds = {"temperature": TemperatureLogitsWarper, "top_k": TopKLogitsWarper, "top_p": TopPLogitsWarper,
             "min_p": MinPLogitsWarper}  # fmt: skip
    generator = torch.Generator().manual_seed(3)
    for mixed in (options, {"temperature": 1.8, "top_k": 6, "top_p": 0.9, "min_p": 0.05}):
        for _ in range(20):
            logits = torch.randn(1, 13, generator=generator, dtype=torch.float64) * 2
            left = logits
            for name, kind in kinds.items():
                if name in mixed:
                    left = kind(mixed[name])(None, left)
            chances = reference(translator, asked(translator, 0), samples=1, **mixed).chances(logits[0])
            expected = left[0].softmax(-1)
            assert set(chances) == set(expected.nonzero()[:, 0].tolist())
            whole = sum(chances.values())
            assert all(chance / whole == pytest.approx(float(expected[p])) for p, chance in chances.items())


def test_frequencies_are_the_probabilities(translator):
    requests = [Request(source=(5, 3, END), read=(BEGIN,), limit=1, key=key) for key in range(40)]
    answers = found(translator, requests, samples=100)
    drawn = Counter(answer.ids[0] if answer.ids else END for own, _ in answers for answer in own)
    logp, _ = reference(translator, requests[0]).next(())
    for piece, log in enumerate(logp.tolist()):
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
