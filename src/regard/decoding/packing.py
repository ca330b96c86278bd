"""A model's weights as the compiled kernel takes them: in panels, heads padded to whole vectors, tables drawn."""

from ctypes import POINTER, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.decoding import kernel as native
from regard.models import DecoderOnly, EncoderDecoder
from regard.nn.blocks import Embedding, Layer, MultiHead, Stack
from regard.nn.positions import Rotation

VECTOR = 16
"""numbers that the kernel handles at once"""
FIRST_REACH = 256
"""positions that the tables hold at first; they grow with what is asked for"""


def unsupported(config: ModelConfig) -> str | None:
    """Why the kernel cannot run such a model; none if it can."""
    if config.attention != "full":
        return f"attention = {config.attention!r}"
    if config.positions == "shaw" or (config.positions == "normalised_index" and config.family != "decoder-only"):
        return f"positions = {config.positions!r}"
    if config.d_model % VECTOR:
        return f"d_model = {config.d_model}, which is no multiple of {VECTOR}"
    return None


class Packed:
    """A model in the kernel's form; it owns all memory that the form points to."""

    def __init__(self, model: EncoderDecoder | DecoderOnly, kind: str, panel: int) -> None:
        config = model.config
        self.model, self.config, self.panel, self.kind = model, config, panel, native.KINDS.index(kind)
        self.held: list[object] = []
        self.key_width, self.value_width = _whole(config.key_width), _whole(config.value_width)
        self.slot = config.key_heads * (self.key_width + self.value_width) + VECTOR
        self.d_ff = _whole(config.d_ff)
        queries = config.heads * self.key_width
        found = config.heads * self.value_width
        gated = 2 if config.activation == "swiglu" else 1
        self.words = max(config.d_model, found, self.d_ff)
        self.wide = (queries + self.slot + found, gated * self.d_ff)
        """numbers a row of work: of all rows in attention, and of a tile of rows in the feed-forward network"""
        weight, bias = model.output
        self.form = native.Model(
            output=self.linear(weight, bias), kind=self.kind, d_model=config.d_model, heads=config.heads,
            key_heads=config.key_heads, key_width=self.key_width, value_width=self.value_width,
            turned=config.key_width, d_ff=self.d_ff, activation=native.ACTIVATIONS.index(config.activation),
            pre=config.norm == "pre", epsilon=config.norm_epsilon,
            embedding_scale=config.d_model**0.5 if config.scale_embeddings else 1.0,
        )  # fmt: skip
        if isinstance(model, EncoderDecoder):
            pieces = model.source_pieces or model.target_pieces
            self.stack(self.form.encoder, model.encoder, model.source_embedding, pieces.weight)
            self.stack(self.form.decoder, model.decoder, model.target_embedding, model.target_pieces.weight)
        else:
            self.stack(self.form.decoder, model.decoder, model.embedding, model.pieces.weight)
        self.reach = 0
        self.reach_to(FIRST_REACH)

    def reach_to(self, positions: int) -> None:
        """Let the tables hold this many positions; a form made before goes on with the smaller ones."""
        if positions <= self.reach:
            return
        self.reach = max(positions, 2 * self.reach)
        model, form = self.model, self.form
        sides: list[tuple[native.Stack, Stack, Embedding]]
        if isinstance(model, EncoderDecoder):
            sides = [
                (form.encoder, model.encoder, model.source_embedding),
                (form.decoder, model.decoder, model.target_embedding),
            ]
        else:
            sides = [(form.decoder, model.decoder, model.embedding)]
        for to, stack, embedding in sides:
            reach = min(self.reach, self.config.max_length) if self.config.positions == "learned" else self.reach
            places = torch.arange(reach)[None]
            added = embedding.positions(places, furthest=reach)
            if added is not None:
                to.positions = self.address(added[0])
            if self.config.positions == "rotary":
                turns = Rotation(places, self.config.key_width, self.config.rotary_base)
                to.turns = self.address(torch.cat((turns.cos, turns.sin), dim=-1)[0, 0])
            if stack.relation is not None:
                middle, all_places = torch.tensor([[reach - 1]]), torch.arange(2 * reach - 1)[None]
                to.distances = self.address(stack.relation.scores(torch.empty(0), middle, all_places)[0, :, 0])
                to.reach = reach

    def address(self, tensor: Tensor, dtype: torch.dtype = torch.float32) -> int:
        """Where the numbers stand, which stay there as long as this object lives."""
        held = tensor.detach().to("cpu", dtype).contiguous()
        self.held.append(held)
        return held.data_ptr()

    def stack(self, to: native.Stack, stack: Stack, embedding: Embedding, pieces: Tensor) -> None:
        """Fill in one side."""
        layers = (native.Layer * len(stack.layers))()
        for form, layer in zip(layers, stack.layers, strict=True):
            assert isinstance(layer, Layer)
            self.layer(form, layer)
        self.held.append(layers)
        to.layers, to.count = cast(layers, POINTER(native.Layer)), len(layers)
        to.cross = bool(layers) and stack.layers[0].cross is not None
        to.last, to.embedded = self.norm(stack.norm), self.norm(embedding.norm)
        to.pieces = self.address(pieces)

    def layer(self, to: native.Layer, layer: Layer) -> None:
        """Fill in one layer."""
        weight, bias = self.by_head(layer.attention)
        to.project = self.linear(weight, bias)
        to.join = self.joined(layer.attention)
        to.attention_norm = self.norm(layer.attention_norm)
        if layer.cross is not None:
            weight, bias = self.by_head(layer.cross)
            queries = self.config.heads * self.key_width
            to.query = self.linear(weight[:queries], None if bias is None else bias[:queries])
            to.remember = self.linear(weight[queries:], None if bias is None else bias[queries:])
            to.across = self.joined(layer.cross)
            to.cross_norm = self.norm(layer.cross_norm)
        inner, outer = layer.feed_forward.inner, layer.feed_forward.outer
        more = self.d_ff - self.config.d_ff
        gates = inner.weight.detach().unflatten(0, (-1, self.config.d_ff))
        bias = (
            None if inner.bias is None else F.pad(inner.bias.detach().view(-1, self.config.d_ff), (0, more)).flatten()
        )
        to.inner = self.linear(F.pad(gates, (0, 0, 0, more)).flatten(0, 1), bias)
        to.outer = self.linear(F.pad(outer.weight.detach(), (0, more)), outer.bias)
        to.feed_forward_norm = self.norm(layer.feed_forward_norm)

    def by_head(self, side: MultiHead) -> tuple[Tensor, Tensor | None]:
        """Rows of queries, keys and values with every head padded; queries carry attention's scale."""
        config = self.config
        parts = (
            (config.heads, config.key_width, self.key_width, config.key_width**-0.5),
            (config.key_heads, config.key_width, self.key_width, 1.0),
            (config.key_heads, config.value_width, self.value_width, 1.0),
        )
        sizes = [heads * width for heads, width, _, _ in parts]

        def padded(rows: Tensor) -> Tensor:
            return torch.cat(
                [
                    F.pad(part.view(heads, width, -1) * scale, (0, 0, 0, whole - width)).flatten(0, 1)
                    for part, (heads, width, whole, scale) in zip(rows.split(sizes), parts, strict=True)
                ]
            )

        bias = side.project.bias
        return padded(side.project.weight.detach()), None if bias is None else padded(bias.detach()[:, None])[:, 0]

    def joined(self, side: MultiHead) -> native.Linear:
        """The product behind the heads, which are padded."""
        weight = side.join.weight.detach().unflatten(1, (self.config.heads, self.config.value_width))
        more = self.value_width - self.config.value_width
        return self.linear(F.pad(weight, (0, more)).flatten(1), side.join.bias)

    def norm(self, norm: nn.Module | None) -> native.Norm:
        """A norm's weights, or nothing."""
        if norm is None:
            return native.Norm()
        assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
        bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
        return native.Norm(gamma=self.address(norm.weight), beta=None if bias is None else self.address(bias))

    def linear(self, weight: Tensor, bias: Tensor | None) -> native.Linear:
        """A product's weights in panels."""
        weight = weight.detach().float()
        outputs, inputs = weight.shape
        more = -outputs % self.panel
        weight = F.pad(weight, (0, -inputs % VECTOR, 0, more))
        form = native.Linear(outputs=outputs)
        form.bias = self.address(torch.zeros(len(weight)) if bias is None else F.pad(bias.detach().float(), (0, more)))
        dtype, group = torch.float32, 1
        match native.KINDS[self.kind]:
            case "bf16":
                dtype, group = torch.bfloat16, 2
            case "int8":
                dtype, group = torch.int8, 4
                scale = weight.abs().amax(1).clamp(min=1e-30) / 127
                weight = (weight / scale[:, None]).round()
                form.scale = self.address(scale)
                form.offset = self.address(128 * weight.sum(1), torch.int32)
        form.words = weight.shape[1] // group
        panels = weight.view(-1, self.panel, form.words, group).transpose(1, 2)
        form.weight = self.address(panels, dtype)
        return form


def _whole(width: int) -> int:
    return -(-width // VECTOR) * VECTOR
