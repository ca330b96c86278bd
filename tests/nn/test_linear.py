"""A linear map in one pass is torch's own map, then its ReLU, gradients included."""

import pytest
import torch
import torch.nn.functional as F

from regard.nn.linear import linear


def both(x, weight, bias, *, relu):
    """Output and gradients of ours, and of torch's."""
    found = []
    for ours in (True, False):
        leaves = [leaf.clone().requires_grad_() for leaf in (x, weight, bias)]
        if ours:
            y = linear(*leaves, relu=relu)
        else:
            y = F.linear(*leaves)
            y = F.relu(y) if relu else y
        (y * torch.arange(y.shape[-1], dtype=y.dtype).cos()).sum().backward()
        found.append([y.detach(), *(leaf.grad for leaf in leaves)])
    return found


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (0, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_torchs_map(relu, shape, dtype):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(*shape, 24, generator=generator).to(dtype)
    weight, bias = (torch.randn(*size, generator=generator).to(dtype) for size in ((40, 24), (40,)))
    ours, theirs = both(x, weight, bias, relu=relu)
    for mine, its in zip(ours, theirs, strict=True):
        assert mine.dtype == dtype
        # bf16 keeps eight bits: sums of some twenty numbers in another order differ in the last
        torch.testing.assert_close(mine, its, rtol=0.02 if dtype == torch.bfloat16 else 1e-5, atol=1e-5)


def test_without_a_bias():
    x, weight = torch.randn(3, 4, dtype=torch.bfloat16), torch.randn(5, 4, dtype=torch.bfloat16)
    assert torch.equal(linear(x, weight, None), F.linear(x, weight))
