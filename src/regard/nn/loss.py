"""Cross-entropy from states to pieces, label-smoothed, holding only a slice of the logits at a time.

The loss against a target t smoothed by ε over V pieces is  lse(x) - (1-ε) x_t - ε mean(x),  and its gradient
p - (1-ε) onehot(t) - ε/V.  With x = W h the smooth part needs no pass over the logits: mean(x) = h · mean(W), and ε/V
adds one and the same vector to every row's gradient. So a slice is touched twice, by the product and by the softmax,
and the gradients of states and weights are made from it at once, in the forward pass; backward only hands them out.

Shapes: N tokens, C tokens of a slice, D d_model, V pieces.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.nn.fused import fits, softmax_in_place

SLICE = 1 << 23
"""logits held at once: 16 MB in bf16, which a processor's last cache may hold"""


def cross_entropy(
    states_ND: Tensor, targets_N: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None, *, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The smoothed loss summed over all tokens, for learning; and the plain -log p of the targets, for showing."""
    total, plain = _CrossEntropy.apply(states_ND, targets_N, weight_VD, bias_V, smoothing)  # type: ignore[no-untyped-call]
    return total, plain


def cross_entropy_formula(
    states_ND: Tensor, targets_N: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None, *, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The plain twin: torch's own, on all logits."""
    logits = F.linear(states_ND, weight_VD, bias_V).float()
    return (
        F.cross_entropy(logits, targets_N, label_smoothing=smoothing, reduction="sum"),
        F.cross_entropy(logits, targets_N, reduction="sum"),
    )


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, targets: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        learns = any(ctx.needs_input_grad)
        pieces = weight.shape[0]
        mean_weight = weight.float().mean(0) if smoothing else None
        mean_bias = 0.0 if bias is None else bias.float().mean()
        total = states.new_zeros((), dtype=torch.float32)
        plain = total.clone()
        d_states = torch.empty_like(states) if learns else None
        d_weight = torch.zeros_like(weight, dtype=torch.float32) if learns else None
        d_bias = torch.zeros(pieces, device=weight.device) if learns and bias is not None else None
        rows = max(1, SLICE // pieces)
        for start in range(0, states.shape[0], rows):
            h, t = states[start : start + rows], targets[start : start + rows, None]
            logits = F.linear(h, weight, bias)
            right = logits.gather(1, t).float()
            p, lse = _softmax(logits)
            plain += (lse - right).sum()
            if mean_weight is not None:
                total += smoothing * (right[:, 0] - h.float() @ mean_weight - mean_bias).sum()
            if d_states is None or d_weight is None:
                continue
            p.scatter_add_(1, t, p.new_full(t.shape, smoothing - 1))
            ahead = p @ weight
            d_states[start : start + rows] = ahead if mean_weight is None else ahead.float() - smoothing * mean_weight
            d_weight += p.T @ h
            if d_bias is not None:
                d_bias += p.float().sum(0)
        total += plain
        if smoothing and d_weight is not None:
            d_weight -= (smoothing / pieces) * states.float().sum(0)
        if smoothing and d_bias is not None:
            d_bias -= smoothing * states.shape[0] / pieces
        ctx.save_for_backward(d_states, d_weight, d_bias)
        ctx.dtypes = weight.dtype, None if bias is None else bias.dtype
        ctx.mark_non_differentiable(plain)
        return total, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, Tensor | None, Tensor | None, None]:
        d_states, d_weight, d_bias = ctx.saved_tensors
        gradient, (kind, bias_kind) = gradients[0], ctx.dtypes
        return (
            d_states * gradient.to(d_states.dtype),
            None,
            (d_weight * gradient).to(kind),
            None if d_bias is None else (d_bias * gradient).to(bias_kind),
            None,
        )


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities, and the log of each row's sum of exponentials; what is given may be overwritten."""
    if fits(logits, lanes=False):
        return logits, softmax_in_place(logits)
    p = logits.softmax(-1)
    return p, logits.amax(-1, keepdim=True).float() - p.amax(-1, keepdim=True).float().log()
