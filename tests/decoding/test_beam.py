"""Beam search is the search that a page of plain Python does over the uncached model, whoever else is in the batch."""

import math

import pytest
import torch

import regard.decoding.beam
from regard.config import ModelConfig
from regard.decoding import beam_search
from regard.models import DecoderOnly, EncoderDecoder, build_model

PIECES, BEGIN, END = 13, 1, 2
SOURCES = [[5, 3, 9, 2], [4, 2], [11, 12, 3, 3, 7, 8, 2], [6, 6, 2], [2]]
LIMITS = [9, 3, 12, 1, 6]


@pytest.fixture(scope="module", params=["encoder-decoder", "decoder-only"])
def model(request):
    """Random, with a bias to the end, so that answers of many lengths come to theirs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        config = ModelConfig(
            family=request.param, vocabulary=PIECES, d_model=16, encoder_layers=1, decoder_layers=2, heads=2, d_ff=24,
            dropout=0.0, max_length=40, output_bias=True,
        )  # fmt: skip
        made = build_model(config).eval()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
            made.output_bias[END] += 2.0
    return made


def started(model, rows, capacity):
    """A cache for these rows of SOURCES; a model without an encoder gets them as a prompt that it has read."""
    longest = max(len(SOURCES[row]) for row in rows)
    ids = torch.tensor([SOURCES[row] + [0] * (longest - len(SOURCES[row])) for row in rows])
    lengths = [len(SOURCES[row]) for row in rows]
    with torch.no_grad():
        if isinstance(model, EncoderDecoder):
            return model.start(ids, torch.tensor(lengths), capacity=capacity)
        cache = model.start(rows=len(rows), capacity=capacity + longest)
        model.step(ids, cache, counts=lengths)
        return cache


def searched(model, rows, *, beam, penalty=1.0, limits=None):
    limits = [LIMITS[row] for row in rows] if limits is None else limits
    cache = started(model, rows, max(limits))
    return beam_search(model, cache, beam=beam, limits=limits, begin=BEGIN, end=END, length_penalty=penalty)


@torch.no_grad()
def next_logp(model, source, written):
    """Log-probabilities of the piece after these, everything computed anew."""
    if isinstance(model, EncoderDecoder):
        states = model(torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([[BEGIN, *written]]))
    else:
        states = model(torch.tensor([[*source, BEGIN, *written]]))
    return model.logits(states)[0, -1].log_softmax(-1).tolist()


def reference(model, source, *, beam, penalty, limit):
    """Every step anew, never stopped early: of all continuations of the `beam` best, the `2 beam` best are looked at;
    those that end count if they are among the first `beam`, and the best `beam` of the others go on.
    """
    going, done = [((), 0.0)], []
    for length in range(1, limit + 1):
        candidates = [
            ((*written, piece), total + logp)
            for written, total in going
            for piece, logp in enumerate(next_logp(model, source, written))
        ]
        candidates = sorted(candidates, key=lambda each: -each[1])[: 2 * beam]
        done += [(ids[:-1], total / length**penalty, True) for ids, total in candidates[:beam] if ids[-1] == END]
        going = [each for each in candidates if each[0][-1] != END][:beam]
        if beam == 1 and done:
            return done
    done += [(ids, total / limit**penalty, False) for ids, total in going[: max(0, beam - len(done))]]
    return sorted(done, key=lambda each: -each[1])[:beam]


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_it_is_the_reference(beam, penalty, model):
    found = searched(model, range(len(SOURCES)), beam=beam, penalty=penalty)
    for source, limit, answers in zip(SOURCES, LIMITS, found, strict=True):
        expected = reference(model, source, beam=beam, penalty=penalty, limit=limit)
        assert [tuple(answer.ids) for answer in answers] == [ids for ids, _, _ in expected]
        assert [answer.ended for answer in answers] == [ended for _, _, ended in expected]
        assert [answer.score for answer in answers] == pytest.approx([score for _, score, _ in expected], abs=1e-4)
        assert len(answers) == beam
        assert [answer.score for answer in answers] == sorted((answer.score for answer in answers), reverse=True)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_batch_of_one_is_a_batch_of_many_in_any_order(beam, model):
    orders = [[0, 1, 2, 3, 4], [4, 2, 0, 3, 1], [2, 2, 1]]
    alone = {row: searched(model, [row], beam=beam)[0] for row in range(5)}
    for order in orders:
        for row, answers in zip(order, searched(model, order, beam=beam), strict=True):
            assert [answer.ids for answer in answers] == [answer.ids for answer in alone[row]]
            assert [answer.score for answer in answers] == pytest.approx([a.score for a in alone[row]], abs=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_a_beam_of_one_is_greedy(penalty, model):
    """With a penalty it once went on behind the end with the second likeliest piece, and gave another answer."""
    ended = set()
    for row, source in enumerate(SOURCES):
        written, total = [], 0.0
        for _ in range(10):
            logp = next_logp(model, source, written)
            best = max(range(PIECES), key=logp.__getitem__)
            total += logp[best]
            if best == END:
                break
            written.append(best)
        (answer,) = searched(model, [row], beam=1, penalty=penalty, limits=[10])[0]
        assert answer.ids == written
        assert answer.ended == (best == END)
        assert answer.score == pytest.approx(total / (len(written) + answer.ended) ** penalty, abs=1e-4)
        ended.add(answer.ended)
    assert True in ended


@pytest.mark.parametrize("beam", [2, 3, 5])
@pytest.mark.parametrize("penalty", [0.0, 0.5, 1.0, 1.5])
def test_stopping_early_changes_no_answer(beam, penalty, model, monkeypatch):
    steps = []
    kept = type(model).step

    def counted(self, tokens, cache, **more):
        steps.append(len(tokens))
        return kept(self, tokens, cache, **more)

    monkeypatch.setattr(type(model), "step", counted)
    limits = [25] * len(SOURCES)
    early = searched(model, range(5), beam=beam, penalty=penalty, limits=limits)
    rows_early = sum(steps)
    steps.clear()
    monkeypatch.setattr(regard.decoding.beam, "_cannot_improve", lambda *given: False)
    late = searched(model, range(5), beam=beam, penalty=penalty, limits=limits)
    assert [[answer.ids for answer in answers] for answers in early] == [[a.ids for a in answers] for answers in late]
    for one, other in zip(early, late, strict=True):
        assert [answer.score for answer in one] == pytest.approx([answer.score for answer in other], abs=1e-5)
    if penalty == 0.0:
        assert rows_early < sum(steps)


def test_a_beam_wider_than_the_vocabulary(model):
    """One step of a limit of one: all pieces, the likeliest first, and no answer twice."""
    (answers,) = searched(model, [0], beam=PIECES + 4, limits=[1])
    logp = next_logp(model, SOURCES[0], [])
    expected = sorted(logp, reverse=True)
    assert [answer.score for answer in answers] == pytest.approx(expected, abs=1e-4)
    assert len({(tuple(answer.ids), answer.ended) for answer in answers}) == PIECES
    assert all(math.isfinite(answer.score) for answer in answers)


def test_a_decoder_alone_reads_its_prompt(model):
    if isinstance(model, DecoderOnly):
        cache = started(model, [0, 2], 4)
        assert list(cache.lengths) == [4, 7]
