"""The fused passes of a bf16 step are the plain ones in float32 on the same numbers, to what bf16 can hold."""

import math
import os
import shutil
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.nn import attention_formula, causal, matrix, padding, view
from regard.nn.dropout import add_dropped, dropout
from regard.nn.fused import apart, fused_attention, fused_drop, fused_gelu, fused_norm, library, softmax_in_place

PROCESSOR = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
ABLE = "avx512_bf16" in PROCESSOR and shutil.which("cc") is not None and os.environ.get("REGARD_KERNEL") != "off"
pytestmark = pytest.mark.skipif(not ABLE, reason="no C compiler, or a processor without bf16 instructions")

EVERY = settings(derandomize=True, deadline=None, max_examples=60)
STEP = 2**-8
"""of bf16: numbers are kept to half of it, relatively; sums of products of such numbers to a few"""


def test_where_it_can_be_had_it_is_there():
    """A source that did not compile would be passed over in silence, and with it all of this file."""
    assert library() is not None


def close(ours, right, steps=3.0):
    """Within a few steps of the largest number."""
    assert ours.shape == right.shape
    ours, right = ours.detach().float(), right.detach()
    assert torch.equal(ours.isnan(), right.isnan())
    if right.numel():
        bound = steps * STEP * float(right.abs().max().clamp(min=1e-30))
        assert float((ours - right).abs().max()) <= bound


def backward(out, leaves):
    weights = torch.linspace(-1, 1, out.numel()).view(out.shape).bfloat16().to(out.dtype)  # the same for both
    return torch.autograd.grad(out, leaves, weights)


@st.composite
def sides(draw):
    """Queries, keys and values of any lengths, key heads and widths; as they lie in a projection, or else."""
    batch, key_heads, shared = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    lengths = st.one_of(st.integers(1, 40), st.sampled_from([64, 129, 200]))
    queries, keys = draw(lengths), draw(lengths)
    d_k, d_v = (16 * draw(st.integers(1, 4)) for _ in "kv")
    numbers = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    found = []
    for heads, length, width in ((key_heads * shared, queries, d_k), (key_heads, keys, d_k), (key_heads, keys, d_v)):
        lying = (batch, length, heads, width) if draw(st.booleans()) else (batch, heads, length, width)
        side = torch.randn(lying, generator=numbers).bfloat16()
        found.append(side.transpose(1, 2) if lying[1] == length and lying[2] == heads else side)
    return [side.requires_grad_() for side in found]


@EVERY
@given(sides(), st.data())
def test_attention_is_the_formula(sides, data):
    q, k, v = sides
    batch, queries, keys = q.shape[0], q.shape[2], k.shape[2]
    numbers = torch.Generator().manual_seed(data.draw(st.integers(0, 999)))
    masks = [
        None, causal(), padding(torch.randint(0, keys + 1, (batch,), generator=numbers)),
        matrix(torch.rand(batch, queries, keys, generator=numbers) < 0.4),
    ]  # fmt: skip
    mask = data.draw(st.sampled_from(masks))
    sight = view(mask, queries, keys) if mask is not None else None
    added, blind = (None, None) if sight is None else (sight.additive, sight.blind)
    ours = fused_attention(q, k, v, added, blind, 0.3)
    wide = [side.detach().float().requires_grad_() for side in sides]
    right = attention_formula(*wide, mask, scale=0.3).out
    close(ours, right)
    found = backward(ours, sides)
    for one, other in zip(found, backward(right, wide), strict=True):
        close(one, other, 6)
    if isinstance(mask, type(causal())) and queries == keys:
        without = fused_attention(q, k, v, None, None, 0.3, causal=True)
        assert torch.equal(without, ours)
        for one, other in zip(backward(without, sides), found, strict=True):
            assert torch.equal(one, other)


def test_the_number_of_threads_changes_no_bit():
    numbers = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(9, 4, 33, 32, generator=numbers).bfloat16().requires_grad_() for _ in range(3))
    found, before = [], torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        out = fused_attention(q, k, v, None, None, 0.2)
        found.append([out, *backward(out, (q, k, v))])
    torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("side", range(3))
def test_what_is_not_a_number_is_passed_on(side):
    """A maximum of the processor's own forgets NaN: weights that ran away would have trained on in silence."""
    given = [torch.randn(1, 2, 5, 16).bfloat16() for _ in range(3)]
    given[side][0, 1, 3, 2] = math.nan
    ours = fused_attention(*given, None, None, 0.25)
    right = attention_formula(*(each.float() for each in given), scale=0.25).out
    assert torch.equal(ours.isnan(), right.isnan())
    assert ours.isnan().any()
    logits = torch.randn(3, 40).bfloat16()
    logits[1, 7] = math.nan
    told = softmax_in_place(logits)
    assert told.isnan()[:, 0].tolist() == logits.isnan().any(-1).tolist() == [False, True, False]
    assert fused_gelu(torch.tensor([1.0, math.nan]).bfloat16()).isnan().tolist() == [False, True]


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_of_a_projection(parts):
    """Gradients that lie side by side are handed on without a copy, all others are put together."""
    x = torch.randn(2, 7, parts * 32, requires_grad=True)
    for double in (False, True):
        split = apart(x, parts, 2)
        right = x.unflatten(-1, (parts, 2, 16)).permute(2, 0, 3, 1, 4)
        assert all(torch.equal(one, other) for one, other in zip(split, right, strict=True))
        given = torch.randn(2, 7, parts, 2, 16).permute(2, 0, 3, 1, 4)
        given = given.contiguous() if double else given
        (gradient,) = torch.autograd.grad(split, x, tuple(given))
        assert torch.equal(gradient, given.permute(1, 3, 0, 2, 4).flatten(2))
        lies = gradient.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()
        assert lies is not double


def test_parts_in_another_order_are_put_in_order():
    x = torch.randn(1, 3, 32, requires_grad=True)
    given = torch.randn(1, 3, 2, 1, 16).permute(2, 0, 3, 1, 4)
    (gradient,) = torch.autograd.grad(apart(x, 2, 1), x, (given[1], given[0]))
    assert torch.equal(gradient, torch.cat([given[1], given[0]], -1)[:, 0])


@pytest.mark.parametrize("rows", [1, 37, 700])
@pytest.mark.parametrize("beta", [True, False])
def test_norms_are_torchs(rows, beta):
    numbers = torch.Generator().manual_seed(rows)
    x, gamma, shift = (
        torch.randn(size, generator=numbers).add(0.5).bfloat16().requires_grad_()
        for size in ((rows, 3, 48), (48,), (48,))
    )
    leaves = (x, gamma, shift) if beta else (x, gamma)
    ours = fused_norm(x, gamma, shift if beta else None, 1e-5)
    wide = [leaf.detach().float().requires_grad_() for leaf in leaves]
    right = F.layer_norm(wide[0], (48,), *wide[1:], 1e-5) if beta else F.rms_norm(wide[0], (48,), wide[1], 1e-5)
    close(ours, right, 1)
    for one, other in zip(backward(ours, leaves), backward(right, wide), strict=True):
        close(one, other, 1)


@pytest.mark.parametrize("count", [1, 15, 16, 50_000])
def test_gelu_is_torchs(count):
    x = torch.linspace(-9, 9, count).bfloat16().requires_grad_()
    ours, wide = fused_gelu(x), x.detach().float().requires_grad_()
    right = F.gelu(wide)
    assert torch.allclose(ours.float(), right, rtol=STEP, atol=1e-6)
    assert torch.allclose(backward(ours, x)[0].float(), backward(right, wide)[0], rtol=2 * STEP, atol=1e-4)


@pytest.mark.parametrize("width", [1, 16, 65, 8000])
def test_softmax_in_place_is_torchs(width):
    logits = 9 * torch.randn(70, width, generator=torch.Generator().manual_seed(width))
    logits = logits.bfloat16()
    right, sums = logits.float().softmax(-1), logits.float().logsumexp(-1, keepdim=True)
    told = softmax_in_place(logits)
    assert torch.allclose(told, sums, rtol=1e-6, atol=1e-6)
    assert torch.allclose(logits.float(), right, rtol=STEP, atol=1e-30)


def drawn(shape, probability, seed):
    """Which elements are kept, 0 or 1."""
    torch.manual_seed(seed)
    ones = torch.ones(shape).bfloat16()
    return dropout(ones, probability, training=True) > 0


@pytest.mark.parametrize("probability", [0.1, 1 / 3, 0.5, 0.9])
def test_the_rate_and_the_scale_of_dropout(probability):
    """Within five standard errors: of all, of each place, of each pair of places in a row, and from seed to seed."""
    kept = torch.stack([drawn((61, 35), probability, seed) for seed in range(400)]).double()
    error = math.sqrt(probability * (1 - probability))
    assert abs(float(kept.mean()) - (1 - probability)) < 5 * error / math.sqrt(kept.numel())
    rates = kept.flatten(1).mean(0)
    assert float((rates - (1 - probability)).abs().max()) < 5 * error / math.sqrt(400)
    flat = (kept.flatten() - (1 - probability)) / error
    for lag in (1, 2, 16, 31, 32, 61 * 35):
        assert abs(float((flat[:-lag] * flat[lag:]).mean())) < 5 / math.sqrt(len(flat)), lag
    torch.manual_seed(1)
    values = set(dropout(torch.ones(64, 64).bfloat16(), probability, training=True).unique().tolist())
    assert values == {0.0, float(torch.tensor(1 / (1 - probability)).bfloat16())}


def test_a_seed_is_a_mask_whatever_the_number_of_threads():
    before, found = torch.get_num_threads(), []
    for threads, seed in ((1, 5), (2, 5), (1, 6)):
        torch.set_num_threads(threads)
        found.append(drawn((400, 300), 0.3, seed))
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize("size", [1, 31, 33, 4096])
def test_the_residual_sum_and_its_gradients(size):
    x, h = (torch.randn(size).bfloat16().requires_grad_() for _ in "xh")
    torch.manual_seed(8)
    mask = (fused_drop(None, torch.ones(size).bfloat16(), 0.4) > 0) / 0.6
    torch.manual_seed(8)
    total = add_dropped(x, h, 0.4, training=True)
    assert torch.allclose(total.float(), x.float() + h.float() * mask, rtol=STEP, atol=1e-6)
    back = torch.randn(size).bfloat16()
    for_x, for_h = torch.autograd.grad(total, (x, h), back)
    assert torch.equal(for_x, back)
    assert torch.allclose(for_h.float(), back.float() * mask, rtol=STEP)
