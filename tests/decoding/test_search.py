"""Every search is the one that plain Python does over the uncached model, whoever else is in the batch."""

import importlib
import math

import pytest
import torch

from regard.config import DecodingConfig
from regard.decoding import PlainModel, Request, Search, search, search_stream
from regard.errors import InputError
from regard.models import EncoderDecoder
from regard.verify.plain_search import loops

from .conftest import BEGIN, END, PIECES, SOURCES, asked, found, reference, tiny

OPTIONS = [
    *[{"beam": beam, "length_penalty": penalty} for beam in (1, 2, 5) for penalty in (0.0, 0.6, 1.0)],
    {"beam": 4, "length_norm": "gnmt", "length_penalty": 0.8},
    {"beam": 3, "repetition_penalty": 1.7},
    {"beam": 1, "repetition_penalty": 2.5},
    {"beam": 3, "no_repeat_ngram": 1},
    {"beam": 4, "no_repeat_ngram": 2},
    {"beam": 4, "groups": 2, "diversity": 0.7},
    {"beam": 3, "groups": 3, "diversity": 2.0},
    {"beam": 6, "groups": 2, "diversity": 0.0},
    {"beam": 4, "stopping": "likely", "length_penalty": 0.4},
    {"beam": 3, "stopping": "full"},
    {"beam": 4, "groups": 2, "diversity": 0.7, "stopping": "likely"},
    {"beam": 6, "groups": 3, "diversity": 0.3, "no_repeat_ngram": 2, "repetition_penalty": 1.2, "length_penalty": 0.3},
]  # fmt: skip


def same(model, requests, answers, *, heads=(), forbidden=(), **options):
    """Each request's answers are the reference's."""
    met = 0
    for request, (own, _) in zip(requests, answers, strict=True):
        expected = reference(model, request, heads=heads, forbidden=forbidden, **options).answers()
        assert [tuple(answer.ids) for answer in own] == [ids for ids, _, _, _ in expected]
        assert [answer.ended for answer in own] == [ended for *_, ended in expected]
        assert [answer.score for answer in own] == pytest.approx([score for _, score, _, _ in expected], abs=1e-4)
        assert [answer.logp for answer in own] == pytest.approx([logp for _, _, logp, _ in expected], abs=1e-4)
        met += len(own)
    assert met


def count(ids, run):
    return sum(tuple(ids[at : at + len(run)]) == run for at in range(len(ids) - len(run) + 1))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_is_the_reference(options, model):
    requests = [asked(model, row) for row in range(5)]
    same(model, requests, found(model, requests, **options), **options)


@pytest.mark.parametrize("beam", [1, 3])
def test_with_prefixes_least_lengths_and_forbidden_runs(beam, model):
    forbidden = ((7,), (5, 5), (3, 9, 4), (12,))
    requests = [
        asked(model, 0, prefix=(4, 4, 5), limit=8, least=3),
        asked(model, 1, limit=10, least=10),
        asked(model, 2, prefix=(3, 9), limit=11),
        asked(model, 3, limit=7, least=2),
    ]
    answers = found(model, requests, forbidden=forbidden, beam=beam)
    same(model, requests, answers, forbidden=forbidden, beam=beam)
    for request, (own, _) in zip(requests, answers, strict=True):
        for answer in own:
            assert not answer.ended or len(answer.ids) >= request.least
            assert not any(count(answer.ids, run) for run in forbidden)


@pytest.mark.parametrize("beam", [1, 4])
def test_phrases_have_to_be_written(beam, model):
    requests = [
        asked(model, 0, limit=14, phrases=((4, 5, 6), (9,))),
        asked(model, 1, limit=9, phrases=((3, 3, 4),)),
        asked(model, 2, limit=16, phrases=((7, 8), (8, 7, 10), (11, 11))),
        asked(model, 4, limit=12, phrases=((4, 4, 5), (4, 6))),
    ]
    options = {"beam": beam, "no_repeat_ngram": 5}
    answers = found(model, requests, **options)
    same(model, requests, answers, **options)
    for request, (own, _) in zip(requests, answers, strict=True):
        assert all(count(answer.ids, phrase) == 1 for answer in own if answer.ended for phrase in request.phrases)
    assert any(answer.ended for own, _ in answers for answer in own) or beam == 1


@pytest.mark.parametrize("options", [{"beam": 4, "groups": 2}, {"samples": 3}], ids=str)
def test_phrases_are_refused_where_nothing_would_write_them(options, translator):
    """Groups once failed over them with a traceback, and samples left them out without a word."""
    with pytest.raises(InputError, match="phrases: only a beam without groups"):
        found(translator, [asked(translator, 0, phrases=((4, 5),))], **options)


@pytest.mark.parametrize("beta", [0.2, 1.5])
def test_coverage(beta, translator):
    heads = ((0, 1), (1, 0))
    options = {"beam": 4, "coverage_penalty": beta}
    requests = [asked(translator, row, limit=9) for row in range(5)]
    same(translator, requests, found(translator, requests, coverage_heads=heads, **options), heads=heads, **options)
    with pytest.raises(InputError, match="coverage_penalty"):
        found(translator, requests, **options)


def looping():
    """A model that says the same two pieces for ever."""
    made = tiny("encoder-decoder")
    with torch.no_grad():
        made.output_bias[END] -= 9
        made.output_bias[[5, 6]] += 9
    return made


@pytest.mark.parametrize("beam", [1, 3])
def test_runaway_repetition_is_stopped_and_told(beam):
    made = looping()
    requests = [asked(made, row, limit=40) for row in (0, 1)]
    twice = Request(source=(*[5] * 12, END), read=(BEGIN,), limit=40)
    answers = found(made, [*requests, twice], beam=beam)
    same(made, [*requests, twice], answers, beam=beam)
    free = found(made, requests, beam=beam, guard=False)
    same(made, requests, free, beam=beam, guard=False)
    for (own, _), (other, _) in zip(answers, free, strict=False):
        assert own[0].guarded
        assert not other[0].guarded
        assert loops(tuple(other[0].ids), ())
    assert not any(loops(tuple(own[0].ids[:-1]), ()) for own, _ in answers[:2])


@pytest.mark.parametrize(
    "options",
    [{"beam": 1}, {"beam": 3}, {"beam": 4, "groups": 2}, {"samples": 4}, {"beam": 3, "no_repeat_ngram": 2},
     {"beam": 2, "repetition_penalty": 1.3}],
    ids=str,
)  # fmt: skip
def test_a_batch_of_one_is_a_batch_of_many_in_any_order(options, model):
    requests = [asked(model, row, limit=9, key=row) for row in range(5)]
    alone = [found(model, [request], **options)[0].answers for request in requests]
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1], [2, 2, 1]):
        for rows in (320, 12, 5):
            together = found(model, [requests[row] for row in order], batch_rows=rows, **options)
            for row, (answers, _) in zip(order, together, strict=True):
                assert [answer.ids for answer in answers] == [answer.ids for answer in alone[row]]
                assert [a.score for a in answers] == pytest.approx([a.score for a in alone[row]], abs=1e-5)


def test_those_that_wait_enter_and_nothing_changes(model, monkeypatch):
    """Many short batches, of which some stand anywhere between begin and end when others come."""
    requests = [asked(model, row % 5, limit=4 + row % 7, key=row) for row in range(40)]
    requests[7:9] = [asked(model, 0, limit=12, phrases=((4, 5),)), asked(model, 1, limit=12, phrases=((9,),))]
    whole = [found(model, [request], beam=2)[0].answers for request in requests]
    sizes = []
    engine = importlib.import_module("regard.decoding.search")
    kept = engine.Group.add

    def added(self, other):
        sizes.append((self.sentences, other.sentences))
        kept(self, other)

    monkeypatch.setattr(engine.Group, "add", added)
    for refill in (0.3, 0.9):
        monkeypatch.setattr(engine, "REFILL", refill)
        together = found(model, requests, beam=2, batch_rows=10)
        for (answers, _), alone in zip(together, whole, strict=True):
            assert [answer.ids for answer in answers] == [answer.ids for answer in alone]
            assert [a.score for a in answers] == pytest.approx([a.score for a in alone], abs=1e-5)
    assert len(sizes) > 8


def test_a_stream_is_the_whole(model):
    requests = [asked(model, row % 5, limit=9, key=row) for row in range(23)]
    options = Search(end=END, options=DecodingConfig(beam=2), nbest=2)
    whole = search(PlainModel(model), requests, options)
    read = []

    def endless():
        for request in requests * 1000:
            read.append(request)
            yield request

    coming = search_stream(PlainModel(model), endless(), options, window=7)
    for number in range(len(requests) * 2):
        answers = next(coming).answers
        expected = whole[number % len(requests)].answers
        assert [answer.ids for answer in answers] == [answer.ids for answer in expected]
        assert len(read) <= number + 7
    assert list(search_stream(PlainModel(model), [], options)) == []


@pytest.mark.parametrize("options", [{"beam": beam, "length_penalty": p} for beam in (2, 5) for p in (0.0, 0.5, 1.5)])
@pytest.mark.parametrize("nbest", [1, 2])
def test_stopping_early_changes_no_answer(options, nbest, model, monkeypatch):
    requests = [asked(model, row, limit=25) for row in range(5)]
    early = found(model, requests, nbest=nbest, **options)
    for request, (answers, _) in zip(requests, early, strict=True):
        expected = reference(model, request, **options).answers()[:nbest]
        assert [tuple(answer.ids) for answer in answers] == [ids for ids, *_ in expected]


def test_stopping_early_saves_steps(model, monkeypatch):
    rows = []
    kept = type(model).step

    def counted(self, tokens, cache, **more):
        rows.append(len(tokens))
        return kept(self, tokens, cache, **more)

    monkeypatch.setattr(type(model), "step", counted)
    taken = {}
    for stopping, nbest in (("safe", 4), ("safe", 1), ("likely", 4), ("full", 4)):
        rows.clear()
        found(
            model,
            [asked(model, row, limit=25) for row in range(5)],
            nbest=nbest,
            beam=4,
            stopping=stopping,
            length_penalty=0.5,
        )
        taken[stopping, nbest] = sum(rows)
    assert taken["full", 4] < taken["likely", 4] < taken["safe", 4]
    assert taken["safe", 1] < taken["safe", 4] < 5 * 4 * 25


def test_a_beam_wider_than_the_vocabulary(model):
    """One step of a limit of one: all pieces, the likeliest first, and no answer twice."""
    (own, _) = found(model, [asked(model, 0, limit=1)], beam=PIECES + 4)[0]
    logp, _ = reference(model, asked(model, 0)).next(())
    logp = logp.tolist()
    assert sorted((answer.score for answer in own), reverse=True) == pytest.approx(sorted(logp)[::-1], abs=1e-4)
    assert own[0].ended == (logp[END] >= sorted(logp)[-PIECES - 4 :][0])
    assert len({(tuple(answer.ids), answer.ended) for answer in own}) == PIECES
    assert all(math.isfinite(answer.score) for answer in own)


def test_a_search_tree_tells_the_whole_search(model):
    requests = [asked(model, row) for row in range(5)]
    plain = found(model, requests, beam=3)
    for request, (answers, tree), (expected, _) in zip(
        requests, found(model, requests, beam=3, tree=True), plain, strict=True
    ):
        assert answers == expected
        assert tree is not None
        for place, candidate in enumerate(tree.candidates):
            before = tree.path(place)[:-1]
            written = [tree.candidates[each].piece for each in before]
            logp, _ = reference(model, request).next(tuple(written))
            assert candidate.step == len(before) + 1
            assert candidate.logp == pytest.approx(float(logp[candidate.piece]), abs=1e-4)
            gone = tree.candidates[candidate.parent].total if candidate.parent is not None else 0.0
            assert candidate.total == pytest.approx(gone + candidate.logp, abs=1e-4)
            assert (candidate.fate in ("ended", "late end")) == (candidate.piece == END)
            followed = any(other.parent == place for other in tree.candidates)
            assert not followed or candidate.fate == "kept"
        for answer, place in zip(answers, tree.answers, strict=True):
            ids = [tree.candidates[each].piece for each in tree.path(place)]
            assert ids == [*answer.ids, *([END] if answer.ended else [])]
            assert tree.candidates[place].fate == ("ended" if answer.ended else "cut")
        for step in {candidate.step for candidate in tree.candidates}:
            kept = [each for each in tree.candidates if each.step == step and each.fate in ("kept", "cut")]
            assert len(kept) <= 3
        assert isinstance(tree.to_plain()["candidates"], tuple)


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(InputError, match="read"):
        Request(source=(3, 2), read=(), limit=3)
    with pytest.raises(InputError, match="limit = 0"):
        Request(source=(3, 2), read=(1,), limit=0)
    with pytest.raises(InputError, match="empty phrase"):
        Request(source=(3, 2), read=(1,), limit=3, phrases=((),))
    with pytest.raises(InputError, match="a beam of 5 finds no more"):
        Search(end=END, nbest=6)
    assert search(PlainModel(tiny("encoder-decoder")), [], Search(end=END)) == []
    assert isinstance(tiny("encoder-decoder"), EncoderDecoder)
    assert len(SOURCES) == 5
