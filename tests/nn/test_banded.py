"""Attention in bands: equal to the whole matrix in every composition, and never as large as it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from regard.nn import (
    Alibi,
    Buckets,
    Shaw,
    Trace,
    attention,
    attention_formula,
    causal,
    dilated,
    global_sliding,
    matrix,
    padding,
    sliding,
)

EVERY = settings(derandomize=True, deadline=None, max_examples=40)


class Largest(TorchDispatchMode):
    """Keeps the number of elements of the largest tensor that any operation gives."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        out = operation(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return out


@st.composite
def windows(draw, tokens):
    window = draw(st.integers(1, 20))
    match draw(st.sampled_from(["sliding", "dilated", "global"])):
        case "sliding":
            return sliding(window)
        case "dilated":
            return dilated(min(window, 6), draw(st.integers(1, 5)))
        case _:
            return global_sliding(window, draw(st.lists(st.integers(0, tokens + 3), max_size=4)))


def relation_of(kind):
    match kind:
        case "alibi":
            return Alibi(4)
        case "buckets":
            return Buckets(4, buckets=8, furthest=12, both_sides=True).double()
        case "shaw":
            return Shaw(key_width=3, value_width=5, furthest=4).double()
        case _:
            return None


def compare(tokens, mask, kind, seed, batch=2, key_heads=4):
    """Output and all gradients against the twin, in float64."""
    relation = relation_of(kind)
    numbers = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(batch, heads, tokens, width, generator=numbers, dtype=torch.float64, requires_grad=True)
               for heads, width in ((4, 3), (key_heads, 3), (key_heads, 5)))  # fmt: skip
    learned = list(relation.parameters()) if relation is not None else []
    upstream = torch.randn(batch, 4, tokens, 5, generator=numbers, dtype=torch.float64)
    sides, fast = [q, k, v, *learned], attention(q, k, v, mask, bias=relation)
    plain = attention_formula(q, k, v, mask, bias=relation).out
    pairs = zip(
        [fast, *torch.autograd.grad(fast, sides, upstream)], [plain, *torch.autograd.grad(plain, sides, upstream)],
        strict=True,
    )  # fmt: skip
    bound = 1e-6 if kind in ("alibi", "buckets") else 1e-10  # ALiBi is float32 by itself
    for one, other in pairs:
        assert torch.isfinite(one).all()
        assert float((one - other).detach().abs().max()) <= bound * max(1.0, float(other.detach().abs().max()))


@EVERY
@given(st.data())
def test_band_is_formula_gradients_included(data):
    tokens = data.draw(st.integers(129, 420))
    mask = data.draw(windows(tokens))
    if data.draw(st.booleans()):
        mask = mask & causal()
    seed = data.draw(st.integers(0, 999))
    numbers = torch.Generator().manual_seed(seed)
    match data.draw(st.sampled_from(["no padding", "lengths", "holes", "graph"])):
        case "lengths":
            mask = padding(torch.randint(0, tokens + 1, (2,), generator=numbers)) & mask
        case "holes":
            mask = mask & padding(torch.rand(2, tokens, generator=numbers) < 0.7)
        case "graph":
            mask = mask & matrix(torch.rand(tokens, tokens, generator=numbers) < 0.5)
    kind = data.draw(st.sampled_from(["none", "none", "alibi", "buckets", "shaw"]))
    compare(tokens, mask, kind, seed, key_heads=data.draw(st.sampled_from([1, 2, 4])))


@pytest.mark.parametrize("tokens", [191, 192, 193, 255, 256, 257, 384])
@pytest.mark.parametrize("mask", [sliding(1), dilated(1, 2), global_sliding(3, (0, 100, 190)) & causal()])
def test_lengths_around_whole_blocks(tokens, mask):
    compare(tokens, mask, "none", tokens)


@pytest.mark.parametrize("kind", ["none", "alibi", "buckets", "shaw"])
@pytest.mark.parametrize("window", [64, 70, 130])
def test_windows_as_wide_as_a_block_and_wider(window, kind):
    compare(450, sliding(window) & causal(), kind, window, batch=1)
    compare(450, global_sliding(window, (449,)), kind, window, batch=1)


@pytest.mark.parametrize("first", [0, 1])
def test_rows_of_a_batch_keep_their_padding(first):
    """Each block is a row of an inner batch: rows that get one another's padding would show here."""
    q, k, v = (torch.randn(3, 2, 300, 4, dtype=torch.float64) for _ in range(3))
    lengths = torch.tensor([300, 40, 150]).roll(first)
    together = attention(q, k, v, sliding(5) & padding(lengths))
    for row in range(3):
        length = int(lengths[row])
        alone = attention_formula(*(side[row : row + 1, :, :length] for side in (q, k, v)), sliding(5)).out
        assert float((together[row, :, :length] - alone[0]).abs().max()) < 1e-12


MASKS = {
    "sliding": sliding(32),
    "sliding and causal": sliding(32) & causal(),
    "dilated": dilated(32, 4),
    "dilated and causal": dilated(32, 4) & causal(),
    "global": global_sliding(32, (0, 4000, 8000)),
    "global and causal": global_sliding(32, (0, 4000, 8000)) & causal(),
    "sliding and padding": sliding(32) & padding([5000]),
}


@pytest.mark.parametrize("kind", ["none", "alibi", "shaw"])
@pytest.mark.parametrize("name", MASKS)
def test_no_tensor_of_8192_tokens_is_as_large_as_their_square(name, kind):
    """Forward and backward; the largest tensor also only doubles when the length does."""
    relation = relation_of(kind)
    relation = relation.float() if relation is not None else None
    largest = []
    for tokens in (8192, 16_384) if kind == "none" else (8192,):
        q, k, v = (torch.randn(1, 4, tokens, width, requires_grad=True) for width in (3, 3, 5))
        with Largest() as seen:
            attention(q, k, v, MASKS[name], bias=relation).sum().backward()
        assert seen.elements < tokens * tokens / 8
        largest.append(seen.elements)
    assert largest[-1] <= 2.2 * largest[0]


def test_the_recorder_sees_the_square_where_there_is_one():
    q, k, v = (torch.randn(1, 1, 700, 4, requires_grad=True) for _ in range(3))
    with Largest() as seen:
        attention_formula(q, k, v, sliding(4)).out.sum().backward()
    assert seen.elements >= 700 * 700


def test_a_trace_of_a_few_rows_stays_small():
    """Looking at two rows of a long text costs two rows."""
    from regard.config import ModelConfig
    from regard.models import EncoderOnly

    config = ModelConfig(family="encoder-only", vocabulary=9, d_model=8, heads=2, d_ff=8, encoder_layers=1,
                         attention="sliding", window=16, max_length=4096)  # fmt: skip
    model = EncoderOnly(config).eval()
    trace = Trace(rows=(7, 4000))
    with torch.no_grad(), Largest() as seen:
        model(torch.randint(9, (1, 4096)), torch.tensor([4096]), trace=trace)
    assert seen.elements < 4096 * 4096 / 8
    assert trace["encoder.self.0.weights"].shape == (1, 2, 2, 4096)


def test_a_band_drops_weights_as_the_whole_matrix_does():
    """With the identity as values the output is the weights: each is 0, or 1/(1-p) times what it was."""
    q, k = torch.randn(1, 2, 160, 8), torch.randn(1, 2, 160, 8)
    v = torch.eye(160).expand(1, 2, 160, 160)
    weights = attention_formula(q, k, v, sliding(6)).weights
    dropped = attention(q, k, v, sliding(6), dropout=0.5)
    kept, seen = dropped != 0, weights != 0
    assert not (kept & ~seen).any()
    assert abs(float(kept[seen].float().mean()) - 0.5) < 0.05
    assert torch.allclose(dropped[kept], weights[kept] * 2, rtol=1e-4)
