"""R-Drop's divergence against torch's own, gradients included, and a slice of the logits at a time."""

import pytest
import torch
import torch.nn.functional as F

import regard.nn.consistency
from regard.nn.consistency import divergence, divergence_formula


def drawn(bias=True):
    torch.manual_seed(2)
    return [torch.randn(9, 6, requires_grad=True), torch.randn(9, 6, requires_grad=True),
            torch.randn(13, 6, requires_grad=True), torch.randn(13, requires_grad=True) if bias else None]  # fmt: skip


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_against_torch(bias, rows, monkeypatch):
    monkeypatch.setattr(regard.nn.consistency, "SLICE", 2 * 13 * rows)
    given = drawn(bias)
    p, q = (F.linear(states, *given[2:]).log_softmax(-1) for states in given[:2])
    expected = F.kl_div(q, p, reduction="sum", log_target=True) + F.kl_div(p, q, reduction="sum", log_target=True)
    leaves = [one for one in given if one is not None]
    theirs = torch.autograd.grad(expected, leaves)
    for way in (divergence, divergence_formula):
        found = way(*given)
        assert torch.allclose(found, expected, rtol=1e-5)
        for ours, its in zip(torch.autograd.grad(found, leaves), theirs, strict=True):
            assert torch.allclose(ours, its, atol=1e-4)


def test_two_that_agree_are_no_distance_apart():
    states, _, weight, bias = drawn()
    assert float(divergence(states, states, weight, bias).detach()) == 0
    assert float(divergence(states[:0], states[:0], weight, bias).detach()) == 0
