"""Blocks: multi-head attention, feed-forward, add & norm, and the stack of layers that all families share.

Modules here only hold weights and wire; the maths is in `attention`, `positions` and `relations`.
Shapes: B batch, T tokens, M tokens of the memory that cross-attention looks at, D d_model, H heads, G key heads,
K d_k, V d_v, F d_ff.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.nn.attention import attention
from regard.nn.cache import Cache, Memory, Step
from regard.nn.dropout import add_dropped, dropout
from regard.nn.fused import apart, fits, fused_gelu, fused_norm
from regard.nn.linear import linear
from regard.nn.masks import Full, Mask, causal, dilated, global_sliding, sliding
from regard.nn.positions import Rotation
from regard.nn.relations import Alibi, Buckets, Relation, Shaw
from regard.nn.trace import Part, Trace
from regard.nn.views import View, view


@dataclass(frozen=True, kw_only=True, eq=False)
class Sight:
    """What every layer of a stack needs beside its input, made once a forward."""

    own: View
    """for self-attention"""
    rotation: Rotation | None
    memory: Memory | None = None
    across: View | None = None
    """for cross-attention to the memory"""
    cache: Cache | None = None
    step: Step | None = None
    """where in the cache the new tokens go"""
    trace: Trace | None = None


class MultiHead(nn.Module):
    """Multi-head attention: project to heads, look up, put the heads side by side, project back."""

    def __init__(self, config: ModelConfig, part: Part, layer: int) -> None:
        super().__init__()
        self.part, self.layer, self.dropout = part, layer, config.attention_dropout
        self.heads, self.key_heads = config.heads, config.key_heads
        self.key_width, self.value_width = config.key_width, config.value_width
        self.queries = self.heads * self.key_width
        self.alike = self.heads == self.key_heads and self.key_width == self.value_width
        inner = self.queries + self.key_heads * (self.key_width + self.value_width)
        self.project = nn.Linear(config.d_model, inner, bias=config.biases)
        """rows of queries, then keys, then values; head by head"""
        self.join = nn.Linear(self.heads * self.value_width, config.d_model, bias=config.biases)
        self.relation: Shaw | None = None
        if config.positions == "shaw" and part != "decoder.cross":
            self.relation = Shaw(
                key_width=self.key_width, value_width=self.value_width, furthest=config.relative_distance
            )

    def forward(self, x_BTD: Tensor, sight: Sight, relation: Relation | None) -> Tensor:
        """Self-attention."""
        q, k, v = self._to_heads(linear(x_BTD, self.project.weight, self.project.bias))
        if sight.rotation:
            q, k = sight.rotation(q), sight.rotation(k)
        if sight.cache and sight.step:
            k, v = sight.cache.write(self.layer, k, v, sight.step)
        return self._attend(q, k, v, sight.own, self.relation or relation, sight.trace)

    def cross(self, x_BTD: Tensor, sight: Sight) -> Tensor:
        """Cross-attention: queries from here, keys and values from the memory."""
        assert sight.memory is not None
        assert sight.across is not None
        bias = None if self.project.bias is None else self.project.bias[: self.queries]
        q = linear(x_BTD, self.project.weight[: self.queries], bias)
        q_BHTK = q.unflatten(-1, (self.heads, self.key_width)).transpose(1, 2)
        keys, values = sight.memory.layers[self.layer]
        return self._attend(q_BHTK, keys, values, sight.across, None, sight.trace)

    def remember(self, memory_BMD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the memory, (B, G, M, K) and (B, G, M, V)."""
        bias = None if self.project.bias is None else self.project.bias[self.queries :]
        return self._keys_and_values(linear(memory_BMD, self.project.weight[self.queries :], bias))

    def _to_heads(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.alike:
            q, k, v = apart(projected, 3, self.heads)
            return q, k, v
        q, rest = projected.split((self.queries, projected.shape[-1] - self.queries), dim=-1)
        return q.unflatten(-1, (self.heads, self.key_width)).transpose(1, 2), *self._keys_and_values(rest)

    def _keys_and_values(self, projected: Tensor) -> tuple[Tensor, Tensor]:
        if self.key_width == self.value_width:
            k, v = apart(projected, 2, self.key_heads)
            return k, v
        k, v = projected.split((self.key_heads * self.key_width, self.key_heads * self.value_width), dim=-1)
        return (
            k.unflatten(-1, (self.key_heads, self.key_width)).transpose(1, 2),
            v.unflatten(-1, (self.key_heads, self.value_width)).transpose(1, 2),
        )

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, sight: View, relation: Relation | None, trace: Trace | None
    ) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        out = attention(q, k, v, sight, bias=relation, dropout=dropout)
        if trace is not None:
            out = trace.attention(
                self.part, self.layer, queries=q, keys=k, values=v, out=out, sight=sight, relation=relation
            )
        return linear(out.transpose(1, 2).flatten(2), self.join.weight, self.join.bias)


class FeedForward(nn.Module):
    """Two linear layers with an activation between, on each token alone."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation, self.dropout = config.activation, config.activation_dropout
        gated = 2 if self.activation == "swiglu" else 1
        self.inner = nn.Linear(config.d_model, gated * config.d_ff, bias=config.biases)
        """for swiglu, the gate's rows and then the values'"""
        self.outer = nn.Linear(config.d_ff, config.d_model, bias=config.biases)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D)."""
        relu = self.activation == "relu"
        h_BTF = linear(x_BTD, self.inner.weight, self.inner.bias, relu=relu)
        h_BTF = dropout(h_BTF if relu else activate(h_BTF, self.activation), self.dropout, training=self.training)
        return linear(h_BTF, self.outer.weight, self.outer.bias)


def activate(x: Tensor, name: str) -> Tensor:
    """The activation of that name; swiglu halves the last dimension."""
    match name:
        case "relu":
            return F.relu(x)
        case "gelu":
            return fused_gelu(x) if fits(x, lanes=False) else F.gelu(x)
        case "gelu_tanh":
            return F.gelu(x, approximate="tanh")
        case "silu":
            return F.silu(x)
        case _:
            gate, value = x.chunk(2, dim=-1)
            return F.silu(gate) * value


def make_norm(config: ModelConfig) -> nn.Module:
    """LayerNorm or RMSNorm over the width of the residual stream."""
    kind = RMSNorm if config.norm_kind == "rms" else LayerNorm
    return kind(config.d_model, eps=config.norm_epsilon)


class LayerNorm(nn.LayerNorm):
    """torch's, in one pass where that can be."""

    def forward(self, x: Tensor) -> Tensor:
        """Each row less its mean, over its deviation."""
        return fused_norm(x, self.weight, self.bias, self.eps) if fits(x) else super().forward(x)


class RMSNorm(nn.RMSNorm):
    """torch's, in one pass where that can be."""

    def forward(self, x: Tensor) -> Tensor:
        """Each row over the root of its mean square."""
        assert self.eps is not None
        return fused_norm(x, self.weight, None, self.eps) if fits(x) else super().forward(x)


class Layer(nn.Module):
    """Self-attention, cross-attention where there is a memory, and feed-forward, each within add & norm."""

    def __init__(self, config: ModelConfig, part: Part, layer: int, *, cross: bool) -> None:
        super().__init__()
        self.part, self.layer = part, layer
        self.pre, self.dropout = config.norm == "pre", config.dropout
        self.attention = MultiHead(config, part, layer)
        self.attention_norm = make_norm(config)
        self.cross = MultiHead(config, "decoder.cross", layer) if cross else None
        self.cross_norm = make_norm(config) if cross else None
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = make_norm(config)

    def forward(self, x: Tensor, sight: Sight, relation: Relation | None) -> Tensor:
        """The residual stream after the layer, (B, T, D)."""
        h = self.attention(self._before(x, self.attention_norm), sight, relation)
        x = self._after(x, h, self.attention_norm)
        if sight.trace:
            sight.trace.residual(self.part, self.layer, x)
        if self.cross is not None and self.cross_norm is not None:
            h = self.cross.cross(self._before(x, self.cross_norm), sight)
            x = self._after(x, h, self.cross_norm)
            if sight.trace:
                sight.trace.residual("decoder.cross", self.layer, x)
        h = self.feed_forward(self._before(x, self.feed_forward_norm))
        x = self._after(x, h, self.feed_forward_norm)
        if sight.trace:
            sight.trace.residual(f"{self.part.split('.')[0]}.feed_forward", self.layer, x)
        return x

    def _before(self, x: Tensor, norm: nn.Module) -> Tensor:
        normed: Tensor = norm(x) if self.pre else x
        return normed

    def _after(self, x: Tensor, h: Tensor, norm: nn.Module) -> Tensor:
        summed = add_dropped(x, h, self.dropout, training=self.training)
        normed: Tensor = summed if self.pre else norm(summed)
        return normed


class Stack(nn.Module):
    """The layers of an encoder or a decoder, one after the other; with pre-norm, a norm at the end."""

    def __init__(self, config: ModelConfig, part: Part, *, cross: bool = False) -> None:
        super().__init__()
        self.config, self.part = config, part
        self.causal = part == "decoder.self"
        count = config.decoder_layers if self.causal else config.encoder_layers
        self.layers = nn.ModuleList(Layer(config, part, layer, cross=cross) for layer in range(count))
        self.norm = make_norm(config) if config.norm == "pre" else None
        self.relation = _shared_relation(config, both_sides=not self.causal)

    @property
    def mask(self) -> Mask:
        """What the configured attention may see, before padding."""
        return (causal() if self.causal else Full()) & pattern(self.config)

    def forward(
        self, x_BTD: Tensor, *, mask: Mask, memory: Memory | None = None, cache: Cache | None = None,
        step: Step | None = None, positions: Tensor | None = None, trace: Trace | None = None,
    ) -> Tensor:  # fmt: skip
        """The states of the new tokens, (B, T, D).

        `mask` is what self-attention may see. With a cache, `step` says where the tokens stand. `positions` (B, T) are
        stated where they are not 0, 1, 2, …: they turn rotary queries and keys.
        """
        if trace:
            for part in (self.part, "decoder.cross") if memory else (self.part,):
                trace.check(part, len(self.layers), self.config.heads)
        own = step.sight if step else view(mask, x_BTD.shape[1], x_BTD.shape[1], device=x_BTD.device)
        places = positions if positions is not None else step.positions if step else own.queries
        rotary = self.config.positions == "rotary"
        sight = Sight(
            own=own,
            rotation=Rotation(places, self.config.key_width, self.config.rotary_base) if rotary else None,
            memory=memory,
            across=view(memory.mask, x_BTD.shape[1], memory.longest, device=x_BTD.device) if memory else None,
            cache=cache,
            step=step,
            trace=trace,
        )
        for layer in self.layers:
            x_BTD = layer(x_BTD, sight, self.relation)
        if self.norm is not None:
            x_BTD = self.norm(x_BTD)
            if trace:
                trace.keep(f"{self.part.split('.')[0]}.norm.residual", x_BTD)
        return x_BTD

    def remember(self, memory_BMD: Tensor, lengths: Tensor) -> Memory:
        """What each layer's cross-attention looks at: keys and values of an encoder's states."""
        remembered = []
        for layer in self.layers:
            assert isinstance(layer, Layer)
            assert layer.cross is not None
            remembered.append(layer.cross.remember(memory_BMD))
        return Memory(layers=remembered, lengths=lengths)


def pattern(config: ModelConfig) -> Mask:
    """The configured attention pattern as a mask."""
    match config.attention:
        case "sliding":
            return sliding(config.window)
        case "dilated":
            return dilated(config.window, config.dilation)
        case "global_sliding":
            return global_sliding(config.window, config.global_positions)
        case _:
            return Full()


def _shared_relation(config: ModelConfig, *, both_sides: bool) -> Alibi | Buckets | None:
    """The relation of positions that all layers of a stack share; Shaw's belongs to each layer."""
    match config.positions:
        case "alibi":
            return Alibi(config.heads)
        case "relative":
            return Buckets(
                config.heads, buckets=config.relative_buckets, furthest=config.relative_distance, both_sides=both_sides
            )
        case _:
            return None


class Embedding(nn.Module):
    """Pieces to vectors: look up, scale, add positions (and segments), norm if asked, dropout."""

    def __init__(self, config: ModelConfig, position_encoding: nn.Module) -> None:
        super().__init__()
        self.config = config
        self.positions = position_encoding
        self.segments = nn.Embedding(config.segments, config.d_model) if config.segments else None
        self.norm = make_norm(config) if config.embedding_norm else None

    def forward(
        self, tokens_BT: Tensor, pieces: Tensor, *, positions: Tensor, furthest: int, part: str,
        lengths: Tensor | None = None, segments_BT: Tensor | None = None, trace: Trace | None = None,
    ) -> Tensor:  # fmt: skip
        """(B, T, D); `pieces` is the embedding matrix, which other modules may share."""
        x = F.embedding(tokens_BT, pieces)
        if self.config.scale_embeddings:
            x = x * self.config.d_model**0.5
        if trace:
            trace.keep(f"{part}.embeddings", x)
        added = self.positions(positions, furthest=furthest, lengths=lengths)
        if added is not None:
            if trace:
                trace.keep(f"{part}.positions", added.expand_as(x))
            x = x + added.to(x.dtype)
        if self.segments is not None:
            kinds = torch.zeros_like(tokens_BT) if segments_BT is None else segments_BT
            x = x + self.segments(kinds)
        if self.norm is not None:
            x = self.norm(x)
        return dropout(x, self.config.dropout, training=self.training)
