"""Weights carried from other implementations into ours, by table.

A table names every weight of the source and says where it goes: a name of ours, a `To`, or None where it is dropped on
purpose. `{}` stands for a layer's number. A weight without a row, a row without a weight, and two weights for one
place are refused here; a weight of ours that stays empty, by `load_weights`. All changes on the way are linear, so the
same tables carry gradients, except T5's, which also scales.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.models import load_weights


class To(NamedTuple):
    """Where a weight goes."""

    name: str
    part: int = 0
    """its place among the weights that are put under each other"""
    change: Callable[[Tensor], Tensor] | None = None


Table = Mapping[str, str | To | None]


def carry(table: Table, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights (or their gradients) under our names."""
    patterns = {re.compile(re.escape(row).replace(r"\{\}", r"(\d+)")): row for row in table}
    unused = set(table)
    placed: dict[str, dict[int, Tensor]] = {}
    for name, weight in weights.items():
        found = [(row, match) for pattern, row in patterns.items() if (match := pattern.fullmatch(name))]
        if len(found) != 1:
            raise ValueError(f"{name} {tuple(weight.shape)}: {len(found)} rows of the table")
        row, match = found[0]
        unused.discard(row)
        to = table[row]
        if to is None:
            continue
        to = To(to) if isinstance(to, str) else to
        parts = placed.setdefault(to.name.format(*match.groups()), {})
        if to.part in parts:
            raise ValueError(f"{name}: its place {to} is taken")
        parts[to.part] = weight if to.change is None else to.change(weight)
    if unused:
        raise ValueError(f"rows without a weight: {sorted(unused)}")
    return {name: torch.cat([parts[part] for part in range(len(parts))]) for name, parts in placed.items()}


def load(ours: nn.Module, table: Table, theirs: nn.Module) -> None:
    """Fill our model with all of their weights."""
    load_weights(ours, carry(table, theirs.state_dict()), source=type(theirs).__name__)


def carried_gradients(table: Table, theirs: nn.Module) -> dict[str, Tensor]:
    """Their gradients under our names; a shared weight's stands under each of its names."""
    parameters = theirs.named_parameters(remove_duplicate=False)
    return carry(table, {name: parameter.grad for name, parameter in parameters if parameter.grad is not None})


def under(theirs: str, ours: str, table: Table) -> dict[str, str | To | None]:
    """A part's table as rows of the whole's."""

    def deeper(to: str | To | None) -> str | To | None:
        if isinstance(to, To):
            return to._replace(name=f"{ours}{to.name}")
        return to and f"{ours}{to}"

    return {f"{theirs}{name}": deeper(to) for name, to in table.items()}


TORCH_ATTENTION: Table = {
    "in_proj_weight": "project.weight",
    "in_proj_bias": "project.bias",
    "out_proj.weight": "join.weight",
    "out_proj.bias": "join.bias",
}

TORCH_ENCODER_LAYER: Table = {
    **under("self_attn.", "attention.", TORCH_ATTENTION),
    "linear1.weight": "feed_forward.inner.weight",
    "linear1.bias": "feed_forward.inner.bias",
    "linear2.weight": "feed_forward.outer.weight",
    "linear2.bias": "feed_forward.outer.bias",
    "norm1.weight": "attention_norm.weight",
    "norm1.bias": "attention_norm.bias",
    "norm2.weight": "feed_forward_norm.weight",
    "norm2.bias": "feed_forward_norm.bias",
}

TORCH_DECODER_LAYER: Table = {
    **TORCH_ENCODER_LAYER,
    **under("multihead_attn.", "cross.", TORCH_ATTENTION),
    "norm2.weight": "cross_norm.weight",
    "norm2.bias": "cross_norm.bias",
    "norm3.weight": "feed_forward_norm.weight",
    "norm3.bias": "feed_forward_norm.bias",
}

TORCH_TRANSFORMER: Table = {
    **under("encoder.layers.{}.", "encoder.layers.{}.", TORCH_ENCODER_LAYER),
    **under("decoder.layers.{}.", "decoder.layers.{}.", TORCH_DECODER_LAYER),
}
"""Post-norm: in the paper no norm follows the last layer."""

TORCH_TRANSFORMER_PRE: Table = {
    **TORCH_TRANSFORMER,
    "encoder.norm.weight": "encoder.norm.weight",
    "encoder.norm.bias": "encoder.norm.bias",
    "decoder.norm.weight": "decoder.norm.weight",
    "decoder.norm.bias": "decoder.norm.bias",
}

MARIAN_ATTENTION: Table = {
    "q_proj.weight": To("project.weight", 0),
    "k_proj.weight": To("project.weight", 1),
    "v_proj.weight": To("project.weight", 2),
    "q_proj.bias": To("project.bias", 0),
    "k_proj.bias": To("project.bias", 1),
    "v_proj.bias": To("project.bias", 2),
    "out_proj.weight": "join.weight",
    "out_proj.bias": "join.bias",
}

MARIAN_LAYER: Table = {
    **under("self_attn.", "attention.", MARIAN_ATTENTION),
    "self_attn_layer_norm.weight": "attention_norm.weight",
    "self_attn_layer_norm.bias": "attention_norm.bias",
    "fc1.weight": "feed_forward.inner.weight",
    "fc1.bias": "feed_forward.inner.bias",
    "fc2.weight": "feed_forward.outer.weight",
    "fc2.bias": "feed_forward.outer.bias",
    "final_layer_norm.weight": "feed_forward_norm.weight",
    "final_layer_norm.bias": "feed_forward_norm.bias",
}

MARIAN: Table = {
    "model.shared.weight": "target_pieces.weight",
    "model.encoder.embed_tokens.weight": None,  # these three are the shared one again
    "model.decoder.embed_tokens.weight": None,
    "lm_head.weight": None,
    "final_logits_bias": To("output_bias", change=torch.flatten),
    "model.encoder.embed_positions.weight": "source_embedding.positions.learned.weight",
    "model.decoder.embed_positions.weight": "target_embedding.positions.learned.weight",
    **under("model.encoder.layers.{}.", "encoder.layers.{}.", MARIAN_LAYER),
    **under("model.decoder.layers.{}.", "decoder.layers.{}.", MARIAN_LAYER),
    **under("model.decoder.layers.{}.encoder_attn.", "decoder.layers.{}.cross.", MARIAN_ATTENTION),
    "model.decoder.layers.{}.encoder_attn_layer_norm.weight": "decoder.layers.{}.cross_norm.weight",
    "model.decoder.layers.{}.encoder_attn_layer_norm.bias": "decoder.layers.{}.cross_norm.bias",
}
"""Its sines stand before its cosines, so its table of positions is carried as a learned one."""

MARIAN_TWO_VOCABULARIES: Table = {
    **{row: to for row, to in MARIAN.items() if row != "model.shared.weight"},
    "model.encoder.embed_tokens.weight": "source_pieces.weight",
    "model.decoder.embed_tokens.weight": "target_pieces.weight",
}

BERT_LAYER: Table = {
    "attention.self.query.weight": To("attention.project.weight", 0),
    "attention.self.key.weight": To("attention.project.weight", 1),
    "attention.self.value.weight": To("attention.project.weight", 2),
    "attention.self.query.bias": To("attention.project.bias", 0),
    "attention.self.key.bias": To("attention.project.bias", 1),
    "attention.self.value.bias": To("attention.project.bias", 2),
    "attention.output.dense.weight": "attention.join.weight",
    "attention.output.dense.bias": "attention.join.bias",
    "attention.output.LayerNorm.weight": "attention_norm.weight",
    "attention.output.LayerNorm.bias": "attention_norm.bias",
    "intermediate.dense.weight": "feed_forward.inner.weight",
    "intermediate.dense.bias": "feed_forward.inner.bias",
    "output.dense.weight": "feed_forward.outer.weight",
    "output.dense.bias": "feed_forward.outer.bias",
    "output.LayerNorm.weight": "feed_forward_norm.weight",
    "output.LayerNorm.bias": "feed_forward_norm.bias",
}

BERT: Table = {
    "embeddings.word_embeddings.weight": "pieces.weight",
    "embeddings.position_embeddings.weight": "embedding.positions.learned.weight",
    "embeddings.token_type_embeddings.weight": "embedding.segments.weight",
    "embeddings.LayerNorm.weight": "embedding.norm.weight",
    "embeddings.LayerNorm.bias": "embedding.norm.bias",
    **under("encoder.layer.{}.", "encoder.layers.{}.", BERT_LAYER),
    "pooler.dense.weight": "pooled.weight",
    "pooler.dense.bias": "pooled.bias",
}

BERT_CLASSIFIER: Table = {
    **under("bert.", "", BERT),
    "classifier.weight": "label.weight",
    "classifier.bias": "label.bias",
}

LONGFORMER: Table = {
    **BERT,
    "embeddings.position_embeddings.weight": To("embedding.positions.learned.weight", change=lambda rows: rows[2:]),
    "encoder.layer.{}.attention.self.query_global.weight": None,  # ours has one projection for all positions
    "encoder.layer.{}.attention.self.query_global.bias": None,
    "encoder.layer.{}.attention.self.key_global.weight": None,
    "encoder.layer.{}.attention.self.key_global.bias": None,
    "encoder.layer.{}.attention.self.value_global.weight": None,
    "encoder.layer.{}.attention.self.value_global.bias": None,
}
"""It counts positions from 2, behind its padding's number."""

GPT2: Table = {
    "transformer.wte.weight": "pieces.weight",
    "lm_head.weight": None,  # the same again
    "transformer.wpe.weight": "embedding.positions.learned.weight",
    "transformer.h.{}.ln_1.weight": "decoder.layers.{}.attention_norm.weight",
    "transformer.h.{}.ln_1.bias": "decoder.layers.{}.attention_norm.bias",
    "transformer.h.{}.attn.c_attn.weight": To("decoder.layers.{}.attention.project.weight", change=torch.t),
    "transformer.h.{}.attn.c_attn.bias": "decoder.layers.{}.attention.project.bias",
    "transformer.h.{}.attn.c_proj.weight": To("decoder.layers.{}.attention.join.weight", change=torch.t),
    "transformer.h.{}.attn.c_proj.bias": "decoder.layers.{}.attention.join.bias",
    "transformer.h.{}.ln_2.weight": "decoder.layers.{}.feed_forward_norm.weight",
    "transformer.h.{}.ln_2.bias": "decoder.layers.{}.feed_forward_norm.bias",
    "transformer.h.{}.mlp.c_fc.weight": To("decoder.layers.{}.feed_forward.inner.weight", change=torch.t),
    "transformer.h.{}.mlp.c_fc.bias": "decoder.layers.{}.feed_forward.inner.bias",
    "transformer.h.{}.mlp.c_proj.weight": To("decoder.layers.{}.feed_forward.outer.weight", change=torch.t),
    "transformer.h.{}.mlp.c_proj.bias": "decoder.layers.{}.feed_forward.outer.bias",
    "transformer.ln_f.weight": "decoder.norm.weight",
    "transformer.ln_f.bias": "decoder.norm.bias",
}
"""Its matrices are (inputs, outputs)."""


def llama(key_width: int) -> Table:
    """It turns component i together with i + d_k/2; ours, like the paper, 2i with 2i + 1."""

    def pairs(rows: Tensor) -> Tensor:
        return rows.unflatten(0, (-1, 2, key_width // 2)).transpose(1, 2).flatten(0, 2)

    return {
        "model.embed_tokens.weight": "pieces.weight",
        "lm_head.weight": "output_pieces.weight",
        "model.layers.{}.input_layernorm.weight": "decoder.layers.{}.attention_norm.weight",
        "model.layers.{}.self_attn.q_proj.weight": To("decoder.layers.{}.attention.project.weight", 0, pairs),
        "model.layers.{}.self_attn.k_proj.weight": To("decoder.layers.{}.attention.project.weight", 1, pairs),
        "model.layers.{}.self_attn.v_proj.weight": To("decoder.layers.{}.attention.project.weight", 2),
        "model.layers.{}.self_attn.o_proj.weight": "decoder.layers.{}.attention.join.weight",
        "model.layers.{}.post_attention_layernorm.weight": "decoder.layers.{}.feed_forward_norm.weight",
        "model.layers.{}.mlp.gate_proj.weight": To("decoder.layers.{}.feed_forward.inner.weight", 0),
        "model.layers.{}.mlp.up_proj.weight": To("decoder.layers.{}.feed_forward.inner.weight", 1),
        "model.layers.{}.mlp.down_proj.weight": "decoder.layers.{}.feed_forward.outer.weight",
        "model.norm.weight": "decoder.norm.weight",
    }


def bloom(heads: int) -> Table:
    """Its rows of queries, keys and values stand together head by head; ours, kind by kind."""

    def kinds(rows: Tensor) -> Tensor:
        return rows.unflatten(0, (heads, 3, -1)).transpose(0, 1).flatten(0, 2)

    return {
        "transformer.word_embeddings.weight": "pieces.weight",
        "lm_head.weight": None,  # the same again
        "transformer.word_embeddings_layernorm.weight": "embedding.norm.weight",
        "transformer.word_embeddings_layernorm.bias": "embedding.norm.bias",
        "transformer.h.{}.input_layernorm.weight": "decoder.layers.{}.attention_norm.weight",
        "transformer.h.{}.input_layernorm.bias": "decoder.layers.{}.attention_norm.bias",
        "transformer.h.{}.self_attention.query_key_value.weight": To(
            "decoder.layers.{}.attention.project.weight", change=kinds
        ),
        "transformer.h.{}.self_attention.query_key_value.bias": To(
            "decoder.layers.{}.attention.project.bias", change=kinds
        ),
        "transformer.h.{}.self_attention.dense.weight": "decoder.layers.{}.attention.join.weight",
        "transformer.h.{}.self_attention.dense.bias": "decoder.layers.{}.attention.join.bias",
        "transformer.h.{}.post_attention_layernorm.weight": "decoder.layers.{}.feed_forward_norm.weight",
        "transformer.h.{}.post_attention_layernorm.bias": "decoder.layers.{}.feed_forward_norm.bias",
        "transformer.h.{}.mlp.dense_h_to_4h.weight": "decoder.layers.{}.feed_forward.inner.weight",
        "transformer.h.{}.mlp.dense_h_to_4h.bias": "decoder.layers.{}.feed_forward.inner.bias",
        "transformer.h.{}.mlp.dense_4h_to_h.weight": "decoder.layers.{}.feed_forward.outer.weight",
        "transformer.h.{}.mlp.dense_4h_to_h.bias": "decoder.layers.{}.feed_forward.outer.bias",
        "transformer.ln_f.weight": "decoder.norm.weight",
        "transformer.ln_f.bias": "decoder.norm.bias",
    }


def t5(*, key_width: int, d_model: int) -> Table:
    """It does not divide scores by √d_k, so its queries come √d_k larger; it divides the last states by √d_model."""

    def larger(weight: Tensor) -> Tensor:
        return weight * key_width**0.5

    def smaller(weight: Tensor) -> Tensor:
        return weight / d_model**0.5

    def attention(theirs: str, ours: str) -> Table:
        return {
            f"{theirs}.q.weight": To(f"{ours}.project.weight", 0, larger),
            f"{theirs}.k.weight": To(f"{ours}.project.weight", 1),
            f"{theirs}.v.weight": To(f"{ours}.project.weight", 2),
            f"{theirs}.o.weight": f"{ours}.join.weight",
        }

    first = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    return {
        "shared.weight": "target_pieces.weight",
        "encoder.embed_tokens.weight": None,  # these three are the shared one again
        "decoder.embed_tokens.weight": None,
        "lm_head.weight": None,
        f"encoder.{first}": "encoder.relation.bias.weight",
        f"decoder.{first}": "decoder.relation.bias.weight",
        **attention("encoder.block.{}.layer.0.SelfAttention", "encoder.layers.{}.attention"),
        "encoder.block.{}.layer.0.layer_norm.weight": "encoder.layers.{}.attention_norm.weight",
        "encoder.block.{}.layer.1.DenseReluDense.wi.weight": "encoder.layers.{}.feed_forward.inner.weight",
        "encoder.block.{}.layer.1.DenseReluDense.wo.weight": "encoder.layers.{}.feed_forward.outer.weight",
        "encoder.block.{}.layer.1.layer_norm.weight": "encoder.layers.{}.feed_forward_norm.weight",
        "encoder.final_layer_norm.weight": "encoder.norm.weight",
        **attention("decoder.block.{}.layer.0.SelfAttention", "decoder.layers.{}.attention"),
        "decoder.block.{}.layer.0.layer_norm.weight": "decoder.layers.{}.attention_norm.weight",
        **attention("decoder.block.{}.layer.1.EncDecAttention", "decoder.layers.{}.cross"),
        "decoder.block.{}.layer.1.layer_norm.weight": "decoder.layers.{}.cross_norm.weight",
        "decoder.block.{}.layer.2.DenseReluDense.wi.weight": "decoder.layers.{}.feed_forward.inner.weight",
        "decoder.block.{}.layer.2.DenseReluDense.wo.weight": "decoder.layers.{}.feed_forward.outer.weight",
        "decoder.block.{}.layer.2.layer_norm.weight": "decoder.layers.{}.feed_forward_norm.weight",
        "decoder.final_layer_norm.weight": To("decoder.norm.weight", change=smaller),
    }
