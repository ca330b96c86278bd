"""Pairs of tiny random models that compute the same: one of transformers', and ours with its weights."""

from typing import NamedTuple

import torch
from torch import nn
from transformers.models.bert.modeling_bert import BertConfig, BertForSequenceClassification
from transformers.models.bloom.modeling_bloom import BloomConfig, BloomForCausalLM
from transformers.models.gpt2.modeling_gpt2 import GPT2Config, GPT2LMHeadModel
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaForCausalLM
from transformers.models.longformer.modeling_longformer import LongformerConfig, LongformerModel
from transformers.models.marian.modeling_marian import MarianConfig, MarianMTModel
from transformers.models.t5.modeling_t5 import T5Config, T5ForConditionalGeneration

from regard.config import ModelConfig
from regard.models import Model, build_model

from .alike import scatter
from .carry import (
    BERT,
    BERT_CLASSIFIER,
    GPT2,
    LONGFORMER,
    MARIAN,
    MARIAN_TWO_VOCABULARIES,
    Table,
    bloom,
    llama,
    load,
    t5,
)

VOCABULARY = 40
LONGEST = 160
EPSILON = 1e-3
"""Of the norms, wherever it can be chosen: the usual ones are so small that a wrong one would go unnoticed."""
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1, "attn_implementation": "eager"}
"""Of their configs."""


class Pair(NamedTuple):
    """Their model, ours with the same weights, and the table that carried them."""

    theirs: nn.Module
    ours: Model
    table: Table


def _pair(theirs: nn.Module, table: Table, **ours: object) -> Pair:
    shape = {"vocabulary": VOCABULARY, "max_length": LONGEST, "dropout": 0.0, "d_model": 16, "d_ff": 24, "heads": 4}
    model = build_model(ModelConfig(**{**shape, **ours})).eval()
    load(model, table, theirs)
    return Pair(theirs, model, table)


@torch.no_grad()
def _enlarge(pieces: nn.Embedding) -> None:
    """As √d_model would: entries of 1/4 would drown in what the layers add."""
    pieces.weight.mul_(4)


def marian_pair(*, source_vocabulary: int | None = None) -> Pair:
    """Helsinki's translators: the paper's model with swish and a bias for each piece."""
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=source_vocabulary or VOCABULARY, decoder_vocab_size=VOCABULARY,
            share_encoder_decoder_embeddings=source_vocabulary is None, d_model=16, encoder_layers=2, decoder_layers=3,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=24, dropout=0.0,
            activation_function="swish", max_position_embeddings=LONGEST, scale_embedding=True,
            decoder_start_token_id=0, forced_eos_token_id=None, **SPECIAL,
        )
    )  # fmt: skip
    scatter(theirs)
    theirs.final_logits_bias.normal_(std=0.5)
    return _pair(
        theirs, MARIAN if source_vocabulary is None else MARIAN_TWO_VOCABULARIES, encoder_layers=2, decoder_layers=3,
        activation="silu", positions="learned", output_bias=True, source_vocabulary=source_vocabulary,
        embeddings="tied_all" if source_vocabulary is None else "tied_output",
    )  # fmt: skip


def t5_pair() -> Pair:
    """T5 (the first): pre-norm with RMSNorm, no biases, relative positions, heads wider than d_model / heads.

    No fewer layers in its encoder than in its decoder: its cache would have too few.
    """
    theirs = T5ForConditionalGeneration(
        T5Config(
            vocab_size=VOCABULARY, d_model=16, d_kv=6, d_ff=24, num_layers=3, num_decoder_layers=2, num_heads=4,
            relative_attention_num_buckets=8, relative_attention_max_distance=14, dropout_rate=0.0,
            feed_forward_proj="relu", layer_norm_epsilon=EPSILON, decoder_start_token_id=0, **SPECIAL,
        )
    )  # fmt: skip
    scatter(theirs)
    _enlarge(theirs.shared)
    return _pair(
        theirs, t5(key_width=6, d_model=16), encoder_layers=3, decoder_layers=2, d_k=6, d_v=6, norm="pre",
        norm_kind="rms", norm_epsilon=EPSILON, biases=False, positions="relative", relative_buckets=8,
        relative_distance=14, scale_embeddings=False,
    )  # fmt: skip


def _bert_config(**more: object) -> BertConfig:
    return BertConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
        max_position_embeddings=LONGEST, type_vocab_size=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        layer_norm_eps=EPSILON, **SPECIAL, **more,
    )  # fmt: skip


BERT_SHAPE = {
    "family": "encoder-only", "encoder_layers": 2, "activation": "gelu", "norm_epsilon": EPSILON,
    "positions": "learned", "scale_embeddings": False, "embedding_norm": True, "segments": 2, "pooling": "first",
    "pooled_layer": True,
}  # fmt: skip


def bert_pair() -> Pair:
    """BERT, from a text to one vector."""
    theirs = scatter(BertForSequenceClassification(_bert_config()).bert)
    return _pair(theirs, BERT, **BERT_SHAPE)


def bert_classifier_pair() -> Pair:
    """BERT with three labels."""
    theirs = scatter(BertForSequenceClassification(_bert_config(num_labels=3)))
    return _pair(theirs, BERT_CLASSIFIER, **BERT_SHAPE, labels=3)


def longformer_pair(*, window: int, global_positions: tuple[int, ...], longest: int) -> Pair:
    """Longformer; without global positions, plain windows."""
    theirs = LongformerModel(
        LongformerConfig(
            vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
            max_position_embeddings=longest + 2, type_vocab_size=2, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0, attention_window=2 * window, layer_norm_eps=EPSILON,
            **{**SPECIAL, "pad_token_id": 1},
        )
    )  # fmt: skip
    scatter(theirs)
    for layer in theirs.encoder.layer:
        attention = layer.attention.self
        attention.query_global.load_state_dict(attention.query.state_dict())
        attention.key_global.load_state_dict(attention.key.state_dict())
        attention.value_global.load_state_dict(attention.value.state_dict())
    pattern = {"attention": "global_sliding", "global_positions": global_positions} if global_positions else {}
    return _pair(
        theirs, LONGFORMER, **{"attention": "sliding", **BERT_SHAPE, **pattern}, window=window, max_length=longest
    )  # fmt: skip


def gpt2_pair() -> Pair:
    """GPT-2."""
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=4, n_inner=24, n_positions=LONGEST, resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0, layer_norm_epsilon=EPSILON, **SPECIAL,
        )
    )  # fmt: skip
    return _pair(
        scatter(theirs), GPT2, family="decoder-only", decoder_layers=2, norm="pre", activation="gelu_tanh",
        positions="learned", scale_embeddings=False, norm_epsilon=EPSILON,
    )  # fmt: skip


def llama_pair() -> Pair:
    """Llama: pairs of query heads share a head of keys and values."""
    theirs = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=LONGEST, rms_norm_eps=EPSILON, tie_word_embeddings=False,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0}, **SPECIAL,
        )
    )  # fmt: skip
    scatter(theirs)
    _enlarge(theirs.model.embed_tokens)
    return _pair(
        theirs, llama(4), family="decoder-only", decoder_layers=2, kv_heads=2, norm="pre", norm_kind="rms",
        norm_epsilon=EPSILON, activation="swiglu", biases=False, positions="rotary", rotary_base=500.0,
        embeddings="separate", scale_embeddings=False,
    )  # fmt: skip


def bloom_pair() -> Pair:
    """BLOOM: ALiBi, here of six heads, and a norm on the embeddings."""
    theirs = BloomForCausalLM(
        BloomConfig(
            vocab_size=VOCABULARY, hidden_size=24, n_layer=2, n_head=6, hidden_dropout=0.0, attention_dropout=0.0,
            layer_norm_epsilon=EPSILON, **SPECIAL,
        )
    )  # fmt: skip
    return _pair(
        scatter(theirs), bloom(6), family="decoder-only", d_model=24, d_ff=96, heads=6, decoder_layers=2, norm="pre",
        activation="gelu_tanh", positions="alibi", embedding_norm=True, scale_embeddings=False,
        norm_epsilon=EPSILON,
    )  # fmt: skip
