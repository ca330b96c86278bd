"""What positions do to attention, against transformers and against the papers' formulas written out."""

import math

import pytest
import torch
from torch import Tensor
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention, T5Config

from regard.nn import Alibi, Buckets, Shaw, attention, attention_formula, causal, full, padding
from regard.nn.positions import Rotation
from regard.nn.relations import alibi_slopes, relative_bucket

from .alike import agree, real, scatter

LENGTHS = torch.tensor([19, 12, 1])


def formula(*given: Tensor, **named: object) -> Tensor:
    """The plain twin's output."""
    return attention_formula(*given, **named).out


def heads_of(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


@pytest.mark.parametrize("both_sides", [True, False])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (8, 20), (12, 50)])
def test_relative_buckets_are_t5s(both_sides, buckets, furthest):
    offsets = torch.arange(-300, 301)
    wanted = T5Attention._relative_position_bucket(offsets, both_sides, buckets, furthest)
    assert relative_bucket(offsets, buckets=buckets, furthest=furthest, both_sides=both_sides).equal(wanted)


def t5_attention(*, decoder: bool) -> tuple[T5Attention, Buckets]:
    config = T5Config(
        d_model=16, d_kv=6, num_heads=4, relative_attention_num_buckets=8, relative_attention_max_distance=20,
        is_decoder=decoder, attn_implementation="eager",
    )  # fmt: skip
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0, is_causal=decoder)
    scatter(theirs)
    buckets = Buckets(4, buckets=8, furthest=20, both_sides=not decoder)
    buckets.bias.load_state_dict(theirs.relative_attention_bias.state_dict())
    return theirs, buckets


@pytest.mark.parametrize("decoder", [False, True])
def test_relative_biases_are_t5s(decoder):
    theirs, buckets = t5_attention(decoder=decoder)
    wanted = theirs.compute_bias(30, 50)
    agree(buckets.scores(torch.empty(1, 4, 30, 6), torch.arange(30)[None], torch.arange(50)[None]), wanted)
    step = theirs.compute_bias(2, 50, past_seen_tokens=48)  # two more tokens behind forty-eight
    agree(buckets.scores(torch.empty(1, 4, 2, 6), torch.tensor([[48, 49]]), torch.arange(50)[None]), step)


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("attend", [attention, formula])
@pytest.mark.parametrize("length", [19, 140], ids=["plain", "fused"])
@torch.no_grad()
def test_attention_with_relative_positions_is_t5s(decoder, attend, length):
    theirs, buckets = t5_attention(decoder=decoder)
    lengths = torch.tensor([length, length - 7, 1])
    x = torch.randn(3, length, 16)
    mask = (causal() if decoder else full()) & padding(lengths)
    hidden = ~real(lengths)[:, None, None, :]
    if decoder:
        hidden = hidden | torch.ones(length, length, dtype=torch.bool).triu(1)
    wanted = theirs(x, mask=torch.zeros(hidden.shape).masked_fill(hidden, -1e30))[0]
    out = attend(*(heads_of(side(x), 4) for side in (theirs.q, theirs.k, theirs.v)), mask, bias=buckets, scale=1.0)
    agree(theirs.o(out.transpose(1, 2).flatten(2)), wanted)


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 7, 8, 12, 16, 20])
def test_alibi_is_blooms(heads):
    """Theirs counts from the first key and leaves the rest to the softmax, which forgets what a row has in common."""
    kept = real(LENGTHS)
    biases = build_alibi_tensor(kept.long(), heads, torch.float32).view(3, heads, 1, -1)
    torch.testing.assert_close(torch.tensor(alibi_slopes(heads)), biases[0, :, 0, 1], atol=0, rtol=1e-6)

    q, k, v = torch.randn(3, 3, heads, 19, 4).unbind()
    mask = causal() & padding(LENGTHS)
    hidden = ~(real(LENGTHS)[:, None, None] & torch.ones(19, 19, dtype=torch.bool).tril())
    wanted = ((q @ k.mT / 2 + biases).masked_fill(hidden, -math.inf).softmax(-1) @ v).transpose(1, 2)
    agree(attention(q, k, v, mask, bias=Alibi(heads)).transpose(1, 2)[kept], wanted[kept])


def turned(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """Su et al. 2021, equation 12: each pair of components, as one complex number, times e^(imθ)."""
    width = x.shape[-1]
    theta = torch.tensor([base ** (-2 * i / width) for i in range(width // 2)], dtype=torch.float64)
    angles = positions[:, None, :, None].double() * theta
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.exp(1j * angles)).flatten(-2).float()


@pytest.mark.parametrize("base", [10_000.0, 500.0])
def test_rotary_positions_turn_complex_numbers(base):
    positions = torch.stack([torch.arange(12), torch.arange(30, 42)])
    x = torch.randn(2, 3, 12, 8)
    agree(Rotation(positions, 8, base)(x), turned(x, positions, base))


def test_rotary_products_depend_on_the_distance_alone():
    q, k = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    here, there = (Rotation(torch.tensor([[place]]), 8, 10_000.0) for place in (3, 40))
    before, later = (Rotation(torch.tensor([[place + 7]]), 8, 10_000.0) for place in (3, 40))
    agree(here(q) @ before(k).mT, there(q) @ later(k).mT)


@pytest.mark.parametrize("attend", [attention, formula])
@torch.no_grad()
def test_shaws_relations_are_the_papers_sums(attend):
    """Shaw et al. 2018, a pair at a time: z_i = Σ_j α_ij (v_j + a^V_ij), and e_ij = q_i (k_j + a^K_ij)ᵀ / √d."""
    batch, heads, queries, keys, furthest = 2, 2, 5, 6, 2
    shaw = Shaw(key_width=4, value_width=3, furthest=furthest)
    scatter(shaw)
    q, k = torch.randn(batch, heads, queries, 4), torch.randn(batch, heads, keys, 4)
    v, lengths = torch.randn(batch, heads, keys, 3), [6, 3]

    wanted = torch.zeros(batch, heads, queries, 3)
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                distances = [max(-furthest, min(furthest, j - i)) + furthest for j in range(lengths[b])]
                scores = [
                    float(q[b, h, i] @ (k[b, h, j] + shaw.keys.weight[distance])) / math.sqrt(4)
                    for j, distance in enumerate(distances)
                ]
                whole = sum(math.exp(score) for score in scores)
                for j, distance in enumerate(distances):
                    wanted[b, h, i] += math.exp(scores[j]) / whole * (v[b, h, j] + shaw.vectors.weight[distance])
    agree(attend(q, k, v, padding(lengths), bias=shaw), wanted)
