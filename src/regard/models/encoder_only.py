"""An encoder without a decoder: a text becomes vectors, one vector, or the probabilities of labels (BERT).

Shapes: B batch, S tokens, D d_model.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.shared import needed
from regard.nn.blocks import Embedding, Stack
from regard.nn.dropout import dropout
from regard.nn.initial import initialise
from regard.nn.masks import padding
from regard.nn.positions import PositionEncoding
from regard.nn.trace import Trace


class EncoderOnly(nn.Module):
    """Classification and embedding."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.pieces = nn.Embedding(needed(config.vocabulary), config.d_model)
        self.embedding = Embedding(config, PositionEncoding(config))
        self.encoder = Stack(config, "encoder.self")
        self.attend = nn.Linear(config.d_model, 1) if config.pooling == "attention" else None
        self.pooled = nn.Linear(config.d_model, config.d_model) if config.pooled_layer else None
        self.label = nn.Linear(config.d_model, config.labels) if config.labels else None
        initialise(self, config)

    def forward(
        self, tokens_BS: Tensor, lengths_B: Tensor, *, segments_BS: Tensor | None = None, trace: Trace | None = None
    ) -> Tensor:
        """The tokens' states, (B, S, D); behind a row's length they mean nothing."""
        places = torch.arange(tokens_BS.shape[1], device=tokens_BS.device)[None]
        x = self.embedding(
            tokens_BS, self.pieces.weight, positions=places, furthest=tokens_BS.shape[1], part="encoder",
            lengths=lengths_B, segments_BT=segments_BS, trace=trace,
        )  # fmt: skip
        states: Tensor = self.encoder(x, mask=self.encoder.mask & padding(lengths_B), trace=trace)
        return states

    def pool(self, states_BSD: Tensor, lengths_B: Tensor) -> Tensor:
        """A text's one vector, (B, D): its first token's, the mean, or a mean weighted by a learned attention."""
        if self.attend is None:
            vector = pool(states_BSD, lengths_B, first=self.config.pooling == "first")
        else:
            real = torch.arange(states_BSD.shape[1], device=states_BSD.device) < lengths_B[:, None]
            weights = self.attend(states_BSD)[..., 0].masked_fill(~real, float("-inf")).softmax(-1)
            vector = (weights[..., None] * states_BSD).sum(1)
        return vector if self.pooled is None else self.pooled(vector).tanh()

    def logits(self, pooled_BD: Tensor) -> Tensor:
        """A score for each label, (B, labels)."""
        if self.label is None:
            raise ValueError("this model has no labels: set model.labels")
        scores: Tensor = self.label(dropout(pooled_BD, self.config.dropout, training=self.training))
        return scores

    def piece_logits(self, states: Tensor) -> Tensor:
        """A score for each piece at each place, (…, pieces): for training on masked text."""
        return F.linear(states, self.pieces.weight)


def pool(states_BSD: Tensor, lengths_B: Tensor, *, first: bool) -> Tensor:
    """The first token's state, or the mean of the real ones, (B, D)."""
    if first:
        return states_BSD[:, 0]
    real = torch.arange(states_BSD.shape[1], device=states_BSD.device) < lengths_B[:, None]
    return (states_BSD * real[..., None]).sum(1) / lengths_B[:, None].clamp(min=1)


HEADS = ("attend.", "pooled.", "label.")
"""beginnings of the names of weights that make one vector of the states and labels of that"""
