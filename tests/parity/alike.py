"""What the comparisons share: weights that no test is blind to, ragged input, and what counts as equal."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

BOUND = 1e-5
"""Largest difference, in float32, of values near 1; of larger ones, as a share."""


@torch.no_grad()
def scatter(model: nn.Module) -> nn.Module:
    """Random values for every weight that is learned: fresh biases are 0 and norms 1, and would hide mistakes."""
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        if parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
        else:
            parameter.normal_(std=parameter.shape[-1] ** -0.5)
    return model.eval()


def ids(vocabulary: int, lengths: Tensor, *, first: int = 3) -> Tensor:
    """Random pieces, (B, longest); those from 0 to `first` - 1 are special to somebody, and stay out."""
    return torch.randint(first, vocabulary, (len(lengths), int(lengths.max())))


def real(lengths: Tensor, *, width: int | None = None) -> Tensor:
    """(B, longest) true where a token is real: rows are filled up behind their end."""
    return torch.arange(int(lengths.max()) if width is None else width) < lengths[:, None]


def agree(ours: Tensor, theirs: Tensor) -> None:
    """Equal to the bound; and large enough for the bound to mean something."""
    assert float(theirs.detach().abs().max()) > 0.1, f"values no larger than {float(theirs.abs().max())}: a weak test"
    torch.testing.assert_close(ours.detach(), theirs.detach(), atol=BOUND, rtol=BOUND)


def gradients_agree(ours: nn.Module, theirs: Mapping[str, Tensor]) -> None:
    """Every weight's gradient equal to the bound, taken as a share of the largest in its tensor."""
    own = {name: parameter.grad for name, parameter in ours.named_parameters()}
    assert own.keys() == theirs.keys()
    for name, gradient in own.items():
        assert gradient is not None, name
        largest = float(theirs[name].abs().max())
        assert largest > 0.01, f"{name}: gradients no larger than {largest}: a weak test"
        difference = float((gradient - theirs[name]).abs().max())
        assert difference <= BOUND * largest, f"{name}: differs by {difference}, the largest being {largest}"
