"""The compiled search is the plain one: same answers, scores and flags, for any options it knows and any threads."""

import itertools

import numpy as np
import pytest

from regard.config import DecodingConfig
from regard.decoding import PlainModel, Request, Search, compiled, search
from regard.decoding.compiled import compiled_search, knows
from regard.decoding.fast import FastModel
from regard.decoding.kernel import kernel

from .conftest import BEGIN, END, PIECES, tiny

pytestmark = pytest.mark.skipif(kernel() is None, reason="no C compiler here")

OPTIONS = [
    {"beam": 1}, {"beam": 5}, {"beam": 3, "stopping": "likely"}, {"beam": 2, "guard": False},
    {"beam": 4, "stopping": "full", "length_norm": "gnmt", "length_penalty": 0.6}, {"beam": 5, "length_penalty": 0},
    {"beam": PIECES + 3},
]  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return tiny("encoder-decoder")


def requests(count=48):
    """Of all lengths, some with a least; the model runs on in many, so that the guard acts and limits cut."""
    draw = np.random.default_rng(1)
    made = []
    for number in range(count):
        source = (*draw.integers(3, PIECES, size=int(draw.integers(1, 20))).tolist(), END)
        limit = int(draw.integers(1, 40))
        made.append(Request(source=source, read=(BEGIN,), limit=limit, least=min(limit, 5) if number % 3 == 0 else 0))
    return made


def wanted(nbest=1, **options):
    return Search(end=END, nbest=nbest, options=DecodingConfig(**options))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_is_the_plain_search(model, options):
    asked, fast = requests(), FastModel(model, "float32", kernel())
    for nbest in {1, options["beam"]}:
        sought = wanted(nbest, batch_rows=30, **options)
        assert knows(fast, asked, sought)
        expected = search(PlainModel(model), asked, sought)
        for workers in (1, 3):
            found = compiled_search(fast, asked, sought, workers=workers)
            for own, other in zip(found, expected, strict=True):
                assert [each.ids for each in own.answers] == [each.ids for each in other.answers]
                assert [each[3:] for each in own.answers] == [each[3:] for each in other.answers]
                for one, two in zip(own.answers, other.answers, strict=True):
                    assert one.score == pytest.approx(two.score, abs=1e-4)
                    assert one.logp == pytest.approx(two.logp, abs=1e-4)
        if nbest == 1:
            continue
        answers = [each for own in expected for each in own.answers]
        assert {each.ended for each in answers} == {True, False}
        assert any(each.guarded for each in answers) == options.get("guard", True)


@pytest.mark.parametrize("kind", ["float32", "bf16", "int8"])
def test_answers_do_not_depend_on_company_or_threads(model, kind):
    """To the last bit."""
    asked, fast = requests(40), FastModel(model, kind, kernel())
    whole = search(fast, asked, wanted(3, beam=3))
    assert search(fast, asked, wanted(3, beam=3, batch_rows=9), workers=2) == whole
    assert search(fast, asked[::-1], wanted(3, beam=3), workers=4)[::-1] == whole
    assert [search(fast, [each], wanted(3, beam=3))[0] for each in asked] == whole


def test_what_it_does_not_know_is_searched_step_by_step(model):
    asked, fast = requests(20), FastModel(model, "float32", kernel())
    for options in ({"no_repeat_ngram": 2}, {"samples": 2}, {"groups": 2, "beam": 4}, {"repetition_penalty": 1.5}):
        sought = wanted(**{"beam": 3, **options})
        assert not knows(fast, asked, sought)
        expected = search(PlainModel(model), asked, sought)
        for own, other in zip(search(fast, asked, sought, workers=3), expected, strict=True):
            assert [each.ids for each in own.answers] == [each.ids for each in other.answers]
    assert not knows(PlainModel(model), asked, wanted())
    assert not knows(fast, [Request(source=(3, END), read=(BEGIN, 4), limit=3)], wanted())
    assert not knows(fast, [Request(source=(3, END), read=(BEGIN,), limit=300)], wanted())
    assert not knows(fast, [Request(source=(3, END), read=(BEGIN,), limit=9, phrases=((4,),))], wanted())


def test_few_source_pieces_at_once(model):
    """Sentences enter as others leave, so many that those read together stay few; the answers are the same."""
    asked, fast = requests(), FastModel(model, "float32", kernel())
    for workers in (1, 2):
        assert search(fast, asked, wanted(beam=3, batch_tokens=24), workers=workers) == search(
            fast, asked, wanted(beam=3)
        )


def test_an_error_ends_all_workers(model, monkeypatch):
    asked, fast = requests(), FastModel(model, "float32", kernel())
    monkeypatch.setattr(compiled, "REFILL", 0.9)
    monkeypatch.setattr(compiled.FastSteps, "remember", broken(compiled.FastSteps.remember, after=3))
    with pytest.raises(KeyboardInterrupt):
        search(fast, asked, wanted(beam=3, batch_rows=6), workers=2)


def broken(call, *, after):
    """Interrupted at a later call."""
    count = itertools.count()

    def made(*given):
        if next(count) >= after:
            raise KeyboardInterrupt
        return call(*given)

    return made


def test_nothing_to_search(model):
    assert search(FastModel(model, "float32", kernel()), [], wanted()) == []
