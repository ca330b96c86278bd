"""The fast steps are the plain ones: in every kind of model, as rows move and sentences with prompts come and go."""

from itertools import product

import numpy as np
import pytest
import torch

from regard.config import ModelConfig
from regard.decoding import PlainModel
from regard.decoding.fast import FastModel
from regard.decoding.kernel import KINDS, kernel
from regard.decoding.packing import unsupported
from regard.errors import InputError
from regard.models import build_model

PIECES = 37
POSITIONS = ["none", "index", "binary", "sinusoidal", "learned", "rotary", "alibi", "relative"]
FAMILIES = ["encoder-decoder", "decoder-only"]
SOURCES = [[5, 3, 9, 2], [4, 2], [11, 12, 3, 3, 7, 8, 2], [6, 2], [13] * 40 + [2]]
PROMPTS = [[], [7, 7, 8], [4], [], list(range(20))]

pytestmark = pytest.mark.skipif(kernel() is None, reason="no C compiler here")


def made(family, positions, number=0, **more):
    """A small model whose other settings vary with `number`; biases and norms are not what they began as."""
    settings = {
        "d_model": 32, "heads": 4, "kv_heads": (None, 2, 1)[number % 3], "d_k": (8, 20, None)[number % 3],
        "d_v": (None, 12)[number % 2], "d_ff": (24, 48)[number % 2], "norm": ("pre", "post")[number % 2],
        "norm_kind": ("layer", "rms")[number // 2 % 2], "biases": number % 4 != 3,
        "activation": ("relu", "gelu", "gelu_tanh", "silu", "swiglu")[number % 5],
        "embeddings": ("tied_all", "tied_output", "separate")[number % 3], "embedding_norm": number % 4 == 1,
        "output_bias": number % 2 == 1, "scale_embeddings": number % 3 != 2,
    } | more  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        config = ModelConfig(
            family=family, vocabulary=PIECES, encoder_layers=2, decoder_layers=2, dropout=0.0, max_length=300,
            positions=positions, relative_buckets=8, relative_distance=6, **settings,
        )  # fmt: skip
        model = build_model(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def fast(model, kind="float32"):
    return FastModel(model, kind, kernel())


def sources(model, sentences):
    encoder = model.config.family == "encoder-decoder"
    return [SOURCES[each] if encoder else [] for each in sentences]


def course(step_model, *, observe=()):
    """A search's life: three widths, rows repeated and crossed, one sentence leaves, others enter. Gives all logits."""
    draw = np.random.default_rng(3)
    found = []

    def start(sentences):
        given = [PROMPTS[each] for each in sentences]
        return step_model.start(sources(step_model.model, sentences), given, capacity=60, observe=observe)

    def advance(steps, width, parents):
        tokens = torch.from_numpy(draw.integers(PIECES, size=(steps.sentences, width)))
        came = torch.tensor([parents] * steps.sentences)
        found.append(steps.advance(tokens, came).clone())
        if observe:
            found.append(steps.observed().clone())

    steps = start([0, 1, 2])
    advance(steps, 1, [0])
    advance(steps, 3, [0, 0, 0])
    advance(steps, 3, [2, 0, 2])
    steps.keep(torch.tensor([2, 0]))
    advance(steps, 4, [1, 1, 0, 2])
    later = start([3, 4])
    advance(later, 1, [0])
    advance(later, 4, [0, 0, 0, 0])
    steps.add(later)
    advance(steps, 4, [3, 2, 1, 0])
    steps.keep(torch.tensor([3, 1]))
    advance(steps, 2, [0, 3])
    steps.add(start([1]))
    advance(steps, 2, [0, 0])
    advance(steps, 2, [1, 0])
    return found


@pytest.mark.parametrize(("family", "positions"), list(product(FAMILIES, POSITIONS)))
def test_float32_is_the_plain_step(family, positions):
    for number in (POSITIONS.index(positions), POSITIONS.index(positions) + 3):
        model = made(family, positions, number)
        for found, expected in zip(course(fast(model)), course(PlainModel(model)), strict=True):
            torch.testing.assert_close(found, expected, atol=1e-5 * max(1.0, float(expected.abs().max())), rtol=0)


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu", "swiglu"])
def test_every_activation(activation):
    model = made("encoder-decoder", "sinusoidal", activation=activation)
    for found, expected in zip(course(fast(model)), course(PlainModel(model)), strict=True):
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)


def test_heads_are_observed():
    model = made("encoder-decoder", "sinusoidal", 2)
    heads = [(1, 0), (0, 3), (1, 2)]
    results = zip(course(fast(model), observe=heads), course(PlainModel(model), observe=heads), strict=True)
    for found, expected in results:
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)


def test_positions_may_go_beyond_the_first_tables():
    model = made("encoder-decoder", "relative")
    long_source = [[7, 8, 9] * 120 + [2]]
    tokens, parents = torch.tensor([[1]]), torch.tensor([[0]])
    found, expected = (
        step_model.start(long_source, [[]], capacity=280).advance(tokens, parents)
        for step_model in (fast(model), PlainModel(model))
    )
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("kind", "near"), [("bf16", 0.05), ("int8", 0.08)])
@pytest.mark.parametrize("family", FAMILIES)
def test_fewer_bits_stay_near(kind, near, family):
    """Relative to the spread of the scores; an error in packing would be a hundred times that."""
    for number in (0, 1, 4):
        model = made(family, "sinusoidal", number, d_model=64, d_k=16)
        for found, expected in zip(course(fast(model, kind)), course(PlainModel(model)), strict=True):
            assert float((found - expected).std() / expected.std()) < near
            assert not found.equal(expected)


def test_what_cannot_be_packed_is_named():
    assert unsupported(made("decoder-only", "shaw").config) == "positions = 'shaw'"
    assert "attention" in str(unsupported(made("decoder-only", "none", attention="sliding").config))
    assert "d_model = 36" in str(unsupported(made("decoder-only", "none", d_model=36).config))
    assert unsupported(made("decoder-only", "normalised_index").config) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_does_not_depend_on_the_others(kind):
    """To the last bit, in every kind: a row's numbers are rounded by themselves, whoever stands beside it."""
    model = fast(made("encoder-decoder", "sinusoidal"), kind)
    tokens, parents = torch.full((5, 1), 1), torch.zeros(5, 1, dtype=torch.int64)
    together = model.start(SOURCES, [[]] * 5, capacity=9).advance(tokens, parents).clone()
    for row, source in enumerate(SOURCES):
        alone = model.start([source], [[]], capacity=9).advance(tokens[:1], parents[:1])
        assert alone[0].equal(together[row])


def test_limits_are_kept():
    steps = fast(made("decoder-only", "none")).start([[]], [[1, 2]], capacity=3)
    steps.advance(torch.tensor([[1]]), torch.tensor([[0]]))
    with pytest.raises(InputError, match="cache of 3 tokens"):
        steps.advance(torch.tensor([[1]]), torch.tensor([[0]]))
    with pytest.raises(InputError, match="max_length = 300"):
        fast(made("decoder-only", "none")).start([[]], [[1] * 301], capacity=400)
    with pytest.raises(InputError, match="cross-attention"):
        fast(made("decoder-only", "none")).start([[]], [[]], capacity=5, observe=[(0, 0)])


@pytest.mark.parametrize("family", FAMILIES)
def test_threads_that_share_a_call_compute_the_same(family, monkeypatch):
    """To the last bit, with more threads than rows too. Such small calls would take one thread by themselves."""
    monkeypatch.setattr("regard.decoding.fast.ALONE", 0)
    for number, (kind, positions) in enumerate(zip(KINDS, ("rotary", "learned", "alibi"), strict=True)):
        model = made(family, positions, number, d_k=16, d_v=(None, 64)[number % 2])
        one, three = (FastModel(model, kind, kernel(), threads=threads) for threads in (1, 3))
        for alone, shared in zip(course(one), course(three), strict=True):
            assert alone.equal(shared)
    with pytest.raises(InputError, match="sequence of 301 tokens"):
        fast(made("encoder-decoder", "learned")).start([[3] * 301], [[]], capacity=5)
