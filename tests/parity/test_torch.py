"""Against torch's own modules: attention, its weights, layers, and the whole Transformer with its gradients."""

import pytest
import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models import EncoderDecoder
from regard.nn import Layer, Memory, MultiHead, Sight, Trace, causal, full, padding, view

from .alike import agree, gradients_agree, ids, real, scatter
from .carry import (
    TORCH_ATTENTION,
    TORCH_DECODER_LAYER,
    TORCH_ENCODER_LAYER,
    TORCH_TRANSFORMER,
    TORCH_TRANSFORMER_PRE,
    carried_gradients,
    load,
    under,
)

SHAPE = {"d_model": 16, "heads": 4, "d_ff": 24, "dropout": 0.0, "vocabulary": 20}
LENGTHS = pytest.mark.parametrize("length", [7, 131], ids=["plain", "fused"])
"""The shorter is computed by plain products, the longer by torch's kernel."""


def ragged(length: int) -> Tensor:
    return torch.tensor([length, length - 3, 1])


def not_later(length: int) -> Tensor:
    """torch's causal mask: true where a query may not look."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


@LENGTHS
@pytest.mark.parametrize("padded", [False, True], ids=["", "padding"])
@pytest.mark.parametrize("ahead", [False, True], ids=["causal", ""])
def test_self_attention_and_its_weights_are_those_of_multihead_attention(length, padded, ahead):
    theirs = scatter(nn.MultiheadAttention(16, 4, batch_first=True))
    ours = MultiHead(ModelConfig(**SHAPE), "encoder.self", 0)
    load(ours, TORCH_ATTENTION, theirs)
    x, lengths = torch.randn(3, length, 16), ragged(length)

    wanted, weights = theirs(
        x, x, x, key_padding_mask=~real(lengths) if padded else None, attn_mask=None if ahead else not_later(length),
        need_weights=True, average_attn_weights=False,
    )  # fmt: skip
    mask = (full() if ahead else causal()) & (padding(lengths) if padded else full())
    trace = Trace()
    found = ours(x, Sight(own=view(mask, length, length), rotation=None, trace=trace), None)
    agree(found, wanted)
    agree(trace["encoder.self.0.weights"], weights)
    assert not trace["encoder.self.0.weights"][weights == 0].any()


@LENGTHS
def test_cross_attention_and_its_weights_are_those_of_multihead_attention(length):
    theirs = scatter(nn.MultiheadAttention(16, 4, batch_first=True))
    ours = MultiHead(ModelConfig(**SHAPE), "decoder.cross", 0)
    load(ours, TORCH_ATTENTION, theirs)
    x, states, lengths = torch.randn(3, length, 16), torch.randn(3, length + 9, 16), ragged(length + 9)

    hidden = ~real(lengths)
    wanted, weights = theirs(x, states, states, key_padding_mask=hidden, average_attn_weights=False)
    memory, trace = Memory(layers=[ours.remember(states)], lengths=lengths), Trace()
    own, across = view(full(), length, length), view(memory.mask, length, length + 9)
    found = ours.cross(x, Sight(own=own, rotation=None, memory=memory, across=across, trace=trace))
    agree(found, wanted)
    agree(trace["decoder.cross.0.weights"], weights)


@LENGTHS
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_layer_is_torchs(length, norm, activation):
    theirs = scatter(
        nn.TransformerEncoderLayer(16, 4, 24, 0.0, activation=activation, norm_first=norm == "pre", batch_first=True)
    )
    ours = Layer(ModelConfig(**SHAPE, norm=norm, activation=activation), "encoder.self", 0, cross=False)
    load(ours, TORCH_ENCODER_LAYER, theirs)
    x, lengths = torch.randn(3, length, 16), ragged(length)

    kept = real(lengths)
    wanted = theirs(x, src_key_padding_mask=~kept)
    found = ours(x, Sight(own=view(padding(lengths), length, length), rotation=None), None)
    agree(found[kept], wanted[kept])
    weights = torch.randn_like(wanted[kept])
    (wanted[kept] * weights).sum().backward()
    (found[kept] * weights).sum().backward()
    gradients_agree(ours, carried_gradients(TORCH_ENCODER_LAYER, theirs))


@LENGTHS
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_layer_is_torchs(length, norm, activation):
    theirs = scatter(
        nn.TransformerDecoderLayer(16, 4, 24, 0.0, activation=activation, norm_first=norm == "pre", batch_first=True)
    )
    ours = Layer(ModelConfig(**SHAPE, norm=norm, activation=activation), "decoder.self", 0, cross=True)
    load(ours, TORCH_DECODER_LAYER, theirs)
    assert ours.cross is not None
    x, states = torch.randn(3, length, 16), torch.randn(3, length + 9, 16)
    lengths, source_lengths = ragged(length), ragged(length + 9)

    wanted = theirs(
        x, states, tgt_mask=not_later(length), tgt_key_padding_mask=~real(lengths),
        memory_key_padding_mask=~real(source_lengths),
    )  # fmt: skip
    memory = Memory(layers=[ours.cross.remember(states)], lengths=source_lengths)
    own = view(causal() & padding(lengths), length, length)
    found = ours(x, Sight(own=own, rotation=None, memory=memory, across=view(memory.mask, length, length + 9)), None)
    agree(found, wanted)
    weights = torch.randn_like(wanted)
    (wanted * weights).sum().backward()
    (found * weights).sum().backward()
    gradients_agree(ours, carried_gradients(TORCH_DECODER_LAYER, theirs))


class Whole(nn.Module):
    """torch's Transformer, which begins and ends in vectors, between scaled embeddings and an output matrix."""

    def __init__(self, norm: str, activation: str) -> None:
        super().__init__()
        self.source, self.target, self.output = nn.Embedding(20, 16), nn.Embedding(20, 16), nn.Embedding(20, 16)
        shape = (16, 4, 24, 0.0, activation)
        if norm == "pre":
            self.transformer = nn.Transformer(16, 4, 2, 3, *shape[2:], norm_first=True, batch_first=True)
        else:  # torch ends in two more norms whatever it is told
            encoder_layer = nn.TransformerEncoderLayer(*shape, batch_first=True)
            decoder_layer = nn.TransformerDecoderLayer(*shape, batch_first=True)
            self.transformer = nn.Transformer(
                16, 4, batch_first=True, custom_encoder=nn.TransformerEncoder(encoder_layer, 2),
                custom_decoder=nn.TransformerDecoder(decoder_layer, 3),
            )  # fmt: skip

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        hidden = ~real(source_lengths)
        states = self.transformer(
            4 * self.source(source), 4 * self.target(target), tgt_mask=not_later(target.shape[1]), tgt_is_causal=True,
            src_key_padding_mask=hidden, memory_key_padding_mask=hidden, tgt_key_padding_mask=~real(lengths),
        )  # fmt: skip
        return states @ self.output.weight.T


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")  # torch about its own default
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_whole_transformer_and_all_its_gradients_are_torchs(norm, activation):
    theirs = scatter(Whole(norm, activation))
    ours = EncoderDecoder(
        ModelConfig(
            **SHAPE, encoder_layers=2, decoder_layers=3, norm=norm, activation=activation, positions="none",
            embeddings="separate",
        )
    )  # fmt: skip
    table = {
        **under("transformer.", "", TORCH_TRANSFORMER_PRE if norm == "pre" else TORCH_TRANSFORMER),
        "source.weight": "source_pieces.weight",
        "target.weight": "target_pieces.weight",
        "output.weight": "output_pieces.weight",
    }
    load(ours, table, theirs)
    source_lengths, lengths = torch.tensor([9, 6, 1]), torch.tensor([4, 7, 2])
    source, target = ids(20, source_lengths), ids(20, lengths)
    kept = real(lengths)

    wanted = theirs(source, source_lengths, target, lengths)[kept]
    found = ours.logits(ours(source, source_lengths, target))[kept]
    agree(found, wanted)
    weights = torch.randn_like(wanted)
    (wanted * weights).sum().backward()
    (found * weights).sum().backward()
    gradients_agree(ours, carried_gradients(table, theirs))
