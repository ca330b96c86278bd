"""A trace shows what was computed, where it is asked to, and changes nothing; heads can be switched off through it."""

import copy

import pytest
import torch

from regard.config import ModelConfig
from regard.errors import InputError
from regard.models import build_model
from regard.nn import Trace
from regard.nn.trace import KINDS

ALL = frozenset(KINDS)


def model_of(family="encoder-decoder", **changes):
    torch.manual_seed(5)
    values = {
        "family": family, "vocabulary": 13, "d_model": 12, "heads": 4, "kv_heads": 2, "d_ff": 16, "encoder_layers": 2,
        "decoder_layers": 3, "norm": "pre", "relative_buckets": 4, "relative_distance": 5, "window": 2, "d_k": 6,
        "d_v": 5,
    }  # fmt: skip
    return build_model(ModelConfig(**{**values, **changes})).eval()


SOURCE, LENGTHS, TARGET = torch.arange(12).view(2, 6), torch.tensor([6, 4]), torch.arange(10).view(2, 5) + 2


@torch.no_grad()
def test_everything_by_name_and_shape():
    model, trace = model_of(), Trace(kinds=ALL)
    states = model(SOURCE, LENGTHS, TARGET, trace=trace)
    logits = model.logits(states, trace=trace)
    shapes = {name: tuple(value.shape) for name, value in trace.values.items()}
    expected = {"encoder.embeddings": (2, 6, 12), "encoder.positions": (2, 6, 12), "encoder.norm.residual": (2, 6, 12),
                "decoder.embeddings": (2, 5, 12), "decoder.positions": (2, 5, 12), "decoder.norm.residual": (2, 5, 12),
                "decoder.logits": (2, 5, 13)}  # fmt: skip
    for part, layers, rows, keys in (
        ("encoder.self", 2, 6, 6), ("decoder.self", 3, 5, 5), ("decoder.cross", 3, 5, 6)
    ):  # fmt: skip
        for layer in range(layers):
            expected |= {
                f"{part}.{layer}.weights": (2, 4, rows, keys), f"{part}.{layer}.scores": (2, 4, rows, keys),
                f"{part}.{layer}.queries": (2, 4, rows, 6), f"{part}.{layer}.keys": (2, 4, keys, 6),
                f"{part}.{layer}.values": (2, 4, keys, 5), f"{part}.{layer}.head_outputs": (2, 4, rows, 5),
                f"{part}.{layer}.residual": (2, rows, 12),
                f"{part.split('.')[0]}.feed_forward.{layer}.residual": (2, rows, 12),
            }  # fmt: skip
    assert shapes == expected
    assert torch.equal(trace["decoder.norm.residual"], states)
    assert torch.equal(trace["decoder.logits"], logits)
    assert not any(value.requires_grad for value in trace.values.values())


@torch.no_grad()
def test_the_numbers_fit_together():
    """From scores to weights to outputs, and from one residual to the next, by hand."""
    model, trace = model_of(positions="sinusoidal"), Trace(kinds=ALL)
    model(SOURCE, LENGTHS, TARGET, trace=trace)
    place = "decoder.self.1"
    scores = trace[f"{place}.queries"] @ trace[f"{place}.keys"].transpose(-1, -2) / 6**0.5
    assert torch.allclose(trace[f"{place}.scores"], scores, atol=1e-6)
    later = torch.ones(5, 5).triu(1).bool()
    assert torch.allclose(trace[f"{place}.weights"], scores.masked_fill(later, -torch.inf).softmax(-1), atol=1e-6)
    found = trace[f"{place}.weights"] @ trace[f"{place}.values"]
    assert torch.allclose(trace[f"{place}.head_outputs"], found, atol=1e-6)
    layer = model.decoder.layers[1]
    joined = layer.attention.join(trace[f"{place}.head_outputs"].transpose(1, 2).flatten(2))
    before = trace["decoder.feed_forward.0.residual"]
    assert torch.allclose(trace[f"{place}.residual"], before + joined, atol=1e-6)
    assert (trace["decoder.cross.0.weights"][1, :, :, 4:] == 0).all(), "padding is not looked at"
    first = trace["decoder.embeddings"] + trace["decoder.positions"]
    joined = model.decoder.layers[0].attention.join(trace["decoder.self.0.head_outputs"].transpose(1, 2).flatten(2))
    assert torch.allclose(trace["decoder.self.0.residual"], first + joined, atol=1e-6)


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "rotary", "alibi", "relative", "shaw"])
@torch.no_grad()
def test_a_part_of_it_is_that_part_of_the_whole(positions):
    model, every = model_of(positions=positions), Trace()
    model(SOURCE, LENGTHS, TARGET, trace=every)
    some = Trace(parts=("encoder.self", "decoder.cross"), layers=(1,), heads=(3, 0), rows=(4, 1, 5))
    model(SOURCE, LENGTHS, TARGET, trace=some)
    assert set(some.values) == {"encoder.self.1.weights", "decoder.cross.1.weights"}
    own, cross = every["encoder.self.1.weights"], every["decoder.cross.1.weights"]
    assert torch.allclose(some["encoder.self.1.weights"], own[:, [3, 0]][:, :, [4, 1, 5]], atol=1e-7)
    assert torch.allclose(some["decoder.cross.1.weights"], cross[:, [3, 0]][:, :, [4, 1]], atol=1e-7)


@pytest.mark.parametrize("family", ["encoder-decoder", "encoder-only", "decoder-only"])
@torch.no_grad()
def test_looking_changes_no_bit(family):
    model = model_of(family)
    given = {"encoder-decoder": (SOURCE, LENGTHS, TARGET), "encoder-only": (SOURCE, LENGTHS), "decoder-only": (TARGET,)}
    assert torch.equal(model(*given[family], trace=Trace(kinds=ALL)), model(*given[family]))


def test_in_training_too():
    """With the same random numbers the same loss and the same gradients, and the weights are those before dropout."""
    model = model_of(dropout=0.2, attention_dropout=0.3).train()
    found = []
    for trace in (None, Trace(kinds=ALL)):
        torch.manual_seed(9)
        model.zero_grad()
        loss = model(SOURCE, LENGTHS, TARGET, trace=trace).square().mean()
        loss.backward()
        found.append(
            (loss.detach(), [parameter.grad for parameter in model.parameters() if parameter.grad is not None])
        )
    assert torch.equal(found[0][0], found[1][0])
    assert all(torch.equal(one, other) for one, other in zip(found[0][1], found[1][1], strict=True))
    assert torch.allclose(trace["encoder.self.0.weights"].sum(-1), torch.ones(2, 4, 6), atol=1e-6)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi", "shaw"])
@pytest.mark.parametrize("pattern", ["full", "sliding"])
@torch.no_grad()
def test_steps_with_a_cache_show_the_rows_of_the_whole(positions, pattern):
    """First three tokens at once, then two single ones; under a window a step only has the keys that it may see."""
    model, every = model_of(positions=positions, attention=pattern), Trace()
    model(SOURCE, LENGTHS, TARGET, trace=every)
    first = Trace()
    cache = model.start(SOURCE, LENGTHS, capacity=5, trace=first)
    assert set(first.values) == {"encoder.self.0.weights", "encoder.self.1.weights"}
    assert torch.equal(first["encoder.self.1.weights"], every["encoder.self.1.weights"])
    held = 0
    for tokens in TARGET.split([3, 1, 1], dim=1):
        trace, plain = Trace(), cache.select([0, 1])
        out = model.step(tokens, cache, trace=trace)
        assert torch.equal(out, model.step(tokens, plain))
        last = held + tokens.shape[1]
        for layer in range(3):
            seen = trace[f"decoder.self.{layer}.weights"]
            whole = every[f"decoder.self.{layer}.weights"][:, :, held:last]
            assert torch.allclose(seen, whole[..., last - seen.shape[-1] : last], atol=1e-6)
            assert torch.allclose(seen.sum(-1), torch.ones(seen.shape[:3]), atol=1e-6)
            across = every[f"decoder.cross.{layer}.weights"][:, :, held:last]
            assert torch.allclose(trace[f"decoder.cross.{layer}.weights"], across, atol=1e-6)
        held = last


@pytest.mark.parametrize("off", [("encoder.self", 1, 2), ("decoder.self", 0, 3), ("decoder.cross", 2, 0)])
@torch.no_grad()
def test_a_head_that_is_off_has_no_columns(off):
    model = model_of()
    part, layer, head = off
    switched = model(SOURCE, LENGTHS, TARGET, trace=Trace(kinds=frozenset(), heads_off=frozenset({off})))
    assert not torch.equal(switched, model(SOURCE, LENGTHS, TARGET))
    cut = copy.deepcopy(model)
    stack = cut.encoder if part == "encoder.self" else cut.decoder
    attention = stack.layers[layer].cross if part == "decoder.cross" else stack.layers[layer].attention
    attention.join.weight[:, 5 * head : 5 * head + 5] = 0
    assert torch.allclose(switched, cut(SOURCE, LENGTHS, TARGET), atol=1e-6)
    if part != "encoder.self":  # and the same in a cached step
        cache = model.start(SOURCE, LENGTHS, capacity=5)
        trace = Trace(kinds=frozenset({"head_outputs"}), heads_off=frozenset({off}))
        assert torch.allclose(model.step(TARGET, cache, trace=trace), switched, atol=1e-5)


@torch.no_grad()
def test_layers_of_the_deeper_stack_can_be_asked_for():
    """Asking for the decoder's third layer used to be refused because the encoder has two."""
    model = model_of()
    trace = Trace(parts=("decoder.cross",), layers=(2,))
    model(SOURCE, LENGTHS, TARGET, trace=trace)
    assert set(trace.values) == {"decoder.cross.2.weights"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Trace(kinds=frozenset({"weigths"})), "trace of 'weigths': did you mean 'weights'?"),
        (lambda: Trace(parts=("decoder.corss",)), "trace of part 'decoder.corss': did you mean 'decoder.cross'?"),
        (lambda: Trace(heads_off=frozenset({("self", 0, 0)})), "trace of part 'self'"),
        (lambda: Trace()["encoder.self.0.weights"], "trace has no 'encoder.self.0.weights': it is empty"),
    ],
)
def test_names_that_do_not_exist_are_refused(make, said):
    with pytest.raises(InputError) as refused:
        make()
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (Trace(layers=(3,), parts=("decoder.self",)), "trace of layer 3: decoder.self has layers 0 to 2"),
        (Trace(layers=(2,)), "trace of layer 2: encoder.self has layers 0 to 1"),
        (Trace(layers=(-1,)), "trace of layer -1: encoder.self has layers 0 to 1"),
        (Trace(layers=(3,), parts=("decoder.cross",)), "trace of layer 3: decoder.cross has layers 0 to 2"),
        (Trace(heads=(4,)), "trace of head 4: encoder.self has heads 0 to 3"),
        (Trace(heads_off=frozenset({("decoder.self", 3, 0)})), "decoder.self has 3 layers of 4 heads"),
        (Trace(heads_off=frozenset({("encoder.self", 0, 4)})), "encoder.self has 2 layers of 4 heads"),
        (Trace(heads_off=frozenset({("decoder.cross", 7, 0)})), "decoder.cross has 3 layers of 4 heads"),
    ],
)
@torch.no_grad()
def test_layers_and_heads_that_do_not_exist_are_refused(trace, said):
    """A cross-attention head that does not exist used to be switched off without a word."""
    with pytest.raises(InputError) as refused:
        model_of()(SOURCE, LENGTHS, TARGET, trace=trace)
    assert said in str(refused.value)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi", "relative", "shaw"])
@torch.no_grad()
def test_a_model_in_another_type_can_be_looked_at(positions, dtype):
    """A trace is in float32 or finer; Shaw's vectors in bf16, and T5's biases in float64, did not fit it."""
    for tokens in (5, 140):
        model = model_of("decoder-only", positions=positions).to(dtype)
        trace, given = Trace(), torch.arange(tokens)[None] % 13
        assert model(given, trace=trace).dtype == dtype
        weights = trace["decoder.self.2.weights"]
        assert weights.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        assert torch.allclose(weights.sum(-1), torch.ones_like(weights[..., 0]), atol=1e-6)


@torch.no_grad()
def test_heads_that_are_sure_are_exact():
    """Scores of a trained head reach tens. In float32 a row alone differed from the same row among others by 1.1e-6."""
    model = model_of("decoder-only", d_model=64, d_k=32, d_v=32, kv_heads=4)
    for layer in model.decoder.layers:
        layer.attention.project.weight[: 2 * 4 * 32] *= 6
    given = torch.randint(13, (2, 150), generator=torch.Generator().manual_seed(3))
    whole, part = Trace(kinds=frozenset({"weights", "scores", "queries", "keys"})), Trace(heads=(3, 0), rows=(149, 3))
    model(given, trace=whole)
    model(given, trace=part)
    assert whole["decoder.self.0.scores"].abs().max() > 30
    for layer in range(3):
        queries, keys = (whole[f"decoder.self.{layer}.{kind}"].double() for kind in ("queries", "keys"))
        scores = queries @ keys.transpose(-1, -2) / 32**0.5
        right = scores.masked_fill(torch.ones(150, 150).triu(1).bool(), -torch.inf).softmax(-1)
        assert (whole[f"decoder.self.{layer}.weights"] - right).abs().max() < 1e-7
        assert (part[f"decoder.self.{layer}.weights"] - right[:, [3, 0]][:, :, [149, 3]]).abs().max() < 1e-7
