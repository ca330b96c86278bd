"""Steps: rows that are moved, repeated, dropped and joined get the scores of all their pieces computed anew."""

import pytest
import torch

from regard.config import ModelConfig
from regard.decoding import PlainModel
from regard.errors import InputError
from regard.models import EncoderDecoder, build_model
from regard.nn import Trace

PIECES = 13
SOURCES = [[5, 3, 9, 2], [4, 2], [11, 12, 3, 3, 7, 8, 2], [6, 2]]
PROMPTS = [[], [7, 7, 8], [4], []]


def made(family):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        config = ModelConfig(
            family=family, vocabulary=PIECES, d_model=16, encoder_layers=1, decoder_layers=2, heads=2, d_ff=24,
            dropout=0.0, max_length=40,
        )  # fmt: skip
        return build_model(config).eval()


@torch.no_grad()
def anew(model, sentence, written, trace=None):
    read = torch.tensor([[*PROMPTS[sentence], *written]])
    if isinstance(model, EncoderDecoder):
        source = torch.tensor([SOURCES[sentence]])
        states = model(source, torch.tensor([source.shape[1]]), read, trace=trace)
    else:
        states = model(read, trace=trace)
    return model.logits(states)[0, -1]


def sources(model, sentences):
    return [SOURCES[each] if isinstance(model, EncoderDecoder) else [] for each in sentences]


@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only"])
def test_rows_go_on_from_those_that_they_continue(family):
    model = made(family)
    plain = PlainModel(model)
    assert plain.pieces == PIECES

    def start(sentences):
        return plain.start(sources(model, sentences), [PROMPTS[each] for each in sentences], capacity=20)

    def advance(steps, written, tokens, parents):
        """Step, and check every row; gives what each row has now read."""
        logits = steps.advance(torch.tensor(tokens), torch.tensor(parents))
        assert logits.shape == (len(tokens) * len(tokens[0]), PIECES)
        now = []
        for (sentence, rows), new, came in zip(written, tokens, parents, strict=True):
            now.append((sentence, [[*rows[parent], token] for token, parent in zip(new, came, strict=True)]))
        expected = torch.stack([anew(model, sentence, row) for sentence, rows in now for row in rows])
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
        return now

    steps, written = start([0, 1, 2]), [(each, [[]]) for each in (0, 1, 2)]
    assert steps.sentences == 3
    written = advance(steps, written, [[1], [1], [1]], [[0], [0], [0]])
    written = advance(steps, written, [[3, 4], [5, 6], [7, 8]], [[0, 0]] * 3)
    written = advance(steps, written, [[9, 9], [9, 10], [11, 12]], [[1, 0], [1, 1], [0, 1]])
    steps.keep(torch.tensor([2, 0]))
    written = [written[2], written[0]]
    assert steps.sentences == 2
    other = start([3])
    late = advance(other, [(3, [[]])], [[1]], [[0]])
    steps.add(other)
    written = advance(steps, written + late, [[3, 4], [5, 6], [7, 8]], [[1, 1], [0, 1], [0, 0]])
    steps.keep(torch.tensor([1, 2]))
    advance(steps, written[1:], [[3], [5]], [[1], [0]])


def test_heads_are_observed():
    model = made("encoder-decoder")
    heads = [(1, 0), (0, 1)]
    steps = PlainModel(model).start(SOURCES[:2], PROMPTS[:2], capacity=20, observe=heads)
    steps.advance(torch.tensor([[1], [1]]), torch.tensor([[0], [0]]))
    steps.advance(torch.tensor([[3, 4, 5], [6, 7, 8]]), torch.tensor([[0, 0, 0], [0, 0, 0]]))
    seen = steps.observed()
    assert seen.shape == (2, 3, 2, 4)
    for sentence in range(2):
        for row, token in enumerate([3, 4, 5] if sentence == 0 else [6, 7, 8]):
            for place, (layer, head) in enumerate(heads):
                trace = Trace(parts=("decoder.cross",))
                anew(model, sentence, [1, token], trace)
                expected = trace[f"decoder.cross.{layer}.weights"][0, head, -1]
                torch.testing.assert_close(seen[sentence, row, place, : len(expected)], expected, atol=1e-5, rtol=0)
                assert not seen[sentence, row, place, len(expected) :].any()


def test_a_decoder_alone_has_nothing_to_observe():
    with pytest.raises(InputError, match="cross-attention"):
        PlainModel(made("decoder-only")).start([[]], [[]], capacity=5, observe=[(0, 0)])
