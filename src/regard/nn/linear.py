"""Linear maps as a processor does them best: bias and ReLU in the product's own pass.

torch adds the bias before the product and the ReLU in a pass of its own; for a bf16 map on a processor that was a tenth
of a training step. oneDNN, which torch carries, takes both along. What it computes is the same to the last digit.

Shapes: N rows, I inputs, O outputs.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def linear(x: Tensor, weight_OI: Tensor, bias_O: Tensor | None, *, relu: bool = False) -> Tensor:
    """x W^T + b, and of that what is above zero if `relu`."""
    if bias_O is None or not _has_one_pass(x):
        y = F.linear(x, weight_OI, bias_O)
        return y.relu() if relu else y
    y_NO: Tensor = _OnePass.apply(x.flatten(0, -2), weight_OI, bias_O, relu)  # type: ignore[no-untyped-call]
    return y_NO.view(*x.shape[:-1], weight_OI.shape[0])


def _has_one_pass(x: Tensor) -> bool:
    """Whether torch's build has oneDNN's product for such numbers. In float32 torch's own is as fast."""
    return x.device.type == "cpu" and x.dtype == torch.bfloat16 and torch.backends.mkldnn.is_available()


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor, relu: bool) -> Tensor:
        last = "relu" if relu else "none"
        y_NO: Tensor = torch.ops.mkldnn._linear_pointwise(x_NI, weight_OI, bias_O, last, [], "")
        ctx.save_for_backward(x_NI, weight_OI, y_NO if relu else None)
        return y_NO

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        x_NI, weight_OI, y_NO = ctx.saved_tensors
        g_NO = gradients[0]
        if y_NO is not None:
            g_NO = torch.ops.aten.threshold_backward(g_NO, y_NO, 0)
        x_wanted, weight_wanted, bias_wanted, _ = ctx.needs_input_grad
        return (
            g_NO @ weight_OI if x_wanted else None,
            g_NO.T @ x_NI if weight_wanted else None,
            g_NO.sum(0) if bias_wanted else None,
            None,
        )
