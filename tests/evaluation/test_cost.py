"""The closed forms equal what a counter sees of the real models."""

import random

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from regard.config import ModelConfig, model_preset
from regard.errors import InputError
from regard.evaluation.cost import Work, cost
from regard.evaluation.counter import Counter
from regard.evaluation.flops import Flops, product, total
from regard.evaluation.parameters import parameters
from regard.evaluation.running import TYPES, activation_bytes, counted, saved_bytes, training_loss
from regard.models import build_model

FAMILIES = ("encoder-decoder", "encoder-only", "decoder-only")


def a_config(family, seed):
    """Some small model of the family, with any of the choices that change its cost."""
    pick = random.Random(f"{family} {seed}").choice
    heads = pick([2, 4, 6])
    embeddings = pick(["separate", "tied_output", "tied_all"])
    return ModelConfig(
        family=family, vocabulary=pick([11, 40]), d_model=12 * pick([1, 2]), heads=heads,
        source_vocabulary=pick([None, 23]) if embeddings != "tied_all" else None,
        kv_heads=pick([None, 1, 2]), d_k=pick([None, 4, 8]), d_v=pick([None, 4, 8]) if heads != 6 else 6,
        encoder_layers=pick([1, 2]), decoder_layers=pick([1, 3]), d_ff=pick([16, 40]),
        dropout=0.1, attention_dropout=pick([0.0, 0.0, 0.1]),
        norm=pick(["pre", "post"]), norm_kind=pick(["layer", "rms"]),
        activation=pick(["relu", "gelu", "silu", "swiglu"]), biases=pick([True, False]),
        positions=pick(["sinusoidal", "learned", "alibi", "relative", "shaw", "none"]), max_length=400,
        relative_buckets=8, relative_distance=pick([5, 9]),
        attention=pick(["full", "sliding", "dilated", "global_sliding"]),
        window=pick([3, 30, 70]), dilation=pick([2, 3]), global_positions=pick([(0,), (7, 2), (0, 350)]),
        embeddings=embeddings, embedding_norm=pick([True, False]), output_bias=pick([True, False]),
        segments=pick([0, 2]), pooling=pick(["first", "mean", "attention"]), pooled_layer=pick([True, False]),
        labels=pick([None, 3]),
    )  # fmt: skip


CONFIGS = [pytest.param(a_config(family, seed), id=f"{family}-{seed}") for family in FAMILIES for seed in range(16)]
WORKS = [Work(batch=2, length=9, target_length=6), Work(batch=3, length=130, target_length=133),
           Work(batch=1, length=390, target_length=371)]  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
def test_parameters_are_those_of_the_built_model(config):
    with torch.device("meta"):
        model = build_model(config)
    counts = {name: parameter.numel() for name, parameter in model.named_parameters()}
    parts = parameters(config)
    assert sum(parts.values()) == sum(counts.values())

    def of(*words):
        return sum(count for name, count in counts.items() if all(word in f".{name}" for word in words))

    norms = "norm."
    for stack in ("encoder", "decoder"):
        assert parts.get(f"{stack} attention", 0) == of(f".{stack}.", ".attention.")
        assert parts.get(f"{stack} feed-forward", 0) == of(f".{stack}.", ".feed_forward.")
        assert parts.get(f"{stack} norms", 0) == of(f".{stack}.", norms)
    assert parts.get("cross-attention", 0) == of(".cross.")
    assert parts["embeddings"] == of("pieces.")
    assert parts.get("segments", 0) == of("embedding.segments.")
    assert parts.get("embedding norms", 0) == of("embedding.norm.")
    assert parts.get("positions", 0) == of("embedding.positions.") + of("coder.relation.")
    assert parts.get("head", 0) == of(".attend.") + of(".pooled.") + of(".label.")


@pytest.mark.parametrize("number", range(len(CONFIGS)), ids=lambda number: CONFIGS[number].id)
def test_the_arithmetic_is_what_the_counter_sees(number):
    (config,), work = CONFIGS[number].values, WORKS[number % 3]
    formula, seen = cost(config, work), counted(config, work)
    assert total(formula.parameters) == seen.parameters
    assert total(formula.forward) == seen.forward
    assert formula.backward == seen.backward
    if formula.decoding is not None:
        assert formula.decoding.source == seen.source
        assert formula.decoding.last_cached == seen.last_cached
        assert formula.decoding.last_again == seen.last_again
        assert formula.bytes.cache == seen.cache
        assert formula.bytes.source == seen.source_cache


def small(**changes):
    return model_preset("tiny", **{"vocabulary": 50, "d_model": 16, "d_ff": 40, "encoder_layers": 2, **changes})


@pytest.mark.parametrize("work", WORKS, ids=lambda work: str(work.length))
@pytest.mark.parametrize("positions", ["sinusoidal", "relative"])
def test_real_tensors_count_as_those_that_pretend(work, positions):
    config = small(positions=positions)
    torch.manual_seed(0)
    model, seen = build_model(config), counted(config, work)
    with Counter() as forward:
        loss = training_loss(model, work)
    with Counter() as backward:
        loss.backward()
    assert (forward.flops, backward.flops, backward.recomputed) == (seen.forward, seen.backward, seen.recomputed)


def test_only_a_fused_kernel_computes_scores_again():
    """Long texts, no bias that learns: as many operations again as one product of each attention takes."""
    config = small(d_k=8, d_v=8)
    seen = [counted(config, work).recomputed for work in WORKS[:2]]
    work = WORKS[1]
    source, target, layers = work.length, work.target_length, config.decoder_layers
    pairs = config.encoder_layers * source**2 + layers * (target**2 + source * target)
    assert seen == [0, work.batch * config.heads * product(1, config.key_width, pairs)]


def test_the_counter_agrees_with_torch_where_torch_can_count():
    """Short texts, whose attention is plain products: torch's counter knows no fused attention on a processor."""
    model, work = build_model(small()), WORKS[0]
    with Counter() as ours, FlopCounterMode(display=False) as theirs:
        training_loss(model, work).backward()
    vectors = product(work.batch * work.target_length, model.config.d_model, 1)  # a matrix by a vector, unknown to it
    assert ours.flops == theirs.get_total_flops() + vectors


def test_counting_under_inference_mode():
    model = build_model(small()).eval()
    source, target, lengths = (
        torch.zeros(2, 9, dtype=torch.long),
        torch.zeros(2, 6, dtype=torch.long),
        torch.tensor([9, 4]),
    )
    counts = []
    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), Counter() as counter:
            model.logits(model(source, lengths, target))
        counts.append(counter.flops)
    flops = Flops(config=model.config)
    parts = [flops.encode(2, 9), flops.remember(2, 9), flops.decode(2, 6, source=9), flops.logits(12)]
    assert counts == [total(*parts)] * 2


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("work", WORKS, ids=lambda work: str(work.length))
@pytest.mark.parametrize(
    "config",
    [
        small(),
        small(attention="sliding", window=20),
        small(family="decoder-only"),
        small(family="encoder-only", labels=3),
    ],
    ids=["encoder-decoder", "sliding", "decoder-only", "encoder-only"],
)
def test_activations_of_a_model_that_pretends_are_those_of_a_real_one(config, work, precision):
    work = Work(batch=work.batch, length=work.length, precision=precision)
    assert activation_bytes(config, work) == saved_bytes(build_model(config).to(TYPES[precision]), work) > 0


@pytest.mark.parametrize("work", WORKS, ids=lambda work: str(work.length))
def test_a_bf16_model_does_the_same_arithmetic(work):
    """Its products with a bias, and then its attention, went by the counter unseen: they are not torch's plain ones."""
    work = Work(batch=work.batch, length=work.length, precision="bf16")
    for config in (small(d_model=32, heads=2), small(family="decoder-only", d_model=64, biases=False)):
        formula, seen = cost(config, work), counted(config, work)
        assert (seen.forward, seen.backward) == (total(formula.forward), formula.backward)


def test_a_whole_text_is_the_sum_of_its_tokens():
    """Decode token by token for real, once with the cache and once the prefix again each time."""
    config, work = small(), Work(batch=1, length=7, target_length=5)
    model = build_model(config).eval()
    source, lengths = torch.zeros(1, 7, dtype=torch.long), torch.tensor([7])
    with torch.no_grad():
        cache = model.start(source, lengths, capacity=5)
        with Counter() as cached:
            for _ in range(5):
                model.logits(model.step(torch.zeros(1, 1, dtype=torch.long), cache))
        with Counter() as again:
            for length in range(1, 6):
                cache.lengths = [0]
                states = model.step(torch.zeros(1, length, dtype=torch.long), cache)
                model.logits(states[:, -1:])
    decoding = cost(config, work).decoding
    assert (decoding.all_cached, decoding.all_again) == (cached.flops, again.flops)


def test_bf16_halves_what_is_decoded_with_and_trains_on_a_copy():
    whole, half = (cost(small(), Work(precision=precision)).bytes for precision in ("float32", "bf16"))
    assert (whole.gradients, whole.moments) == (half.gradients, half.moments)
    assert half.weights == whole.weights + half.decoding_weights
    assert (whole.cache, whole.source, whole.decoding_weights) == (
        2 * half.cache,
        2 * half.source,
        2 * half.decoding_weights,
    )
    assert counted(small(), Work(batch=2, length=8, precision="bf16")).cache == 2 * 8 * half.cache_token


def test_a_window_makes_long_texts_linear():
    config = small(family="decoder-only", attention="sliding", window=64, max_length=2**15)
    parts = [Flops(config=config).decode(1, length, source=None)["decoder attention"] for length in (2**13, 2**14)]
    assert parts[1] == 2 * parts[0]


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ({"batch": 0}, "batch = 0: must be 1 or more"),
        ({"target_length": -1}, "target_length = -1: must be 1 or more"),
        ({"length": 2000}, "texts of 2000 tokens: model.max_length = 1024"),
    ],
)
def test_wrong_work_is_refused(work, said):
    with pytest.raises(InputError, match=said):
        cost(small(), Work(**work))


def test_a_model_without_a_vocabulary_is_refused():
    with pytest.raises(InputError, match=r"model\.vocabulary is not known"):
        parameters(model_preset("base"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu_is_refused():
    with pytest.raises(InputError, match="device = 'cuda'"):
        activation_bytes(small(), Work(device="cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("work", WORKS, ids=lambda work: str(work.length))
def test_on_a_gpu_all_is_as_for_real(work, precision):
    config = small(d_k=8, d_v=16)
    work = Work(batch=work.batch, length=work.length, precision=precision, device="cuda")
    formula, seen, model = cost(config, work), counted(config, work), build_model(config).to("cuda", TYPES[precision])
    assert activation_bytes(config, work) == saved_bytes(model, work)
    with Counter() as real:
        training_loss(model, work).backward()
    assert real.flops == seen.forward + seen.backward == formula.training
    assert formula.decoding.last_cached == seen.last_cached
