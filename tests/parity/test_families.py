"""Whole models against transformers': logits or states of ragged batches, and gradients."""

import pytest
import torch
from torch import Tensor

from regard.models import DecoderOnly, EncoderDecoder, EncoderOnly
from regard.nn import Trace
from regard.nn.positions import sinusoidal

from .alike import agree, gradients_agree, ids, real
from .carry import carried_gradients
from .peers import (
    LONGEST,
    VOCABULARY,
    bert_classifier_pair,
    bert_pair,
    bloom_pair,
    gpt2_pair,
    llama_pair,
    longformer_pair,
    marian_pair,
    t5_pair,
)

SOURCES, TARGETS = torch.tensor([20, 13, 1]), torch.tensor([9, 17, 2])


@pytest.mark.parametrize("pair", [marian_pair, t5_pair])
def test_an_encoder_decoder_is_theirs(pair):
    theirs, ours, _ = pair()
    assert isinstance(ours, EncoderDecoder)
    source, target = ids(VOCABULARY, SOURCES), ids(VOCABULARY, TARGETS)
    there = theirs(
        input_ids=source, attention_mask=real(SOURCES).long(), decoder_input_ids=target,
        decoder_attention_mask=real(TARGETS).long(),
    )  # fmt: skip
    agree(ours.encode(source, SOURCES)[real(SOURCES)], there.encoder_last_hidden_state[real(SOURCES)])
    agree(ours.logits(ours(source, SOURCES, target))[real(TARGETS)], there.logits[real(TARGETS)])


def test_marian_of_two_vocabularies_is_theirs():
    theirs, ours, _ = marian_pair(source_vocabulary=30)
    assert isinstance(ours, EncoderDecoder)
    source, target = ids(30, SOURCES), ids(VOCABULARY, TARGETS)
    there = theirs(input_ids=source, attention_mask=real(SOURCES).long(), decoder_input_ids=target)
    agree(ours.logits(ours(source, SOURCES, target)), there.logits)


def test_sinusoidal_positions_are_marians_in_another_order():
    theirs, _, _ = marian_pair()
    table = theirs.model.encoder.embed_positions.weight
    found = sinusoidal(torch.arange(LONGEST), 16)
    agree(torch.cat([found[:, 0::2], found[:, 1::2]], dim=1), table)


@pytest.mark.parametrize("longest", [40, 140], ids=["plain", "fused"])
@pytest.mark.parametrize("pair", [gpt2_pair, llama_pair, bloom_pair])
def test_a_decoder_and_all_its_gradients_are_theirs(pair, longest):
    theirs, ours, table = pair()
    assert isinstance(ours, DecoderOnly)
    lengths = torch.tensor([longest, longest - 17, 1])
    tokens, kept = ids(VOCABULARY, lengths), real(lengths)
    wanted = theirs(input_ids=tokens, attention_mask=kept.long()).logits[kept]
    found = ours.logits(ours(tokens))[kept]
    agree(found, wanted)
    weights = torch.randn_like(wanted)
    (wanted * weights).sum().backward()
    (found * weights).sum().backward()
    gradients_agree(ours, carried_gradients(table, theirs))


def same_weights(trace: Trace, part: str, heads: tuple[int, ...], theirs: tuple[Tensor, ...], lengths: Tensor) -> None:
    """Each layer's attention weights, in the rows of real queries."""
    kept = real(lengths)
    for layer, weights in enumerate(theirs):
        agree(trace[f"{part}.{layer}.weights"].transpose(1, 2)[kept], weights[:, heads].transpose(1, 2)[kept])


@pytest.mark.parametrize("heads", [(0, 1, 2, 3), (3, 1)])
@pytest.mark.parametrize("pair", [marian_pair, t5_pair])
def test_a_trace_of_an_encoder_decoder_shows_their_weights(pair, heads):
    theirs, ours, _ = pair()
    assert isinstance(ours, EncoderDecoder)
    source, target, trace = ids(VOCABULARY, SOURCES), ids(VOCABULARY, TARGETS), Trace(heads=heads)
    ours(source, SOURCES, target, trace=trace)
    there = theirs(
        input_ids=source, attention_mask=real(SOURCES).long(), decoder_input_ids=target, output_attentions=True
    )  # fmt: skip
    same_weights(trace, "encoder.self", heads, there.encoder_attentions, SOURCES)
    same_weights(trace, "decoder.self", heads, there.decoder_attentions, TARGETS)
    same_weights(trace, "decoder.cross", heads, there.cross_attentions, TARGETS)


@pytest.mark.parametrize("heads", [(0, 1, 2, 3), (3, 1)])
@pytest.mark.parametrize("pair", [gpt2_pair, llama_pair, bloom_pair])
def test_a_trace_of_a_decoder_shows_their_weights(pair, heads):
    theirs, ours, _ = pair()
    assert isinstance(ours, DecoderOnly)
    tokens, trace = ids(VOCABULARY, TARGETS), Trace(heads=heads)
    ours(tokens, trace=trace)
    there = theirs(input_ids=tokens, attention_mask=real(TARGETS).long(), output_attentions=True)
    same_weights(trace, "decoder.self", heads, there.attentions, TARGETS)


def text_and_segments(lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Pieces, and two texts a row."""
    tokens = ids(VOCABULARY, lengths)
    return tokens, (torch.arange(tokens.shape[1]) >= lengths[:, None] // 2).long()


def test_berts_states_and_pooled_vector_are_theirs():
    theirs, ours, _ = bert_pair()
    assert isinstance(ours, EncoderOnly)
    tokens, segments = text_and_segments(SOURCES)
    kept = real(SOURCES)
    there = theirs(input_ids=tokens, attention_mask=kept.long(), token_type_ids=segments)
    states = ours(tokens, SOURCES, segments_BS=segments)
    agree(states[kept], there.last_hidden_state[kept])
    agree(ours.pool(states, SOURCES), there.pooler_output)


def test_berts_labels_and_all_its_gradients_are_theirs():
    theirs, ours, table = bert_classifier_pair()
    assert isinstance(ours, EncoderOnly)
    tokens, segments = text_and_segments(SOURCES)
    wanted = theirs(input_ids=tokens, attention_mask=real(SOURCES).long(), token_type_ids=segments).logits
    found = ours.logits(ours.pool(ours(tokens, SOURCES, segments_BS=segments), SOURCES))
    agree(found, wanted)
    weights = torch.randn_like(wanted)
    (wanted * weights).sum().backward()
    (found * weights).sum().backward()
    gradients_agree(ours, carried_gradients(table, theirs))


@pytest.mark.parametrize("global_positions", [(), (0,), (0, 5, 21)])
@pytest.mark.parametrize("longest", [40, 200], ids=["plain", "banded"])
def test_longformers_windows_and_global_positions_are_theirs(longest, global_positions):
    """Its windows are a matrix of diagonals, cut from overlapping chunks: another way than either of ours."""
    theirs, ours, _ = longformer_pair(window=4, global_positions=global_positions, longest=longest)
    assert isinstance(ours, EncoderOnly)
    lengths = torch.tensor([longest, longest - 7, 3])
    tokens, segments = text_and_segments(lengths)
    marked = torch.zeros_like(tokens)
    marked[:, list(global_positions)] = 1
    there = theirs(
        input_ids=tokens, attention_mask=real(lengths).long(), token_type_ids=segments,
        global_attention_mask=marked if global_positions else None,
    )  # fmt: skip
    kept = real(lengths)
    states = ours(tokens, lengths, segments_BS=segments)
    agree(states[kept], there.last_hidden_state[kept])
    agree(ours.pool(states, lengths), there.pooler_output)
