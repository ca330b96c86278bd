"""What a bf16 training step on a processor does in one pass where torch takes many: `fused.c`, called through ctypes.

Attention of short sequences, the two norms, GELU, dropout and the softmax of the loss were a third of a step of preset
`tiny`. Each has its plain twin in torch, beside the caller; where the processor has no bf16 instructions, where there
is no C compiler, or with `REGARD_KERNEL=off`, the twin is what runs.

Shapes: B batch, H heads, G key heads, T queries, S keys, K d_k, V d_v, N rows, D width.
"""

import ctypes
import functools
import math
from ctypes import POINTER, Structure, byref, c_float, c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.nn.compiler import VECTORS, compiled

SOURCES = (Path(__file__).with_name("fused.c"), VECTORS)
LANES = 16
LONGEST = 512
"""queries or keys up to which attention is faster so than by torch's kernel"""


class _Side(Structure):
    _fields_ = (("at", c_void_p), ("row", c_int64), ("head", c_int64), ("token", c_int64))


class _Attention(Structure):
    _fields_ = (
        *((name, _Side) for name in ("q", "k", "v", "out", "dq", "dk", "dv")),
        *((name, c_void_p) for name in ("weights", "added", "blind")),
        *((name, c_int64) for name in ("added_row", "blind_row")),
        *((name, c_int32) for name in ("rows", "heads", "key_heads", "queries", "keys", "key_width", "value_width")),
        ("causal", c_int32), ("threads", c_int32), ("scale", c_float),
    )  # fmt: skip


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled library; none where it cannot be had or the processor has no bf16 instructions."""
    made = compiled("fused", SOURCES, "-fopenmp") or compiled("fused", SOURCES)
    if made is None or not made.regard_fused():
        return None
    for name, kinds in (
        ("attend", (POINTER(_Attention),)),
        ("attend_back", (POINTER(_Attention),)),
        ("norm", (*(c_void_p,) * 5, c_int64, c_int32, c_float, c_int32)),
        ("norm_back", (*(c_void_p,) * 6, c_int64, *(c_int32,) * 3)),
        ("gelu", (*(c_void_p,) * 3, c_int64, c_int32)),
        ("drop", (*(c_void_p,) * 3, *(c_int64,) * 2, c_int32, c_float, c_int32)),
        ("softmax", (*(c_void_p,) * 2, c_int64, *(c_int32,) * 2)),
    ):
        call = getattr(made, f"regard_{name}")
        call.argtypes, call.restype = kinds, None
    return made


@functools.cache
def _registered() -> tuple[torch.library.Library, Any]:
    """The calls as operations of torch, each writing into its last tensors; they last as long as the first of the two.

    So a counter that stands by sees them, and tensors that only pretend to hold numbers go through untouched.
    """
    made = library()
    assert made is not None
    registry = torch.library.Library("regard", "DEF")
    for name, given, written, run in (
        ("attend", "Tensor q, Tensor k, Tensor v, Tensor? added, Tensor? blind, float scale, bool causal",
         "Tensor(a!) out, Tensor(b!) weights", _run_attend),
        ("attend_back", "Tensor q, Tensor k, Tensor v, Tensor weights, float scale, bool causal, Tensor g",
         "Tensor(a!) dq, Tensor(b!) dk, Tensor(c!) dv", _run_attend_back),
        ("norm", "Tensor x, Tensor gamma, Tensor? beta, float epsilon", "Tensor(a!) y, Tensor(b!) kept", _run_norm),
        ("norm_back", "Tensor x, Tensor gamma, bool centred, Tensor kept, Tensor g",
         "Tensor(a!) dx, Tensor(b!) d_weights", _run_norm_back),
        ("gelu", "Tensor x", "Tensor(a!) y, Tensor(b!)? slope", _run_gelu),
        ("drop", "Tensor? x, Tensor h, int seed, int threshold, float scale", "Tensor(a!) out", _run_drop),
        ("softmax", "", "Tensor(a!) x, Tensor(b!) told", _run_softmax),
    ):  # fmt: skip
        registry.define(f"{name}({given}{', ' if given else ''}{written}) -> ()")
        registry.impl(name, functools.partial(run, made), "CPU")
        registry.impl(name, lambda *given: None, "Meta")
    return registry, torch.ops.regard


def _operations() -> Any:
    return _registered()[1]


def fits(x: Tensor, *, lanes: bool = True) -> bool:
    """Whether these numbers can be handed over: bf16 on a processor, `lanes`: whole vectors of them in a row."""
    return (
        x.dtype == torch.bfloat16
        and x.device.type == "cpu"
        and not (lanes and x.shape[-1] % LANES)
        and x.numel() > 0
        and library() is not None
    )


def attention_fits(q_BHTK: Tensor, k_BGSK: Tensor, v_BGSV: Tensor) -> bool:
    """Whether `fused_attention` takes these."""
    short = max(q_BHTK.shape[2], k_BGSK.shape[2]) <= LONGEST
    return short and all(fits(side) for side in (q_BHTK, k_BGSK, v_BGSV))


def fused_attention(
    q_BHTK: Tensor, k_BGSK: Tensor, v_BGSV: Tensor, added: Tensor | None, blind: Tensor | None, scale: float, *,
    causal: bool = False,
) -> Tensor:  # fmt: skip
    """(B, H, T, V); `added` is the mask as numbers, rows that `blind` marks get zeros, `causal` needs neither."""
    out: Tensor = _FusedAttention.apply(q_BHTK, k_BGSK, v_BGSV, added, blind, scale, causal)  # type: ignore[no-untyped-call]
    return out


class _FusedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        added: Tensor | None,
        blind: Tensor | None,
        scale: float,
        causal: bool,
    ) -> Tensor:
        q, k, v = _in_words(q), _in_words(k), _in_words(v)
        B, H, T, _ = q.shape
        wide = -(-k.shape[2] // LANES) * LANES
        out, weights = q.new_empty(B, T, H, v.shape[3]).transpose(1, 2), q.new_empty(B, H, T, wide)
        _operations().attend(q, k, v, added, blind, scale, causal, out, weights)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale, ctx.causal = scale, causal
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None, None]:
        q, k, v, weights = ctx.saved_tensors
        dq, dk, dv = _together(q, k, v)
        _operations().attend_back(q, k, v, weights, ctx.scale, ctx.causal, _in_words(gradients[0]), dq, dk, dv)
        return dq, dk, dv, None, None, None, None


def _run_attend(
    made: ctypes.CDLL, q: Tensor, k: Tensor, v: Tensor, added: Tensor | None, blind: Tensor | None, scale: float,
    causal: bool, out: Tensor, weights: Tensor,
) -> None:  # fmt: skip
    made.regard_attend(byref(_call(q, k, v, out, weights, added, blind, scale, causal)))


def _run_attend_back(
    made: ctypes.CDLL, q: Tensor, k: Tensor, v: Tensor, weights: Tensor, scale: float, causal: bool, g: Tensor,
    dq: Tensor, dk: Tensor, dv: Tensor,
) -> None:  # fmt: skip
    call = _call(q, k, v, g, weights, None, None, scale, causal)
    call.dq, call.dk, call.dv = _side(dq), _side(dk), _side(dv)
    made.regard_attend_back(byref(call))


def _together(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Room for the gradients, side by side in memory as `Apart` gave the sides, so that it need not copy them."""
    B, H, T, K = q.shape
    if q.shape == k.shape == v.shape:
        dq, dk, dv = q.new_empty(B, T, 3, H, K).permute(2, 0, 3, 1, 4)
        return dq, dk, dv
    dq = q.new_empty(B, T, H, K).transpose(1, 2)
    if k.shape == v.shape:
        dk, dv = k.new_empty(B, k.shape[2], 2, k.shape[1], K).permute(2, 0, 3, 1, 4)
        return dq, dk, dv
    return (
        dq,
        torch.empty_like(k, memory_format=torch.contiguous_format),
        torch.empty_like(v, memory_format=torch.contiguous_format),
    )


def _call(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, weights: Tensor, added: Tensor | None, blind: Tensor | None,
    scale: float, causal: bool,
) -> _Attention:  # fmt: skip
    call = _Attention(
        q=_side(q), k=_side(k), v=_side(v), out=_side(out), weights=weights.data_ptr(), rows=q.shape[0],
        heads=q.shape[1], key_heads=k.shape[1], queries=q.shape[2], keys=k.shape[2], key_width=q.shape[3],
        value_width=v.shape[3], causal=causal, threads=torch.get_num_threads(), scale=scale,
    )  # fmt: skip
    for name, mask, width in (("added", added, k.shape[2]), ("blind", blind, 1)):
        if mask is None:
            continue
        assert mask.is_contiguous()
        assert mask.shape in ((1, 1, q.shape[2], width), (q.shape[0], 1, q.shape[2], width))
        setattr(call, name, mask.data_ptr())
        setattr(call, f"{name}_row", q.shape[2] * width if mask.shape[0] > 1 else 0)
    return call


def _side(x_BHTK: Tensor) -> _Side:
    row, head, token, _ = x_BHTK.stride()
    return _Side(at=x_BHTK.data_ptr(), row=row, head=head, token=token)


def _in_words(x_BHTK: Tensor) -> Tensor:
    """A tensor whose heads lie side by side in memory, in whole words of two numbers; copied if it is laid out else."""
    *others, last = x_BHTK.stride()
    return x_BHTK if last == 1 and not any(step % 2 for step in others) else x_BHTK.contiguous()


def apart(projected_BTN: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """Equal parts of a projection, such as queries, keys and values, each as (B, H, T, K), without a copy."""
    split: tuple[Tensor, ...] = _Apart.apply(projected_BTN.unflatten(-1, (parts, heads, -1)))  # type: ignore[no-untyped-call]
    return split


class _Apart(torch.autograd.Function):
    """Backward, gradients that lie side by side already are handed on as they lie."""

    @staticmethod
    def forward(ctx: Any, projected_BTPHK: Tensor) -> tuple[Tensor, ...]:
        return tuple(part.transpose(1, 2) for part in projected_BTPHK.unbind(2))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        first = gradients[0]
        B, H, T, K = first.shape
        step, every = H * K, H * K * len(gradients)
        side_by_side = all(
            part.stride() == (T * every, K, every, 1)
            and part.untyped_storage()._cdata == first.untyped_storage()._cdata
            and part.storage_offset() == first.storage_offset() + number * step
            for number, part in enumerate(gradients)
        )
        if side_by_side:
            return first.as_strided((B, T, len(gradients), H, K), (T * every, every, step, K, 1))
        return torch.stack([part.transpose(1, 2) for part in gradients], dim=2)


def fused_norm(x: Tensor, gamma: Tensor, beta: Tensor | None, epsilon: float) -> Tensor:
    """Layer norm over the last dimension; without beta, RMS norm."""
    out: Tensor = _FusedNorm.apply(x, gamma, beta, epsilon)  # type: ignore[no-untyped-call]
    return out


class _FusedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: Tensor, beta: Tensor | None, epsilon: float) -> Tensor:
        x = x.contiguous()
        rows, y = x.numel() // x.shape[-1], torch.empty_like(x)
        kept = torch.empty(rows, 2)
        _operations().norm(x, gamma, beta, epsilon, y, kept)
        ctx.save_for_backward(x, gamma, kept)
        ctx.centred = beta is not None
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        x, gamma, kept = ctx.saved_tensors
        dx, d_weights = torch.empty_like(x), torch.zeros(torch.get_num_threads(), 2, x.shape[-1])
        _operations().norm_back(x, gamma, ctx.centred, kept, gradients[0].contiguous(), dx, d_weights)
        d_gamma, d_beta = d_weights.sum(0).to(gamma.dtype)
        return dx, d_gamma, d_beta if ctx.centred else None, None


def _run_norm(
    made: ctypes.CDLL, x: Tensor, gamma: Tensor, beta: Tensor | None, epsilon: float, y: Tensor, kept: Tensor
) -> None:
    made.regard_norm(
        x.data_ptr(), gamma.data_ptr(), None if beta is None else beta.data_ptr(), y.data_ptr(), kept.data_ptr(),
        len(kept), x.shape[-1], epsilon, torch.get_num_threads(),
    )  # fmt: skip


def _run_norm_back(
    made: ctypes.CDLL, x: Tensor, gamma: Tensor, centred: bool, kept: Tensor, g: Tensor, dx: Tensor, d_weights: Tensor
) -> None:
    made.regard_norm_back(
        x.data_ptr(), gamma.data_ptr(), g.data_ptr(), kept.data_ptr(), dx.data_ptr(), d_weights.data_ptr(),
        len(kept), x.shape[-1], centred, len(d_weights),
    )  # fmt: skip


def fused_gelu(x: Tensor) -> Tensor:
    """x Φ(x)."""
    out: Tensor = _FusedGelu.apply(x)  # type: ignore[no-untyped-call]
    return out


class _FusedGelu(torch.autograd.Function):
    """The slope is kept instead of the input: it comes with the output for nothing, and backward is a product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.contiguous()
        y, slope = torch.empty_like(x), torch.empty_like(x) if ctx.needs_input_grad[0] else None
        _operations().gelu(x, y, slope)
        ctx.save_for_backward(slope)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        dx: Tensor = gradients[0] * slope
        return dx


def _run_gelu(made: ctypes.CDLL, x: Tensor, y: Tensor, slope: Tensor | None) -> None:
    room = None if slope is None else slope.data_ptr()
    made.regard_gelu(x.data_ptr(), y.data_ptr(), room, x.numel(), torch.get_num_threads())


def fused_drop(x: Tensor | None, h: Tensor, probability: float) -> Tensor:
    """x + dropout(h), or dropout(h) alone. Each element has 16 random bits, made of its place and of a seed.

    The seed is torch's generator's. The threshold is drawn between the two nearest of 65,536, so that over many calls
    an element is dropped with the very probability.
    """
    share = probability * 65536
    threshold = math.floor(share) + (float(torch.rand(())) < share % 1)
    seed = int(torch.randint(2**62, ()))
    out: Tensor = _FusedDrop.apply(x, h, seed, threshold, 1 / (1 - probability))  # type: ignore[no-untyped-call]
    return out


class _FusedDrop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor | None, h: Tensor, seed: int, threshold: int, scale: float) -> Tensor:
        ctx.drawn = seed, threshold, scale
        return _dropped(None if x is None else x.contiguous(), h.contiguous(), *ctx.drawn)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, None, None, None]:
        x = gradients[0] if ctx.needs_input_grad[0] else None
        return x, _dropped(None, gradients[0].contiguous(), *ctx.drawn), None, None, None


def _dropped(x: Tensor | None, h: Tensor, seed: int, threshold: int, scale: float) -> Tensor:
    out = torch.empty_like(h)
    _operations().drop(x, h, seed, threshold, scale, out)
    return out


def _run_drop(
    made: ctypes.CDLL, x: Tensor | None, h: Tensor, seed: int, threshold: int, scale: float, out: Tensor
) -> None:
    made.regard_drop(
        None if x is None else x.data_ptr(), h.data_ptr(), out.data_ptr(), h.numel(), seed, threshold, scale,
        torch.get_num_threads(),
    )  # fmt: skip


def softmax_in_place(logits_ND: Tensor) -> Tensor:
    """Make rows of logits probabilities; gives the log of each row's sum of exponentials, (N, 1) in float32."""
    assert logits_ND.is_contiguous()
    told = torch.empty(len(logits_ND), 1)
    _operations().softmax(logits_ND, told)
    return told


def _run_softmax(made: ctypes.CDLL, x: Tensor, told: Tensor) -> None:
    rows, width = x.shape
    made.regard_softmax(x.data_ptr(), told.data_ptr(), rows, width, torch.get_num_threads())
