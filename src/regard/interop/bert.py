"""BERT and its like (MiniLM) as transformers saves them: config.json, safetensors, and the tokeniser's files.

The encoder is post-norm with learned positions, segments and a norm on the embeddings. BERT's pooler is taken over with
a classifier's head, which was trained on it; without one a sentence-transformers folder says how its vectors are pooled
(1_Pooling/config.json), and else it is the mean. What has no place here is left out and listed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.config import DataConfig, ModelConfig, Recipe, TokensConfig
from regard.errors import InputError, nearest
from regard.interop.imported import Imported, Table, converted
from regard.interop.saved import read_config, read_saved_weights
from regard.text import read_huggingface_tokenizer

_LAYER: Table = {
    "attention.self.query.weight": "attention.project.weight",
    "attention.self.key.weight": "attention.project.weight",
    "attention.self.value.weight": "attention.project.weight",
    "attention.self.query.bias": "attention.project.bias",
    "attention.self.key.bias": "attention.project.bias",
    "attention.self.value.bias": "attention.project.bias",
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

TABLE: Table = {
    "embeddings.position_ids": None,  # 0, 1, 2, …
    "embeddings.word_embeddings.weight": "pieces.weight",
    "embeddings.position_embeddings.weight": "embedding.positions.learned.weight",
    "embeddings.token_type_embeddings.weight": "embedding.segments.weight",
    "embeddings.LayerNorm.weight": "embedding.norm.weight",
    "embeddings.LayerNorm.bias": "embedding.norm.bias",
    **{f"encoder.layer.{{}}.{theirs}": f"encoder.layers.{{}}.{ours}" for theirs, ours in _LAYER.items()},
    "pooler.dense.weight": None,  # trained with the next sentence, which nobody asks for
    "pooler.dense.bias": None,
    "cls.predictions.bias": None,  # the head that guessed hidden pieces
    "cls.predictions.transform.dense.weight": None,
    "cls.predictions.transform.dense.bias": None,
    "cls.predictions.transform.LayerNorm.weight": None,
    "cls.predictions.transform.LayerNorm.bias": None,
    "cls.predictions.decoder.weight": None,
    "cls.predictions.decoder.bias": None,
    "cls.seq_relationship.weight": None,  # the head that guessed the next sentence
    "cls.seq_relationship.bias": None,
}
"""Of an encoder alone."""

CLASSIFIER: Table = {
    **TABLE,
    "pooler.dense.weight": "pooled.weight",
    "pooler.dense.bias": "pooled.bias",
    "classifier.weight": "label.weight",
    "classifier.bias": "label.bias",
}
"""Of one with labels."""

ACTIVATIONS: dict[str, Literal["relu", "gelu", "gelu_tanh", "silu"]] = {
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "silu": "silu",
    "swish": "silu",
}  # fmt: skip
"""Their names to ours."""
_OLD_ENDS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
"""what the first checkpoints call a norm's two vectors"""


@dataclass(frozen=True, kw_only=True)
class _Labels:
    """What a classifier's head tells apart."""

    names: tuple[str, ...] = ()
    several: bool | None = None


def read_bert(folder: Path) -> Imported:
    """The model in a folder, with its tokeniser."""
    stated = read_config(folder)
    classifier = any("ForSequenceClassification" in name for name in stated.get("architectures") or [])
    labels = _labels(folder, stated) if classifier else _Labels()
    config = _config(folder, stated, labels, pooling="first" if classifier else _pooling(folder))
    weights = {_plain(name): weight for name, weight in read_saved_weights(folder).items()}
    table = CLASSIFIER if classifier else TABLE
    model = converted(config, weights, table, source=str(folder))
    tokenizer = read_huggingface_tokenizer(folder, size=config.vocabulary)
    recipe = Recipe(
        task="classify",
        data=DataConfig(
            labels=labels.names, several_labels=labels.several, max_length=min(256, max(1, config.max_length - 3))
        ),
        tokens=TokensConfig(kind="wordpiece", size=max(8, tokenizer.size)),
        model=config,
    )
    unused = tuple(name for name in weights if name in table and table[name] is None)
    what = "BERT with a classifier's head" if classifier else "BERT"
    return Imported(
        source=f"{what}, as transformers saves it", recipe=recipe, tokenizer=tokenizer, model=model, unused=unused
    )


def _config(
    folder: Path, stated: Mapping[str, Any], labels: _Labels, *, pooling: Literal["first", "mean"]
) -> ModelConfig:
    kind = stated.get("position_embedding_type", "absolute")
    if kind != "absolute" or stated.get("is_decoder") or stated.get("add_cross_attention"):
        what = f"position_embedding_type {kind!r}" if kind != "absolute" else "a decoder"
        raise InputError(f"{folder}: BERT with {what} cannot be imported; an encoder with absolute positions can")
    activation = str(stated.get("hidden_act", "gelu"))
    if activation not in ACTIVATIONS:
        raise InputError(f"{folder}: hidden_act = {activation!r}: {nearest(activation, ACTIVATIONS)}")
    try:
        return ModelConfig(
            family="encoder-only", vocabulary=int(stated["vocab_size"]), d_model=int(stated["hidden_size"]),
            encoder_layers=int(stated["num_hidden_layers"]), decoder_layers=0,
            heads=int(stated["num_attention_heads"]), d_ff=int(stated["intermediate_size"]),
            dropout=float(stated.get("hidden_dropout_prob", 0.1)),
            attention_dropout=float(stated.get("attention_probs_dropout_prob", 0.1)), norm="post",
            norm_epsilon=float(stated.get("layer_norm_eps", 1e-12)), activation=ACTIVATIONS[activation],
            positions="learned", max_length=int(stated["max_position_embeddings"]), scale_embeddings=False,
            embedding_norm=True, segments=int(stated.get("type_vocab_size", 2)), pooling=pooling,
            pooled_layer=bool(labels.names), labels=len(labels.names) or None, initial="normal",
        )  # fmt: skip
    except KeyError as error:
        raise InputError(f"{folder}: its config.json does not say {error}") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{folder}: config.json: {error}") from None


def _labels(folder: Path, stated: Mapping[str, Any]) -> _Labels:
    """The labels' names in the order of their numbers."""
    named = stated.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    try:
        names = tuple(str(named[key]) for key in sorted(named, key=int))
    except (ValueError, AttributeError):
        raise InputError(f"{folder}: config.json: id2label must number the labels") from None
    if len(names) < 2:
        raise InputError(f"{folder}: predicts a number (one label), which is no class")
    return _Labels(names=names, several=stated.get("problem_type") == "multi_label_classification")


def _pooling(folder: Path) -> Literal["first", "mean"]:
    """What sentence-transformers says of the vectors; without a word of it, the mean."""
    stated = read_config(folder / "1_Pooling", needed=False)
    return "first" if stated.get("pooling_mode_cls_token") else "mean"


def _plain(name: str) -> str:
    """The name without the model's own before it, and as later versions have it."""
    name = name.removeprefix("bert.")
    for old, new in _OLD_ENDS.items():
        name = f"{name.removesuffix(old)}{new}" if name.endswith(old) else name
    return name
