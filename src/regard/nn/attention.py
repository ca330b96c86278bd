"""Attention: a soft look-up. Every query is compared with every key; the values come back weighted by the likeness.

    attention(q, k, v) = softmax(q kᵀ / √d_k) v        (Vaswani et al. 2017, equation 1)

`attention` is what models call: it takes the fastest way that the mask, the length and the device allow.
`attention_formula` beside it is the plain twin, the equation word for word; the tests and `regard verify` hold the two
equal, gradients included. A query that may see no key gets zeros, and sends back a gradient of zero.

Shapes: B batch, H heads, G heads of keys and values (H is a multiple of G), T queries, S keys, K d_k, V d_v.
"""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from regard.errors import InputError
from regard.nn.banded import band_of, banded_attention
from regard.nn.dropout import dropout as drop
from regard.nn.fused import attention_fits, fused_attention
from regard.nn.masks import Causal, Full, Mask
from regard.nn.relations import Relation, Table
from regard.nn.short import SHORT, short_attention
from regard.nn.views import View, view


def attention(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSV: Tensor,
    mask: Mask | View | None = None,
    *,
    bias: Relation | Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """What each query finds, (B, H, T, V).

    `mask` says what may be seen (all of it by default); `bias` is added to the scaled scores: a tensor that broadcasts
    to (B, H, T, S), or a relation of positions; `scale` is 1/√d_k unless stated; `dropout` drops weights.
    """
    sight, relation, scale = _resolve(q_BHTK, k_BGSK, v_BGSV, mask, bias, scale)
    band = band_of(sight, relation)
    if band is None:
        return _whole(q_BHTK, k_BGSK, v_BGSV, sight, relation, scale, dropout)

    def attend(q: Tensor, k: Tensor, v: Tensor, part: View) -> Tensor:
        return _whole(q, k, v, part, relation, scale, dropout)

    return banded_attention(q_BHTK, k_BGSK, v_BGSV, sight.mask, band, attend=attend, relation=relation)


class Attended(NamedTuple):
    """Everything that one attention computes."""

    out: Tensor
    """(B, H, T, V)"""
    weights: Tensor
    """(B, H, T, S), each row a distribution over the keys"""
    scores: Tensor
    """(B, H, T, S), scaled, before mask and softmax"""


def attention_formula(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSV: Tensor,
    mask: Mask | View | None = None,
    *,
    bias: Relation | Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Attended:
    """The plain twin of `attention`: the whole matrix, step by step, with nothing left out."""
    sight, relation, scale = _resolve(q_BHTK, k_BGSK, v_BGSV, mask, bias, scale)
    q = q_BHTK * scale
    scores = q @ _per_query_head(k_BGSK, q.shape[1]).transpose(-1, -2)
    if relation:
        scores = scores + relation.scores(q, sight.queries, sight.keys)
    masked = scores if sight.additive is None else scores + sight.additive.to(scores.dtype)
    weights = masked.softmax(-1)
    if sight.blind is not None:
        weights = weights.masked_fill(sight.blind, 0.0)
    kept = drop(weights, dropout, training=True)
    out = kept.to(v_BGSV.dtype) @ _per_query_head(v_BGSV, q.shape[1])
    if relation and relation.reads_weights:
        out = out + relation.values(kept, sight.queries, sight.keys)
    return Attended(out=out, weights=weights, scores=scores)


def _whole(
    q: Tensor, k: Tensor, v: Tensor, sight: View, relation: Relation | None, scale: float, dropout: float
) -> Tensor:
    """Attention of all queries to all keys: short, by the formula where all weights are needed, or torch's kernel."""
    causal = sight.square and isinstance(sight.mask, Causal) and relation is None
    if not dropout and relation is None and attention_fits(q, k, v):
        return fused_attention(q, k, v, None if causal else sight.additive, sight.blind, scale, causal=causal)
    short = q.device.type == "cpu" and q.shape[2] * k.shape[2] <= SHORT
    if short and not dropout and relation is None:
        heads = q.shape[1]
        keys, values = _per_query_head(k, heads), _per_query_head(v, heads)
        return short_attention(q, keys, values, sight.additive, sight.blind, scale)
    if short or dropout or (relation and relation.reads_weights):
        return attention_formula(q, k, v, sight, bias=relation, scale=scale, dropout=dropout).out
    added = sight.additive
    if relation:
        bias = relation.scores(q * scale, sight.queries, sight.keys)
        added = bias if added is None else bias + added
    d_k, d_v = q.shape[-1], v.shape[-1]  # the kernel wants one width; zeros change nothing and are cut off below
    out = F.scaled_dot_product_attention(
        F.pad(q, (0, max(0, d_v - d_k))),
        _per_query_head(F.pad(k, (0, max(0, d_v - d_k))), q.shape[1]),
        _per_query_head(F.pad(v, (0, max(0, d_k - d_v))), q.shape[1]),
        attn_mask=None if causal or added is None else added.to(q.dtype),
        is_causal=causal,
        scale=scale,
    )[..., :d_v]
    return out if sight.blind is None else out.masked_fill(sight.blind, 0.0)


def _per_query_head(x_BGSD: Tensor, heads: int) -> Tensor:
    """Keys or values repeated for the query heads that share them."""
    shared = heads // x_BGSD.shape[1]
    return x_BGSD if shared == 1 else x_BGSD.repeat_interleave(shared, dim=1)


def _resolve(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask | View | None, bias: Relation | Tensor | None, scale: float | None
) -> tuple[View, Relation | None, float]:
    """The view, the relation and the scale that are meant; shapes that do not fit are refused with their numbers."""
    shapes = f"queries {tuple(q.shape)}, keys {tuple(k.shape)}, values {tuple(v.shape)}"
    if not q.dim() == k.dim() == v.dim() == 4:
        raise InputError(f"{shapes}: each must be (batch, heads, length, width)")
    if k.shape[:3] != v.shape[:3] or q.shape[-1] != k.shape[-1] or q.shape[0] != k.shape[0]:
        raise InputError(f"{shapes}: batch, key heads, key length and key width must agree")
    if q.shape[1] % k.shape[1]:
        raise InputError(f"{shapes}: {q.shape[1]} query heads cannot share {k.shape[1]} key heads evenly")
    sight = mask if isinstance(mask, View) else view(mask or Full(), q.shape[2], k.shape[2], device=q.device)
    sight.mask.check(batch=q.shape[0], queries=sight.queries, keys=sight.keys)
    if (sight.queries.shape[1], sight.keys.shape[1]) != (q.shape[2], k.shape[2]):
        raise InputError(f"{shapes}: the view is of {sight.queries.shape[1]} queries and {sight.keys.shape[1]} keys")
    relation = Table(bias) if isinstance(bias, Tensor) else bias
    return sight, relation, q.shape[-1] ** -0.5 if scale is None else scale
