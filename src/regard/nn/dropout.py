"""Dropout, and the residual sum with dropout in one pass.

On a processor torch draws each element's fate by itself, and that was a tenth of a training step. Here eight elements
share a 64-bit draw, a byte each. A byte knows only 256 probabilities, so the threshold is drawn between the two
nearest for each mask: over masks an element is dropped with the probability asked for, to the last digit, and what is
kept is scaled by 1/(1-p), as ever. In bf16 there is a compiled pass, `fused_drop`, which keeps no mask at all.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.nn.fused import fits, fused_drop


def dropout(x: Tensor, probability: float, *, training: bool) -> Tensor:
    """x with a share of its elements at zero and the rest scaled by 1/(1-p); in use, x itself."""
    if not training or probability == 0.0:
        return x
    if fits(x, lanes=False):
        return fused_drop(None, x, probability)
    return x * keep_mask(x, probability) if x.device.type == "cpu" else F.dropout(x, probability)


def add_dropped(x: Tensor, h: Tensor, probability: float, *, training: bool) -> Tensor:
    """x + dropout(h): the residual sum."""
    if not training or probability == 0.0:
        return x + h
    if fits(h, lanes=False) and x.shape == h.shape and x.dtype == h.dtype:
        return fused_drop(x, h, probability)
    if x.device.type != "cpu":
        return x + F.dropout(h, probability)
    total: Tensor = _AddDropped.apply(x, h, keep_mask(h, probability))  # type: ignore[no-untyped-call]
    return total


def keep_mask(like: Tensor, probability: float) -> Tensor:
    """0 with the probability, else 1/(1-p), in the shape and type of `like`; from torch's own generator."""
    draws = torch.empty(-(-like.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
    share = probability * 256
    threshold = math.floor(share) + (float(torch.rand(())) < share % 1)
    kept = draws.view(torch.uint8)[: like.numel()].view(like.shape).ge_(threshold)  # in bytes: bools convert slowly
    return kept.to(like.dtype).mul_(1 / (1 - probability))


class _AddDropped(torch.autograd.Function):
    """x + h * mask; the residual's gradient passes as it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, h: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        return torch.addcmul(x, h, mask)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (mask,) = ctx.saved_tensors
        return gradients[0], gradients[0] * mask, None
