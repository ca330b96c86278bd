"""First values of the weights: the table in `regard.nn.initial`, measured."""

import math

import pytest
import torch
from torch import nn

from regard.config import ModelConfig, model_preset
from regard.models import build_model
from regard.nn import Buckets, Layer, MultiHead, Shaw


def model_of(**changes):
    torch.manual_seed(2)
    values = {
        "vocabulary": 500, "d_model": 128, "heads": 4, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 3,
        "embeddings": "separate", "relative_distance": 40,
    }  # fmt: skip
    return build_model(ModelConfig(**{**values, **changes}))


def is_normal(weight, deviation):
    spread = 4 * deviation / math.sqrt(weight.numel())
    assert abs(float(weight.mean().detach())) < spread
    assert float(weight.std().detach()) == pytest.approx(deviation, rel=0.1)
    assert float(weight.abs().max().detach()) > 2 * deviation, "a normal distribution has tails"


def is_uniform(weight, furthest=None):
    furthest = furthest or math.sqrt(6 / sum(weight.shape))
    assert float(weight.abs().max().detach()) <= furthest * (1 + 1e-6)
    assert float(weight.abs().max().detach()) > 0.95 * furthest
    assert float(weight.std().detach()) == pytest.approx(furthest / math.sqrt(3), rel=0.1)


def sub_layers(layer, model):
    return (len(model.encoder.layers) * 2) if layer.part == "encoder.self" else (len(model.decoder.layers) * 3)


def attentions(layer):
    return [attention for attention in (layer.attention, layer.cross) if attention is not None]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_xavier_is_per_matrix(norm):
    model = model_of(initial="xavier", norm=norm, d_k=24, d_v=40, kv_heads=2)
    for layer in (module for module in model.modules() if isinstance(module, Layer)):
        shrunk = sub_layers(layer, model) ** -0.5 if norm == "pre" else 1.0
        for attention in attentions(layer):
            queries, keys, values = attention.project.weight.split((4 * 24, 2 * 24, 2 * 40))
            for weight in (queries, keys, values):
                is_uniform(weight)
            is_uniform(attention.join.weight, shrunk * math.sqrt(6 / (4 * 40 + 128)))
        is_uniform(layer.feed_forward.inner.weight)
        is_uniform(layer.feed_forward.outer.weight, shrunk * math.sqrt(6 / (256 + 128)))
    for pieces in (model.source_pieces, model.target_pieces, model.output_pieces):
        is_normal(pieces.weight, 128**-0.5)


def test_a_gate_is_a_matrix_of_its_own():
    model = model_of(initial="xavier", activation="swiglu")
    for half in model.encoder.layers[0].feed_forward.inner.weight.chunk(2):
        is_uniform(half)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_normal(norm):
    model = model_of(initial="normal", norm=norm)
    for layer in (module for module in model.modules() if isinstance(module, Layer)):
        shrunk = 0.02 * sub_layers(layer, model) ** -0.5
        for attention in attentions(layer):
            is_normal(attention.project.weight, 0.02)
            is_normal(attention.join.weight, shrunk)
        is_normal(layer.feed_forward.inner.weight, 0.02)
        is_normal(layer.feed_forward.outer.weight, shrunk)
    for pieces in (model.source_pieces, model.target_pieces, model.output_pieces):
        is_normal(pieces.weight, 0.02)


@pytest.mark.parametrize("initial", ["xavier", "normal"])
@pytest.mark.parametrize("family", ["encoder-decoder", "encoder-only", "decoder-only"])
def test_biases_are_zero_and_norms_one(initial, family):
    model = model_of(
        family=family, initial=initial, norm="pre", segments=2, labels=7, pooled_layer=True, pooling="attention",
        output_bias=True,
    )  # fmt: skip
    found = 0
    for module in model.modules():
        match module:
            case nn.Linear():
                assert not module.bias.any()
                found += 1
            case nn.LayerNorm():
                assert not module.bias.any()
                assert (module.weight == 1).all()
                found += 1
    assert found > 8
    if family != "encoder-only":
        assert not model.output_bias.any()
    else:
        is_normal(model.embedding.segments.weight, 0.02)
        for weight in (model.pooled.weight, model.label.weight, model.attend.weight):
            is_uniform(weight) if initial == "xavier" and weight.numel() > 200 else None


@pytest.mark.parametrize("initial", ["xavier", "normal"])
def test_positions_and_relations(initial):
    is_normal(model_of(initial=initial, positions="learned").source_embedding.positions.learned.weight, 0.02)
    buckets = [module for module in model_of(initial=initial, positions="relative").modules()
               if isinstance(module, Buckets)]  # fmt: skip
    assert len(buckets) == 2, "one for each stack, and none for cross-attention"
    assert float(buckets[0].bias.weight.std().detach()) == pytest.approx(0.02, rel=0.3)
    shaw = [module for module in model_of(initial=initial, positions="shaw").modules() if isinstance(module, Shaw)]
    assert len(shaw) == 5
    for module in shaw:
        is_normal(module.keys.weight, 0.02)
        is_normal(module.vectors.weight, 0.02)


@pytest.mark.parametrize(("embeddings", "matrices"), [("tied_all", 1), ("tied_output", 2), ("separate", 3)])
def test_how_many_embedding_matrices(embeddings, matrices):
    model = model_of(embeddings=embeddings)
    tall = [name for name, weight in model.named_parameters() if weight.shape[0] == 500]
    assert len(tall) == matrices
    names = model.state_dict().keys()
    assert sum("pieces" in name for name in names) == matrices
    scores = model.logits(torch.eye(128)[None])
    output = model.target_pieces if model.output_pieces is None else model.output_pieces
    assert torch.equal(scores[0].T, output.weight)


def test_logits_of_a_new_model_are_near_one():
    """What the table says of the scale: embeddings near 1 and logits near 1."""
    torch.manual_seed(4)
    model = build_model(model_preset("base", vocabulary=1000)).eval()
    with torch.no_grad():
        source = torch.randint(1000, (2, 12))
        states = model(source, torch.tensor([12, 12]), source)
        embedded = model.target_pieces(source) * 512**0.5
        assert float(embedded.std()) == pytest.approx(1.0, rel=0.1)
        assert 0.5 < float(model.logits(states).std()) < 2


def test_the_same_seed_gives_the_same_weights():
    one, other = model_of(), model_of()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert sum(isinstance(module, MultiHead) for module in one.modules()) == 2 + 2 * 3
