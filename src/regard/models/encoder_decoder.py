"""The Transformer of "Attention Is All You Need": an encoder reads the source, a decoder writes the target.

Shapes: B batch, S source tokens, T target tokens, D d_model.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.shared import at_most, needed
from regard.nn.blocks import Embedding, Stack
from regard.nn.cache import Cache, Memory, empty_cache
from regard.nn.initial import initialise
from regard.nn.masks import padding
from regard.nn.positions import PositionEncoding
from regard.nn.trace import Trace


class EncoderDecoder(nn.Module):
    """Sequence to sequence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        target = needed(config.vocabulary)
        source = config.source_vocabulary or target
        self.target_pieces = nn.Embedding(target, config.d_model)
        tied_all = config.embeddings == "tied_all"
        self.source_pieces = None if tied_all else nn.Embedding(source, config.d_model)
        self.output_pieces = nn.Embedding(target, config.d_model) if config.embeddings == "separate" else None
        self.output_bias = nn.Parameter(torch.zeros(target)) if config.output_bias else None
        self.source_embedding = Embedding(config, PositionEncoding(config))
        self.target_embedding = Embedding(config, PositionEncoding(config))
        self.encoder = Stack(config, "encoder.self")
        self.decoder = Stack(config, "decoder.self", cross=True)
        initialise(self, config)

    def encode(self, source_BS: Tensor, lengths_B: Tensor, *, trace: Trace | None = None) -> Tensor:
        """The source's states, (B, S, D); behind a row's length they mean nothing."""
        places = torch.arange(source_BS.shape[1], device=source_BS.device)[None]
        pieces = self.source_pieces or self.target_pieces
        x = self.source_embedding(
            source_BS, pieces.weight, positions=places, furthest=source_BS.shape[1], part="encoder",
            lengths=lengths_B, trace=trace,
        )  # fmt: skip
        states: Tensor = self.encoder(x, mask=self.encoder.mask & padding(lengths_B), trace=trace)
        return states

    def forward(
        self, source_BS: Tensor, source_lengths_B: Tensor, target_BT: Tensor, *, trace: Trace | None = None
    ) -> Tensor:
        """Teacher forcing: the states from which each next target piece is told, all steps at once, (B, T, D)."""
        states = self.encode(source_BS, source_lengths_B, trace=trace)
        places = torch.arange(target_BT.shape[1], device=target_BT.device)[None]
        x = self.target_embedding(
            target_BT, self.target_pieces.weight, positions=places, furthest=target_BT.shape[1], part="decoder",
            trace=trace,
        )  # fmt: skip
        memory = self.decoder.remember(states, source_lengths_B)
        decoded: Tensor = self.decoder(x, mask=self.decoder.mask, memory=memory, trace=trace)
        return decoded

    @property
    def output(self) -> tuple[Tensor, Tensor | None]:
        """The matrix and the bias that turn states into scores of pieces."""
        return (self.output_pieces or self.target_pieces).weight, self.output_bias

    def logits(self, states: Tensor, *, trace: Trace | None = None) -> Tensor:
        """A score for each target piece, (…, pieces)."""
        scores = F.linear(states, *self.output)
        if trace:
            trace.keep("decoder.logits", scores)
        return scores

    def start(self, source_BS: Tensor, lengths_B: Tensor, *, capacity: int, trace: Trace | None = None) -> Cache:
        """A cache for decoding these sources, with room for `capacity` target pieces a row."""
        memory: Memory = self.decoder.remember(self.encode(source_BS, lengths_B, trace=trace), lengths_B)
        keys, _ = memory.layers[0]
        return empty_cache(
            self.config, rows=source_BS.shape[0], capacity=capacity, device=keys.device, dtype=keys.dtype, memory=memory
        )

    def step(
        self, tokens_BT: Tensor, cache: Cache, *, counts: list[int] | None = None, trace: Trace | None = None
    ) -> Tensor:
        """The states of each row's next tokens, (B, T, D), which the cache then holds.

        `counts` says how many of a row's tokens are real; the others are at its end and are forgotten.
        """
        step = cache.open(self.decoder.mask, tokens_BT.shape[1])
        x = self.target_embedding(
            tokens_BT, self.target_pieces.weight, positions=step.positions,
            furthest=at_most(step.furthest, self.config), part="decoder", trace=trace,
        )  # fmt: skip
        states: Tensor = self.decoder(
            x, mask=self.decoder.mask, memory=cache.memory, cache=cache, step=step, trace=trace
        )
        cache.close(step, counts)
        return states
