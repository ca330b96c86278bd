"""The loss that never holds all logits is torch's on all of them, gradients included."""

import pytest
import torch
import torch.nn.functional as F

from regard.nn import loss
from regard.nn.loss import cross_entropy, cross_entropy_formula


def given(tokens=23, width=12, pieces=17, *, bias=True, dtype=torch.float32):
    draw = torch.Generator().manual_seed(6)
    states, weight = torch.randn(tokens, width, generator=draw), torch.randn(pieces, width, generator=draw)
    vector = torch.randn(pieces, generator=draw) if bias else None
    targets = torch.randint(pieces, (tokens,), generator=draw)
    leaves = [None if t is None else t.to(dtype).requires_grad_() for t in (states, weight, vector)]
    return leaves[0], targets, leaves[1], leaves[2]


def torchs(states, targets, weight, bias, smoothing):
    """Torch's own in float64, and what it gives back."""
    leaves = [None if t is None else t.detach().double().requires_grad_() for t in (states, weight, bias)]
    logits = F.linear(*leaves)
    total = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    (total * 0.25).backward()
    plain = F.cross_entropy(logits, targets, reduction="sum")
    return total, plain, [None if leaf is None else leaf.grad for leaf in leaves]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("rows", [1, 5, 23, 1000])
def test_it_is_torchs(bias, smoothing, rows, monkeypatch):
    """Also in slices of few rows, the last of them shorter; scaled on the way back, as a mean over tokens is."""
    monkeypatch.setattr(loss, "SLICE", rows * 17)
    states, targets, weight, vector = given(bias=bias)
    total, plain, gradients = torchs(states, targets, weight, vector, smoothing)
    found, shown = cross_entropy(states, targets, weight, vector, smoothing=smoothing)
    assert not shown.requires_grad
    (found * 0.25).backward()
    torch.testing.assert_close(found.double(), total, rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(shown.double(), plain, rtol=1e-6, atol=1e-5)
    for leaf, expected in zip((states, weight, vector), gradients, strict=True):
        if leaf is not None:
            torch.testing.assert_close(leaf.grad.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_plain_twin_is_torchs(smoothing):
    states, targets, weight, vector = given()
    total, plain, gradients = torchs(states, targets, weight, vector, smoothing)
    found, shown = cross_entropy_formula(states, targets, weight, vector, smoothing=smoothing)
    (found * 0.25).backward()
    torch.testing.assert_close(found.double(), total, rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(shown.double(), plain, rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(weight.grad.double(), gradients[1], rtol=1e-5, atol=1e-6)


def test_slices_change_nothing(monkeypatch):
    results = []
    for rows in (2, 1000):
        monkeypatch.setattr(loss, "SLICE", rows * 17)
        states, targets, weight, vector = given()
        found, _ = cross_entropy(states, targets, weight, vector, smoothing=0.1)
        found.backward()
        results.append([found.detach(), states.grad, weight.grad, vector.grad])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_without_gradients_it_is_the_same():
    states, targets, weight, vector = given()
    expected = cross_entropy(states, targets, weight, vector, smoothing=0.1)
    with torch.no_grad():
        found = cross_entropy(states, targets, weight, vector, smoothing=0.1)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_large_logits_do_not_overflow():
    states, targets, weight, vector = given()
    total, plain = cross_entropy(states.detach() * 100, targets, weight.detach() * 100, vector.detach(), smoothing=0.1)
    expected, shown, _ = torchs(states * 100, targets, weight * 100, vector, 0.1)
    torch.testing.assert_close(total.double(), expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(plain.double(), shown, rtol=1e-5, atol=0)


def test_in_bf16_it_is_as_near_as_its_digits():
    states, targets, weight, vector = given(dtype=torch.bfloat16)
    total, _, gradients = torchs(states, targets, weight, vector, 0.1)
    found, _ = cross_entropy(states, targets, weight, vector, smoothing=0.1)
    assert found.dtype == torch.float32
    (found * 0.25).backward()
    torch.testing.assert_close(found.double(), total, rtol=1e-2, atol=0)
    for leaf, expected in zip((states, weight, vector), gradients, strict=True):
        assert leaf.grad.dtype == torch.bfloat16
        torch.testing.assert_close(leaf.grad.double(), expected, rtol=2e-2, atol=4e-2)


def test_no_tokens_cost_nothing():
    states, targets, weight, vector = given(tokens=0)
    total, plain = cross_entropy(states, targets, weight, vector, smoothing=0.1)
    total.backward()
    assert (float(total.detach()), float(plain)) == (0.0, 0.0)
    assert not weight.grad.any()
    assert not vector.grad.any()
