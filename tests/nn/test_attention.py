"""Attention: the fast way against its plain twin, both against torch's kernel and against loops, and what must hold."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import InputError
from regard.nn import (
    Alibi,
    Buckets,
    Shaw,
    attention,
    attention_formula,
    causal,
    dilated,
    full,
    matrix,
    padding,
    sliding,
)

EVERY = settings(derandomize=True, deadline=None, max_examples=25)
BOUND = 1e-10  # of float64


@st.composite
def inputs(draw, square=False, long=True):
    """Queries, keys and values in float64; on both sides of the length from which torch's kernel takes over."""
    batch, key_heads, shared = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    lengths = st.one_of(st.integers(1, 12), st.integers(129, 150)) if long else st.integers(1, 12)
    queries = draw(lengths)
    keys = queries if square else draw(lengths)
    d_k, d_v = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    numbers = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    sizes = ((key_heads * shared, queries, d_k), (key_heads, keys, d_k), (key_heads, keys, d_v))
    q, k, v = (torch.randn(batch, *size, generator=numbers, dtype=torch.float64) for size in sizes)
    return q.requires_grad_(), k.requires_grad_(), v.requires_grad_()


@st.composite
def masks(draw, q, k):
    """Any mask that is no band; some hide whole rows."""
    batch, queries, keys = q.shape[0], q.shape[2], k.shape[2]
    numbers = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    kinds = ["full", "causal", "padding", "causal padding", "left", "graph"]
    lengths = torch.randint(0, keys + 1, (batch,), generator=numbers)
    match draw(st.sampled_from(kinds)):
        case "full":
            return full()
        case "causal":
            return causal()
        case "padding":
            return padding(lengths)
        case "causal padding":
            return causal() & padding(lengths)
        case "left":
            return causal() & padding(torch.arange(keys) >= lengths[:, None])
        case _:
            return matrix(torch.rand(batch, queries, keys, generator=numbers) < 0.4)


def gradients(out, sides):
    return torch.autograd.grad((out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)).sum(), sides)


def close(one, other, bound=BOUND):
    assert one.shape == other.shape
    assert torch.isfinite(one).all()
    if one.numel():
        assert float((one - other).detach().abs().max()) <= bound


@EVERY
@given(inputs(), st.data())
def test_kernel_is_formula_gradients_included(sides, data):
    mask = data.draw(masks(*sides[:2]))
    fast, plain = attention(*sides, mask), attention_formula(*sides, mask).out
    close(fast, plain)
    for one, other in zip(gradients(fast, sides), gradients(plain, sides), strict=True):
        close(one, other)


@EVERY
@given(inputs(), st.data())
def test_both_are_torchs_own(sides, data):
    mask = data.draw(masks(*sides[:2]))
    q, k, v = sides
    shared = q.shape[1] // k.shape[1]
    seen = mask.matrix(q.shape[2], k.shape[2]).expand(q.shape[0], -1, -1)[:, None]
    with torch.no_grad():
        theirs = F.scaled_dot_product_attention(
            q, k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1), attn_mask=seen
        )
        theirs = theirs.masked_fill(~seen.any(-1, keepdim=True), 0.0)
        close(attention(*sides, mask), theirs)
        close(attention_formula(*sides, mask).out, theirs)


def test_the_formula_is_the_equation_in_loops():
    """Every number of two small heads, by Python's own arithmetic."""
    q, k, v = (torch.randn(1, 2, length, 3, dtype=torch.float64) for length in (3, 4, 4))
    seen = [[True, False, True, True], [False, True, False, False], [False] * 4]
    found = attention_formula(q, k, v, matrix(torch.tensor(seen)))
    for head in range(2):
        for row in range(3):
            scores = [sum(float(q[0, head, row, i] * k[0, head, key, i]) for i in range(3)) / math.sqrt(3)
                      for key in range(4)]  # fmt: skip
            powers = [math.exp(score) if seen[row][key] else 0.0 for key, score in enumerate(scores)]
            weights = [power / sum(powers) if sum(powers) else 0.0 for power in powers]
            out = [sum(weights[key] * float(v[0, head, key, i]) for key in range(4)) for i in range(3)]
            assert found.scores[0, head, row].tolist() == pytest.approx(scores, abs=1e-12)
            assert found.weights[0, head, row].tolist() == pytest.approx(weights, abs=1e-12)
            assert found.out[0, head, row].tolist() == pytest.approx(out, abs=1e-12)


@EVERY
@given(inputs(), st.data())
def test_weights_are_a_distribution_and_outputs_lie_among_the_values(sides, data):
    mask = data.draw(masks(*sides[:2]))
    q, k, v = (side.detach() for side in sides)
    found = attention_formula(q, k, v, mask)
    seen = mask.matrix(q.shape[2], k.shape[2]).expand(q.shape[0], -1, -1)[:, None].expand(found.weights.shape)
    assert (found.weights >= 0).all()
    assert (found.weights[~seen] == 0).all()
    close(found.weights.sum(-1), seen.any(-1).to(torch.float64))
    values = v.repeat_interleave(q.shape[1] // k.shape[1], 1)[:, :, None].expand(*seen.shape, -1)
    out = attention(q, k, v, mask)
    highest = values.masked_fill(~seen[..., None], -math.inf).amax(3)
    lowest = values.masked_fill(~seen[..., None], math.inf).amin(3)
    seeing = seen.any(-1)
    assert (out <= highest + BOUND)[seeing].all()
    assert (out >= lowest - BOUND)[seeing].all()
    assert (out[~seeing] == 0).all()


@EVERY
@given(inputs(), st.integers(0, 99))
def test_without_positions_a_permuted_input_gives_a_permuted_output(sides, seed):
    q, k, v = (side.detach() for side in sides)
    numbers = torch.Generator().manual_seed(seed)
    rows, columns = torch.randperm(q.shape[2], generator=numbers), torch.randperm(k.shape[2], generator=numbers)
    out = attention(q, k, v)
    close(attention(q[:, :, rows], k, v), out[:, :, rows])
    close(attention(q, k[:, :, columns], v[:, :, columns]), out)
    seen = torch.rand(q.shape[2], k.shape[2], generator=numbers) < 0.5
    moved = attention(q[:, :, rows], k[:, :, columns], v[:, :, columns], matrix(seen[rows][:, columns]))
    close(moved, attention(q, k, v, matrix(seen))[:, :, rows])


@pytest.mark.parametrize("tokens", [6, 140])
@pytest.mark.parametrize("attend", [attention, lambda *given: attention_formula(*given).out])
def test_a_query_that_sees_nothing(attend, tokens):
    q, k, v = (torch.randn(2, 3, tokens, 4, requires_grad=True) for _ in range(3))
    out = attend(q, k, v, causal() & padding(torch.arange(tokens) >= torch.tensor([[0], [3]])))
    assert (out[1, :, :3] == 0).all()
    assert (out[1, :, 3:] != 0).all()
    for side, gradient in zip("qkv", gradients(out, (q, k, v)), strict=True):
        assert torch.isfinite(gradient).all()
        assert (gradient[1, :, :3] == 0).all(), side


@pytest.mark.parametrize("mask", [sliding(2), dilated(2, 2), sliding(2) & causal()])
def test_a_window_beyond_the_last_key_shows_nothing(mask):
    """Only a square surely has a key near each query: with fewer keys than queries the last ones gave NaN."""
    q, k, v = torch.randn(1, 2, 12, 4, requires_grad=True), torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)
    seeing = mask.matrix(12, 3)[0].any(-1)
    assert not seeing.all()
    for out in (attention(q, k, v, mask), attention_formula(q, k, v, mask).out):
        assert (out[:, :, ~seeing] == 0).all()
        assert (out[:, :, seeing] != 0).all()
        (gradient,) = torch.autograd.grad(out.sum(), q)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("tokens", [5, 131])
def test_a_tensor_is_a_bias_and_the_scale_can_be_stated(tokens):
    q, k, v = (torch.randn(2, 4, tokens, 6, dtype=torch.float64) for _ in range(3))
    for shape in ((tokens, tokens), (1, tokens), (4, 1, tokens), (2, 1, tokens, 1), (2, 4, tokens, tokens)):
        bias = torch.randn(shape, dtype=torch.float64)
        theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(2, 4, tokens, tokens), scale=0.3)
        close(attention(q, k, v, bias=bias, scale=0.3), theirs)
        close(attention_formula(q, k, v, bias=bias, scale=0.3).out, theirs)


@pytest.mark.parametrize("tokens", [6, 140])
@pytest.mark.parametrize("kind", ["alibi", "buckets", "shaw"])
def test_relations_in_the_kernel_are_relations_in_the_formula(kind, tokens):
    relation = {
        "alibi": Alibi(4),
        "buckets": Buckets(4, buckets=8, furthest=20, both_sides=True),
        "shaw": Shaw(key_width=5, value_width=3, furthest=4),
    }[kind].double()
    q, k, v = (torch.randn(2, 4, tokens, width, dtype=torch.float64, requires_grad=True) for width in (5, 5, 3))
    sides = [q, k, v, *relation.parameters()]
    for mask in (full(), causal() & padding([tokens, tokens // 2])):
        fast, plain = attention(q, k, v, mask, bias=relation), attention_formula(q, k, v, mask, bias=relation).out
        close(fast, plain, 1e-7)  # ALiBi's slopes and torch's kernel are float32 somewhere on the way
        for one, other in zip(gradients(fast, sides), gradients(plain, sides), strict=True):
            close(one, other, 1e-6)


def test_dropout_keeps_the_mean_and_only_drops_weights():
    """With the identity as values the output is the weights: each is 0, or 1/(1-p) times what it was."""
    q, k = torch.randn(8, 4, 20, 16), torch.randn(8, 4, 20, 16)
    v = torch.eye(20).expand(8, 4, 20, 20)
    weights = attention_formula(q, k, v).weights
    for attend in (attention, lambda *given, **more: attention_formula(*given, **more).out):
        dropped = attend(q, k, v, dropout=0.25)
        kept = dropped != 0
        assert abs(float(kept.float().mean()) - 0.75) < 0.02
        assert torch.allclose(dropped[kept], weights[kept] / 0.75, rtol=1e-5)
    assert torch.equal(attention_formula(q, k, v, dropout=0.25).weights, weights), "a trace shows them undropped"


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (((2, 4, 5), (2, 4, 5), (2, 4, 5)), r"queries \(2, 4, 5\).*each must be \(batch, heads, length, width\)"),
        (((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 6, 4)), r"keys \(1, 2, 5, 4\), values \(1, 2, 6, 4\).*must agree"),
        (((1, 2, 3, 4), (1, 2, 5, 3), (1, 2, 5, 3)), "key width must agree"),
        (((2, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)), "batch, .* must agree"),
        (((1, 3, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)), "3 query heads cannot share 2 key heads evenly"),
    ],
)
@pytest.mark.parametrize("attend", [attention, attention_formula])
def test_shapes_that_do_not_fit_are_refused(attend, shapes, said):
    with pytest.raises(InputError, match=said):
        attend(*map(torch.randn, shapes))


def test_a_bias_that_is_too_small_is_refused():
    sides = [torch.randn(1, 2, 5, 4) for _ in range(3)]
    with pytest.raises(InputError, match=r"bias of shape \(1, 1, 4, 5\): it has 4 queries, but 5 are attended"):
        attention(*sides, bias=torch.zeros(4, 5))


@pytest.mark.parametrize("tokens", [7, 140])
def test_scores_of_any_size_give_weights(tokens):
    """A softmax that does not take the largest score off first overflows here."""
    q, k, v = (torch.randn(1, 2, tokens, 8) for _ in range(3))
    assert torch.isfinite(attention(q * 1e4, k * 1e4, v, causal())).all()
    assert torch.isfinite(attention_formula(q * 1e4, k * 1e4, v, causal()).weights).all()
