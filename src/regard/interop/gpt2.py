"""GPT-2 and its like (DistilGPT-2) as transformers saves them: config.json, safetensors, and the tokeniser's files.

The decoder is pre-norm with learned positions and an output that is the embedding. transformers keeps these matrices
with a row for each input, so all of them are turned over.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.config import DataConfig, ModelConfig, Recipe, TokensConfig
from regard.errors import InputError, nearest
from regard.interop.bert import ACTIVATIONS
from regard.interop.imported import Imported, Table, converted, left_out
from regard.interop.saved import read_config, read_saved_weights
from regard.text import read_huggingface_tokenizer

_LAYER: Table = {
    "ln_1.weight": "attention_norm.weight",
    "ln_1.bias": "attention_norm.bias",
    "attn.c_attn.weight": "attention.project.weight",
    "attn.c_attn.bias": "attention.project.bias",
    "attn.c_proj.weight": "attention.join.weight",
    "attn.c_proj.bias": "attention.join.bias",
    "ln_2.weight": "feed_forward_norm.weight",
    "ln_2.bias": "feed_forward_norm.bias",
    "mlp.c_fc.weight": "feed_forward.inner.weight",
    "mlp.c_fc.bias": "feed_forward.inner.bias",
    "mlp.c_proj.weight": "feed_forward.outer.weight",
    "mlp.c_proj.bias": "feed_forward.outer.bias",
    "attn.bias": None,  # the causal mask
    "attn.masked_bias": None,  # and what it was filled with
}

TABLE: Table = {
    "wte.weight": "pieces.weight",
    "wpe.weight": "embedding.positions.learned.weight",
    **{f"h.{{}}.{theirs}": ours and f"decoder.layers.{{}}.{ours}" for theirs, ours in _LAYER.items()},
    "ln_f.weight": "decoder.norm.weight",
    "ln_f.bias": "decoder.norm.bias",
    "lm_head.weight": None,  # the embedding again
}
"""Of a model whose output is its embedding."""

UNTIED: Table = {**TABLE, "lm_head.weight": "output_pieces.weight"}
"""Of one with an output of its own."""

_OTHERS = {
    "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False,
    "position_embedding_type": "absolute",
}  # fmt: skip
"""settings whose other values make another model"""


def read_gpt2(folder: Path) -> Imported:
    """The model in a folder, with its tokeniser."""
    stated = read_config(folder)
    config = _config(folder, stated)
    weights = {_plain(name): weight for name, weight in read_saved_weights(folder).items()}
    turned = {name: weight.t() if _is_turned(name, weight) else weight for name, weight in weights.items()}
    table = TABLE if config.embeddings == "tied_output" else UNTIED
    model = converted(config, turned, table, source=str(folder))
    tokenizer = read_huggingface_tokenizer(folder, size=config.vocabulary)
    recipe = Recipe(
        task="generate",
        data=DataConfig(max_length=config.max_length, continuous=True),
        tokens=TokensConfig(kind="bpe", size=max(8, tokenizer.size)),
        model=config,
    )
    return Imported(
        source="GPT-2, as transformers saves it", recipe=recipe, tokenizer=tokenizer, model=model,
        unused=left_out(weights, table),
    )  # fmt: skip


def _config(folder: Path, stated: Mapping[str, Any]) -> ModelConfig:
    for name, usual in _OTHERS.items():
        if stated.get(name, usual) != usual:
            raise InputError(f"{folder}: GPT-2 with {name} = {stated[name]} cannot be imported; {usual} can")
    activation = str(stated.get("activation_function", "gelu_new"))
    if activation not in ACTIVATIONS:
        raise InputError(f"{folder}: activation_function = {activation!r}: {nearest(activation, ACTIVATIONS)}")
    try:
        width = int(stated["n_embd"])
        return ModelConfig(
            family="decoder-only", vocabulary=int(stated["vocab_size"]), d_model=width, encoder_layers=0,
            decoder_layers=int(stated["n_layer"]), heads=int(stated["n_head"]),
            d_ff=int(stated.get("n_inner") or 4 * width), dropout=float(stated.get("resid_pdrop", 0.1)),
            attention_dropout=float(stated.get("attn_pdrop", 0.1)), norm="pre",
            norm_epsilon=float(stated.get("layer_norm_epsilon", 1e-5)), activation=ACTIVATIONS[activation],
            positions="learned", max_length=int(stated.get("n_positions", 1024)), scale_embeddings=False,
            embeddings="tied_output" if stated.get("tie_word_embeddings", True) else "separate", initial="normal",
        )  # fmt: skip
    except KeyError as error:
        raise InputError(f"{folder}: its config.json does not say {error}") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{folder}: config.json: {error}") from None


def _plain(name: str) -> str:
    """The name without the model's own before it."""
    return name.removeprefix("transformer.")


def _is_turned(name: str, weight: Tensor) -> bool:
    """Whether it is a layer's matrix: those of transformers' Conv1D."""
    return weight.dim() == 2 and name.startswith("h.") and name.endswith(".weight")
