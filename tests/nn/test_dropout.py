"""Dropout drops the share that was asked for and keeps the mean; in use it is not there."""

import math

import pytest
import torch

from regard.nn.dropout import add_dropped, dropout, keep_mask


@pytest.mark.parametrize("probability", [0.1, 0.25, 1 / 3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_rate_and_the_scale(probability, dtype):
    """Over many masks, since a byte's threshold is drawn anew for each; within five standard errors."""
    masks, size = 400, 1003
    kept = torch.stack([keep_mask(torch.empty(17, 59, dtype=dtype), probability) for _ in range(masks)])
    assert kept.dtype == dtype
    scale = torch.tensor(1 / (1 - probability), dtype=dtype)
    assert set(kept.unique().tolist()) == {0.0, float(scale)}
    dropped = float((kept == 0).double().mean())
    error = math.sqrt(probability * (1 - probability) / (masks * size) + (1 / 512) ** 2 / masks)
    assert abs(dropped - probability) < 5 * error


def test_each_place_has_the_same_rate():
    """No place of the eight that share a draw is dropped more often than the others."""
    kept = torch.stack([keep_mask(torch.empty(16), 0.3) for _ in range(4000)]) > 0
    rates = kept.double().mean(0)
    assert float((rates - 0.7).abs().max()) < 5 * math.sqrt(0.21 / 4000)
    pairs = torch.corrcoef(kept.double().T) - torch.eye(16)
    assert float(pairs.abs().max()) < 5 / math.sqrt(4000)


def test_a_seed_is_a_mask():
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(keep_mask(torch.empty(50), 0.5))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


@pytest.mark.parametrize("probability", [0.0, 0.4])
def test_in_use_it_is_not_there(probability):
    x, h = torch.randn(3, 4), torch.randn(3, 4)
    state = torch.get_rng_state()
    assert dropout(x, probability, training=False) is x
    assert torch.equal(add_dropped(x, h, probability, training=False), x + h)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_probability_of_nothing_is_identity_in_training_too():
    x, h = torch.randn(3, 4), torch.randn(3, 4)
    assert dropout(x, 0.0, training=True) is x
    assert torch.equal(add_dropped(x, h, 0.0, training=True), x + h)


def test_the_residual_sum_and_its_gradients():
    x, h = torch.randn(5, 7, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    torch.manual_seed(8)
    total = add_dropped(x, h, 0.4, training=True)
    torch.manual_seed(8)
    mask = keep_mask(h, 0.4)
    torch.testing.assert_close(total, x + h * mask)
    back = torch.randn(5, 7)
    total.backward(back)
    assert torch.equal(x.grad, back)
    assert torch.equal(h.grad, back * mask)
    torch.manual_seed(8)
    y = h.detach().clone().requires_grad_()
    out = dropout(y, 0.4, training=True)
    assert torch.equal(out, y * mask)
    out.backward(back)
    assert torch.equal(y.grad, back * mask)
