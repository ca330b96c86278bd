"""A counter that stands by while a model runs: operations of its matrix products, fused attention included.

It works on real tensors and on those that only pretend, whose shapes are all that it needs.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Counter(TorchDispatchMode):
    """Counts what runs within it.

    A fused kernel's backward is counted as the four products that the gradients need. To save memory it computes the
    scores once more; that fifth product is in `recomputed` and not in `flops`.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0
        self.recomputed = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Count one operation, and let it run."""
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in PRODUCTS:
            self.flops += PRODUCTS[packet](*args)
        elif packet in FUSED:
            self.flops += _fused(*args[:3])
        elif packet in FUSED_BACKWARD:
            query, key, value = args[1:4]  # behind the gradient of the output
            self.flops += 2 * _fused(query, key, value)
            self.recomputed += 2 * query.numel() * key.shape[-2]
        elif func.name() in NAMED:
            self.flops += NAMED[func.name()](*args)
        elif func.namespace == "aten":
            with self:  # under inference_mode, matmul and the like arrive whole
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        return func(*args, **kwargs)


def _product(a: Tensor, b: Tensor) -> int:
    """(…, m, k) by (…, k, n)."""
    return 2 * a.numel() * b.shape[-1]


def _fused(query: Tensor, key: Tensor, value: Tensor) -> int:
    """Two products a head: scores, and the mixing of the values."""
    rows = prod(query.shape[:-1])
    return 2 * rows * key.shape[-2] * (query.shape[-1] + value.shape[-1])


PRODUCTS: dict[Any, Callable[..., int]] = {
    aten.mm: lambda a, b, *_: _product(a, b),
    aten.bmm: lambda a, b, *_: _product(a, b),
    aten.addmm: lambda _, a, b, *__: _product(a, b),
    aten.baddbmm: lambda _, a, b, *__: _product(a, b),
    aten.linear: lambda a, w, *_: 2 * a.numel() * w.shape[0],
    aten.mv: lambda a, b, *_: 2 * a.numel(),
    aten.addmv: lambda _, a, b, *__: 2 * a.numel(),
    aten.dot: lambda a, b, *_: 2 * a.numel(),
}
"""Operations of each kind of product, from its arguments."""

FUSED = {
    aten._scaled_dot_product_flash_attention_for_cpu,
    aten._scaled_dot_product_flash_attention,
    aten._scaled_dot_product_efficient_attention,
    aten._scaled_dot_product_cudnn_attention,
}
"""Attention in one kernel, on processors and on accelerators."""

FUSED_BACKWARD = {
    aten._scaled_dot_product_flash_attention_for_cpu_backward,
    aten._scaled_dot_product_flash_attention_backward,
    aten._scaled_dot_product_efficient_attention_backward,
    aten._scaled_dot_product_cudnn_attention_backward,
}

NAMED: dict[str, Callable[..., int]] = {
    "mkldnn::_linear_pointwise": lambda x, w, *_: 2 * x.numel() * w.shape[0],
    "regard::attend": lambda q, k, v, *_: _fused(q, k, v),
    "regard::attend_back": lambda q, k, v, *_: 2 * _fused(q, k, v),
}
"""Operations that exist on some machines only, by name; our own attention keeps its weights and computes none again."""
