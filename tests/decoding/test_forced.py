"""What a search found, forced through the model: the same scores, and the attention that it had when it was found."""

import pytest
import torch

from regard.config import DecodingConfig
from regard.decoding import Ensemble, Given, PlainModel, Request, Search, force, search
from regard.decoding.heads import fitted_temperature, telling_heads
from regard.errors import InputError
from regard.models import EncoderDecoder
from regard.nn import Trace

from .conftest import BEGIN, END, PIECES, asked, found, tiny


def given(request, answer):
    return Given(request.source, request.read, (*answer.ids, *([END] if answer.ended else [])))


@pytest.mark.parametrize(
    "options", [{"beam": 4}, {"samples": 3, "temperature": 2.0}, {"beam": 2, "no_repeat_ngram": 1}]
)
def test_a_search_is_forced_to_its_own_scores(options, model):
    requests = [asked(model, row, key=row) for row in range(5)]
    answers = [(request, answer) for request, (own, _) in zip(requests, found(model, requests, **options), strict=True)
               for answer in own]  # fmt: skip
    forced = force([model], [given(*each) for each in answers])
    assert [sum(each.logps) for each in forced] == pytest.approx([answer.logp for _, answer in answers], abs=1e-4)
    assert [len(each.logps) for each in forced] == [len(given(*each).written) for each in answers]


def test_the_temperature_divides_scores(model):
    one = given(asked(model, 0), found(model, [asked(model, 0)], beam=2)[0].answers[0])
    read = torch.tensor([[*one.read, *one.written]])
    with torch.no_grad():
        source = (torch.tensor([one.source]), torch.tensor([len(one.source)])) if one.source else ()
        logits = model.logits(model(*source, read))[0, len(one.read) - 1 :]
    for temperature in (1.0, 0.5, 3.0):
        logps = (logits / temperature).log_softmax(-1)
        expected = [float(logps[place, piece]) for place, piece in enumerate(one.written)]
        assert force([model], [one], temperature=temperature)[0].logps == pytest.approx(expected, abs=1e-5)


@torch.no_grad()
def beam_with_attention(model, request, beam, heads):
    """A beam whose every hypothesis carries the attention of its own steps along, row by row."""
    config, logps = model.config, []
    source = torch.tensor([request.source])
    going, done = [((), 0.0, [])], []
    for length in range(1, request.limit + 1):
        candidates = []
        for written, total, seen in going:
            cache = model.start(source, torch.tensor([source.shape[1]]), capacity=request.limit + 1)
            for piece in (*request.read, *written):
                trace = Trace(parts=("decoder.cross",))
                states = model.step(torch.tensor([[piece]]), cache, trace=trace)
            rows = [trace[f"decoder.cross.{layer}.weights"][0, head, 0] for layer, head in heads]
            logps = model.logits(states)[0, -1].log_softmax(-1).tolist()
            now = [*seen, torch.stack(rows).mean(0)]
            candidates += [((*written, piece), total + logp, now) for piece, logp in enumerate(logps)]
        candidates = sorted(candidates, key=lambda each: -each[1])[: 2 * beam]
        done += [(ids[:-1], total / length, seen) for ids, total, seen in candidates[:beam] if ids[-1] == END]
        going = [each for each in candidates if each[0][-1] != END][:beam]
    assert config.decoder_layers == 2
    return sorted(done, key=lambda each: -each[1])


def test_alignments_are_those_of_the_search_whatever_was_reordered(translator):
    heads, moved = ((0, 1), (1, 0)), 0
    for row in (0, 2, 3):
        request = asked(translator, row, limit=8)
        expected = {ids: torch.stack(seen) for ids, _, seen in beam_with_attention(translator, request, 4, heads)}
        answers = [answer for answer in found(translator, [request], beam=4)[0].answers if answer.ended]
        for answer in answers:
            weights = force([translator], [given(request, answer)], heads=heads)[0].weights
            torch.testing.assert_close(weights, expected[tuple(answer.ids)], atol=1e-5, rtol=0)
            torch.testing.assert_close(weights.sum(-1), torch.ones(len(weights)), atol=1e-5, rtol=0)
            moved += len(answer.ids) > 1
    assert moved


def test_an_ensemble_is_the_mean_of_probabilities():
    members = [tiny("encoder-decoder", seed) for seed in (4, 5, 6)]
    requests = [asked(members[0], row) for row in range(5)]
    options = Search(end=END, options=DecodingConfig(beam=3), nbest=3)
    together = search(Ensemble([PlainModel(each) for each in members]), requests, options)
    for request, (answers, _) in zip(requests, together, strict=True):
        for answer in answers:
            alone = [force([each], [given(request, answer)])[0].logps for each in members]
            logps = torch.tensor(alone).exp().mean(0).log()
            assert answer.logp == pytest.approx(float(logps.sum()), abs=1e-4)
            assert force(members, [given(request, answer)])[0].logps == pytest.approx(logps.tolist(), abs=1e-4)
    one = search(Ensemble([PlainModel(members[0])] * 2), requests, options)
    plain = search(PlainModel(members[0]), requests, options)
    assert [[a.ids for a in answers] for answers, _ in one] == [[a.ids for a in answers] for answers, _ in plain]
    with pytest.raises(InputError, match="pieces"):
        Ensemble([PlainModel(members[0]), Other()])


class Other(PlainModel):
    def __init__(self):
        super().__init__(tiny("encoder-decoder"))

    @property
    def pieces(self):
        return PIECES + 1


def test_the_head_that_aligns_is_found():
    """One head of four looks where each target piece comes from; the others look everywhere alike."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(2)
        known = []
        for _ in range(60):
            source = torch.randint(3, 8, (4,)).tolist()
            known.append(Given((*source, END), (BEGIN,), (*(piece + 5 for piece in source), END)))

    class Looking(EncoderDecoder):
        """Traces weights that are stated."""

        def forward(self, source, lengths, read, *, trace=None):
            if trace:
                for layer in trace.layers:
                    weights = torch.full((len(source), 2, read.shape[1], source.shape[1]), 1 / source.shape[1])
                    if layer == 1:
                        weights[:, 1] = torch.eye(source.shape[1])[: read.shape[1]]
                    trace.values[f"decoder.cross.{layer}.weights"] = weights[:, list(trace.heads)]
            return super().forward(source, lengths, read)

    assert telling_heads(Looking(tiny("encoder-decoder").config).eval(), known) == ((1, 1),)


def test_the_temperature_is_fitted(translator):
    """Of pieces that a model drew itself at some temperature, that temperature makes the likeliest."""
    requests = [Request(source=(3 + row % 7, 3 + row % 5, END), read=(BEGIN,), limit=12, key=row) for row in range(200)]
    for temperature in (0.5, 1.0, 2.0):
        answers = found(translator, requests, samples=2, temperature=temperature)
        known = [given(request, answer) for request, (own, _) in zip(requests, answers, strict=True) for answer in own]
        assert fitted_temperature([translator], known) == pytest.approx(temperature, rel=0.15)
