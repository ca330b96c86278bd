"""The families: what they give, what they refuse, and weights that are loaded into them."""

import pytest
import torch

from regard.config import ModelConfig, model_preset
from regard.errors import InputError
from regard.models import DecoderOnly, EncoderDecoder, EncoderOnly, build_model, load_weights


def config_of(family="decoder-only", **changes):
    values = {"family": family, "vocabulary": 9, "d_model": 8, "heads": 2, "d_ff": 8, "encoder_layers": 1,
              "decoder_layers": 1, "dropout": 0.0}  # fmt: skip
    return ModelConfig(**{**values, **changes})


def model_of(family="decoder-only", **changes):
    torch.manual_seed(1)
    return build_model(config_of(family, **changes)).eval()


def test_a_family_is_a_class():
    kinds = {"encoder-decoder": EncoderDecoder, "encoder-only": EncoderOnly, "decoder-only": DecoderOnly}
    assert all(type(model_of(family)) is kind for family, kind in kinds.items())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: config_of(d_model=9), "model.d_model = 9: not divisible by heads = 2; take a multiple of 2"),
        (lambda: model_preset("smal"), "model.preset = 'smal': no such preset; did you mean 'small'?"),
        (lambda: config_of(window=0), "model.window = 0: must be 1 or more"),
        (lambda: config_of(heads=4, kv_heads=3), "model.kv_heads = 3: must divide heads = 4"),
        (lambda: build_model(config_of(vocabulary=None)), "model.vocabulary is not known"),
    ],
)
def test_what_no_model_can_be_built_from_is_refused(make, said):
    with pytest.raises(InputError) as refused:
        make()
    assert said in str(refused.value)


@torch.no_grad()
def test_a_mean_is_of_real_tokens_and_a_first_is_the_first():
    tokens, lengths = torch.randint(9, (2, 5)), torch.tensor([5, 2])
    model = model_of("encoder-only", labels=3)
    states = model(tokens, lengths)
    assert torch.allclose(model.pool(states, lengths)[1], states[1, :2].mean(0), atol=1e-6)
    assert model.logits(model.pool(states, lengths)).shape == (2, 3)
    first = model_of("encoder-only", pooling="first", pooled_layer=True)
    states = first(tokens, lengths)
    assert torch.allclose(first.pool(states, lengths), first.pooled(states[:, 0]).tanh())
    attending = model_of("encoder-only", pooling="attention")
    states = attending(tokens, lengths)
    weights = attending.attend(states[1, :2])[:, 0].softmax(0)
    assert torch.allclose(attending.pool(states, lengths)[1], weights @ states[1, :2], atol=1e-6)


@torch.no_grad()
def test_segments_are_added():
    model, tokens, lengths = model_of("encoder-only", segments=2), torch.randint(9, (1, 4)), torch.tensor([4])
    plain = model(tokens, lengths)
    assert torch.equal(plain, model(tokens, lengths, segments_BS=torch.zeros(1, 4, dtype=torch.long)))
    assert not torch.equal(plain, model(tokens, lengths, segments_BS=torch.tensor([[0, 0, 1, 1]])))


def test_dropout_is_the_identity_in_use_and_keeps_the_mean_in_training():
    """Of the embeddings: what is kept is 1/(1-p) times what it was."""
    model = model_of("encoder-only", dropout=0.4, d_model=64)
    tokens, places = torch.randint(9, (200, 5)), torch.arange(5)[None]
    states = []
    for in_training in (False, True):
        model.train(in_training)
        states.append(model.embedding(tokens, model.pieces.weight, positions=places, furthest=5, part="encoder"))
    in_use, in_training = (side.detach() for side in states)
    kept = in_training != 0
    assert abs(float(kept.float().mean()) - 0.6) < 0.02
    assert torch.allclose(in_training[kept], in_use[kept] / 0.6, rtol=1e-5)


@pytest.mark.parametrize("field", ["dropout", "attention_dropout", "activation_dropout"])
def test_every_dropout_acts_in_training_alone(field):
    model = model_of(**{field: 0.5})
    tokens = torch.randint(9, (2, 6))
    with torch.no_grad():
        assert torch.equal(model(tokens), model(tokens))
        assert torch.equal(model(tokens), model_of()(tokens))
        model.train()
        assert not torch.equal(model(tokens), model(tokens))


def test_weights_that_fit_are_loaded_exactly():
    model, other = model_of(), model_of(initial="normal")
    load_weights(other, model.state_dict(), source="here")
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), other.parameters(), strict=True))


def test_everything_that_does_not_fit_is_said_at_once():
    model = model_of()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    weights = {name: weight + 1 for name, weight in before.items()}
    weights["more.weight"] = weights.pop("decoder.layers.0.attention.join.weight")
    weights["pieces.weight"] = torch.zeros(9, 7)
    weights["decoder.layers.0.feed_forward.inner.bias"][2] = float("nan")
    weights["decoder.layers.0.feed_forward.outer.weight"][3, 1] = float("-inf")
    weights["decoder.layers.0.feed_forward.outer.weight"][3, 2] = float("nan")
    with pytest.raises(InputError) as refused:
        load_weights(model, weights, source="model.safetensors")
    said = str(refused.value)
    assert said.startswith("model.safetensors: weights do not fit the model: ")
    for fault in (
        "missing decoder.layers.0.attention.join.weight (8, 8)",
        "unused more.weight (8, 8)",
        "misshapen pieces.weight: (9, 7), the model has (9, 8)",
        "decoder.layers.0.feed_forward.inner.bias: 1 of 8 values are not finite, first nan at [2]",
        "decoder.layers.0.feed_forward.outer.weight: 2 of 64 values are not finite, first -inf at [3, 1]",
    ):
        assert fault in said
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items()), "nothing was changed"


def test_many_faults_are_counted():
    with pytest.raises(InputError, match="; and 5 more"):
        load_weights(model_of(), {}, source="empty")
