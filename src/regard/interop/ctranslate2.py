"""Export to CTranslate2, through its own specification objects: what has a counterpart there is carried, all else is
refused by name.

The folder that is made also holds `decoding.json`, the arguments of `translate_batch` that search as the recipe says,
the tokenisers, and `certificate.json`, what both sides answered (`ctranslate2_check`).
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import DecodingConfig, ModelConfig
from regard.decoding import Given
from regard.errors import InputError
from regard.interop.ctranslate2_check import Certificate, compare
from regard.models import EncoderDecoder
from regard.nn.blocks import Embedding, Layer, MultiHead, Stack
from regard.nn.relations import Buckets
from regard.runs import Stored, open_run
from regard.text import Tokenizer
from regard.text.spellings import spellings

Precision = Literal["float32", "int8"]

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH", "swiglu": "SWISH"}
"""Our names to theirs; swiglu is a gated network there."""

TABLES = ("index", "binary", "sinusoidal", "learned")
"""Kinds of position that are a table which is added to the embeddings."""

CERTIFICATE, DECODING = "certificate.json", "decoding.json"


def export_ctranslate2(
    folder: str | Path, out: str | Path, *, precision: Precision = "float32", samples: Sequence[Given] = ()
) -> Certificate:
    """Make the folder `out` of a run, and compare both sides on samples: known pairs, or random ones if there are none.

    A model whose answers disagree is not left behind.
    """
    stored = open_run(folder)
    place = Path(out)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"{place}: is there already; name a folder that does not exist yet, or empty it first")
    if not isinstance(stored.model, EncoderDecoder):
        raise InputError(
            f"{folder}: its task is {stored.recipe.task}; encoder-decoders (task translate) can be exported"
        )
    check_model(stored.model.config)
    arguments = search_arguments(stored.recipe.decoding, stored.tokenizer)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as beside:
        if precision == "int8":  # first the weights that are rounded: what is wrong there would pass for rounding
            _made(stored, Path(beside) / "float32", samples, "float32")
        made = Path(beside) / "made"
        certificate = _made(stored, made, samples, precision)
        for file in Path(folder).glob("tokens.*"):
            shutil.copy(file, made / file.name)
        (made / DECODING).write_text(json.dumps(arguments, indent=2) + "\n", encoding="utf-8")
        if place.is_dir():
            place.rmdir()
        made.rename(place)
    return certificate


def _made(stored: Stored, made: Path, samples: Sequence[Given], precision: Precision) -> Certificate:
    """Their files with the certificate, unless both sides disagree."""
    assert isinstance(stored.model, EncoderDecoder)
    spec = specification(stored.model, stored.tokenizer, stored.source_tokenizer, precision=precision)
    made.mkdir()
    spec.save(str(made))
    certificate = compare(
        stored.model, made, samples, precision=precision, names=names(stored.tokenizer),
        source_names=names(stored.source_tokenizer), specials=stored.tokenizer.specials,
        not_carried=not_carried(stored.recipe.decoding),
    )  # fmt: skip
    text = json.dumps(certificate.to_plain(), indent=2, allow_nan=False) + "\n"
    (made / CERTIFICATE).write_text(text, encoding="utf-8")
    if not certificate.held:
        raise InputError(
            f"{stored.folder}: CTranslate2 answers otherwise, and nothing was exported: {'; '.join(certificate.faults)}"
        )
    return certificate


def check_model(config: ModelConfig) -> None:
    """Refuse what has no counterpart there, by its name in the recipe."""
    refused = []
    if config.attention != "full":
        refused.append(f"model.attention = {config.attention!r} (there is 'full')")
    if config.positions not in (*TABLES, "none", "rotary", "relative", "shaw"):
        refused.append(f"model.positions = {config.positions!r}")
    if config.key_width != config.value_width:
        refused.append(f"model.d_k = {config.key_width} and d_v = {config.value_width} (there they are equal)")
    elif config.heads * config.key_width != config.d_model and config.key_heads != config.heads:
        refused.append(f"model.d_k = {config.key_width} together with kv_heads = {config.kv_heads}")
    if refused:
        raise InputError(f"cannot be exported to CTranslate2, which has no counterpart: {'; '.join(refused)}")


def search_arguments(options: DecodingConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    """The arguments of their `translate_batch` that search as these options do; docs/decoding.md tells what differs."""
    plain = DecodingConfig()
    absent = [
        name for name in ("groups", "min_ratio", "min_p", "mbr") if getattr(options, name) != getattr(plain, name)
    ]
    if options.length_norm != "average" and options.length_penalty:
        absent.append("length_norm")
    if options.coverage_penalty:
        absent.append("coverage_penalty")  # theirs counts the heads of one layer only, and bounds nothing from below
    if options.stopping == "likely" and options.length_penalty and options.beam > 1:
        absent.append("stopping")
    if options.max_ratio != plain.max_ratio and options.max_length is None:
        absent.append("max_ratio")
    if options.alignment_heads and options.unknown == "replace":
        absent.append("alignment_heads")
    if absent:
        stated = "; ".join(f"decoding.{name} = {getattr(options, name)!r}" for name in absent)
        raise InputError(f"cannot be exported to CTranslate2, which has no counterpart: {stated}; state it otherwise")
    arguments: dict[str, Any] = {
        "beam_size": options.beam, "length_penalty": options.length_penalty,
        "repetition_penalty": options.repetition_penalty, "no_repeat_ngram_size": options.no_repeat_ngram,
        "min_decoding_length": options.min_length, "max_decoding_length": options.max_length or 256,
        "disable_unk": options.unknown == "forbid", "replace_unknowns": options.unknown == "replace",
    }  # fmt: skip
    if options.samples:
        arguments |= {
            "beam_size": 1, "num_hypotheses": options.samples, "sampling_topk": options.top_k,
            "sampling_topp": options.top_p, "sampling_temperature": options.temperature,
        }  # fmt: skip
    runs = spellings(tokenizer, options.forbid)
    if runs:
        pieces = names(tokenizer)
        arguments["suppress_sequences"] = [[pieces[id] for id in run] for run in runs]
    return arguments


def not_carried(options: DecodingConfig) -> tuple[str, ...]:
    """What the recipe leaves as it is by default, and CTranslate2 does in another way or not at all."""
    told = []
    if options.stopping == "safe" and options.length_penalty and options.beam > 1 and not options.samples:
        told.append(f"decoding.stopping = 'safe': theirs stops when {options.beam} answers have ended, as 'full' does")
    if options.guard:
        told.append("decoding.guard = true: theirs does not stop runaway repetition")
    if options.max_length is None:
        told.append("decoding.max_ratio: theirs stops at 256 pieces, however long the source is")
    stated = [name for name in ("forbid", "no_repeat_ngram", "min_length") if getattr(options, name)]
    stated += ["unknown"] if options.unknown == "forbid" else []
    if stated and options.beam > 1 and not options.samples:
        told.append(f"decoding.{', '.join(stated)}: theirs spreads what is forbidden over the other pieces of a beam")
    if options.samples:
        told.append(f"decoding.seed = {options.seed}: theirs draws by other numbers")
    if options.unknown == "replace":
        told.append("decoding.unknown = 'replace': theirs looks at other heads")
    return tuple(told)


def names(tokenizer: Tokenizer) -> list[str]:
    """A name for each id, no two the same, for they know pieces by their names only."""
    found: dict[str, None] = {}
    for id in range(tokenizer.size):
        name = tokenizer.piece(id)
        found[name if name not in found else f"{name}#{id}"] = None
    return list(found)


def specification(
    model: EncoderDecoder, tokenizer: Tokenizer, source_tokenizer: Tokenizer, *, precision: Precision
) -> Any:
    """Their object with all weights in it, checked by it and ready to be saved."""
    spec = _empty(model.config)
    _fill_side(spec.encoder, model.encoder, model.source_embedding, (model.source_pieces or model.target_pieces).weight)
    _fill_side(spec.decoder, model.decoder, model.target_embedding, model.target_pieces.weight)
    weight, bias = model.output
    spec.decoder.projection.weight = _numbers(weight)
    if bias is not None:
        spec.decoder.projection.bias = _numbers(bias)
    pieces, specials = names(tokenizer), tokenizer.specials
    spec.register_source_vocabulary(names(source_tokenizer))
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token, spec.config.bos_token = pieces[specials.unknown], pieces[specials.begin]
    spec.config.eos_token, spec.config.decoder_start_token = pieces[specials.end], pieces[specials.begin]
    spec.config.layer_norm_epsilon = model.config.norm_epsilon
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    return spec


def _empty(config: ModelConfig) -> Any:
    """Their object of the model's shape, without weights."""
    try:
        from ctranslate2.specs import TransformerSpec, common_spec, transformer_spec
    except ImportError:
        raise InputError("CTranslate2 is not installed: pip install 'regard[ctranslate2]'") from None
    width = config.key_width
    alike: dict[str, Any] = {
        "pre_norm": config.norm == "pre", "activation": common_spec.Activation[ACTIVATIONS[config.activation]],
        "ffn_glu": config.activation == "swiglu", "rms_norm": config.norm_kind == "rms",
        "layernorm_embedding": config.embedding_norm, "relative_position": config.positions == "shaw",
        "relative_attention_bias": config.positions == "relative",
        "num_heads_kv": config.key_heads if config.key_heads != config.heads else None,
        "head_dim": width if width * config.heads != config.d_model else None,
    }  # fmt: skip
    if config.positions == "rotary":
        alike |= {"rotary_dim": width, "rotary_interleave": True, "rotary_base": config.rotary_base}
    encoder = transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.heads, **alike)
    decoder = transformer_spec.TransformerDecoderSpec(config.decoder_layers, config.heads, **alike)
    return TransformerSpec(encoder, decoder)


def _fill_side(spec: Any, stack: Stack, embedding: Embedding, pieces: Tensor) -> None:
    """An encoder or a decoder: embeddings, positions, layers, the norm at the end."""
    config = stack.config
    (spec.embeddings if stack.causal else spec.embeddings[0]).weight = _numbers(pieces)
    spec.scale_embeddings = config.scale_embeddings
    if hasattr(spec, "position_encodings"):
        places = torch.arange(config.max_length)[None]
        added = embedding.positions(places, furthest=config.max_length)
        table = torch.zeros(config.max_length, config.d_model) if added is None else added[0]
        spec.position_encodings.encodings = _numbers(table)
    if embedding.norm is not None:
        _fill_norm(spec.layernorm_embedding, embedding.norm)
    if stack.norm is not None:
        _fill_norm(spec.layer_norm, stack.norm)
    for to, layer in zip(spec.layer, stack.layers, strict=True):
        assert isinstance(layer, Layer)
        _fill_linear(to.self_attention.linear[0], layer.attention.project)
        _fill_linear(to.self_attention.linear[1], layer.attention.join)
        _fill_norm(to.self_attention.layer_norm, layer.attention_norm)
        _fill_distances(to.self_attention, stack, layer.attention)
        if layer.cross is not None:
            queries = layer.cross.queries
            _fill_linear(to.attention.linear[0], layer.cross.project, slice(0, queries))
            _fill_linear(to.attention.linear[1], layer.cross.project, slice(queries, None))
            _fill_linear(to.attention.linear[2], layer.cross.join)
            _fill_norm(to.attention.layer_norm, layer.cross_norm)
        inner = layer.feed_forward.inner
        _fill_linear(to.ffn.linear_0, inner, slice(0, config.d_ff))
        if config.activation == "swiglu":
            _fill_linear(to.ffn.linear_0_noact, inner, slice(config.d_ff, None))
        _fill_linear(to.ffn.linear_1, layer.feed_forward.outer)
        _fill_norm(to.ffn.layer_norm, layer.feed_forward_norm)


def _fill_distances(spec: Any, stack: Stack, attention: MultiHead) -> None:
    """What the distance of two positions adds, where it adds something."""
    if isinstance(stack.relation, Buckets):
        spec.relative_attention_bias = _numbers(stack.relation.bias.weight)
        spec.relative_attention_max_distance = np.dtype("int32").type(stack.relation.furthest)
        spec.queries_scale = np.dtype("float32").type(attention.key_width**-0.5)
    if attention.relation is not None:
        spec.relative_position_keys = _numbers(attention.relation.keys.weight)
        spec.relative_position_values = _numbers(attention.relation.vectors.weight)


def _fill_linear(spec: Any, linear: nn.Linear, rows: slice = slice(None)) -> None:
    spec.weight = _numbers(linear.weight[rows])
    if linear.bias is not None:
        spec.bias = _numbers(linear.bias[rows])


def _fill_norm(spec: Any, norm: nn.Module | None) -> None:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    spec.gamma = _numbers(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _numbers(norm.bias)


def _numbers(tensor: Tensor) -> Any:
    return tensor.detach().to("cpu", torch.float32, copy=True).contiguous().numpy()  # theirs are scaled in place
