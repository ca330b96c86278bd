"""A decoder without an encoder: a language model, which tells the next piece from those before (GPT).

Shapes: B batch, T tokens, D d_model.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.shared import at_most, needed
from regard.nn.blocks import Embedding, Stack
from regard.nn.cache import Cache, empty_cache
from regard.nn.initial import initialise
from regard.nn.masks import within_documents
from regard.nn.positions import PositionEncoding
from regard.nn.trace import Trace
from regard.nn.windowed import WindowCache, window_cache


class DecoderOnly(nn.Module):
    """Generation."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.pieces = nn.Embedding(needed(config.vocabulary), config.d_model)
        untied = config.embeddings == "separate"
        self.output_pieces = nn.Embedding(needed(config.vocabulary), config.d_model) if untied else None
        self.output_bias = nn.Parameter(torch.zeros(needed(config.vocabulary))) if config.output_bias else None
        self.embedding = Embedding(config, PositionEncoding(config))
        self.decoder = Stack(config, "decoder.self")
        initialise(self, config)

    def forward(self, tokens_BT: Tensor, *, positions_BT: Tensor | None = None, trace: Trace | None = None) -> Tensor:
        """The states from which each next piece is told, all steps at once, (B, T, D).

        `positions_BT` are stated for rows that hold several documents: each begins at 0, and none sees another.
        """
        length, mask = tokens_BT.shape[1], self.decoder.mask
        if positions_BT is not None:
            mask = within_documents(mask, positions_BT)
        places = torch.arange(length, device=tokens_BT.device)[None] if positions_BT is None else positions_BT
        x = self.embedding(
            tokens_BT, self.pieces.weight, positions=places, furthest=length, part="decoder", trace=trace
        )
        states: Tensor = self.decoder(x, mask=mask, positions=positions_BT, trace=trace)
        return states

    @property
    def output(self) -> tuple[Tensor, Tensor | None]:
        """The matrix and the bias that turn states into scores of pieces."""
        return (self.output_pieces or self.pieces).weight, self.output_bias

    def logits(self, states: Tensor, *, trace: Trace | None = None) -> Tensor:
        """A score for each piece, (…, pieces)."""
        scores = F.linear(states, *self.output)
        if trace:
            trace.keep("decoder.logits", scores)
        return scores

    def start(self, *, rows: int, capacity: int, bounded: bool = False) -> Cache:
        """An empty cache, with room for `capacity` pieces a row.

        `bounded`: where attention looks through a window, what lies behind it is forgotten, so that memory stays the
        same however many pieces come.
        """
        device, dtype = self.pieces.weight.device, self.pieces.weight.dtype
        if bounded:
            cache = window_cache(
                self.config, self.decoder.mask, rows=rows, capacity=capacity, device=device, dtype=dtype
            )
            if cache is not None:
                return cache
        return empty_cache(self.config, rows=rows, capacity=capacity, device=device, dtype=dtype)

    def step(
        self, tokens_BT: Tensor, cache: Cache, *, counts: list[int] | None = None, trace: Trace | None = None
    ) -> Tensor:
        """The states of each row's next tokens, (B, T, D), which the cache then holds.

        `counts` says how many of a row's tokens are real; the others are at its end and are forgotten.
        """
        if isinstance(cache, WindowCache) and tokens_BT.shape[1] > cache.most:
            return self._in_parts(tokens_BT, cache, counts or [tokens_BT.shape[1]] * cache.rows, trace)
        step = cache.open(self.decoder.mask, tokens_BT.shape[1])
        x = self.embedding(
            tokens_BT, self.pieces.weight, positions=step.positions, furthest=at_most(step.furthest, self.config),
            part="decoder", trace=trace,
        )  # fmt: skip
        states: Tensor = self.decoder(x, mask=self.decoder.mask, cache=cache, step=step, trace=trace)
        cache.close(step, counts)
        return states

    def _in_parts(self, tokens_BT: Tensor, cache: WindowCache, counts: list[int], trace: Trace | None) -> Tensor:
        """The same, as many tokens at a time as a windowed cache takes; a trace keeps what the last of them show."""
        states = []
        for start in range(0, tokens_BT.shape[1], cache.most):
            part = tokens_BT[:, start : start + cache.most]
            real = [min(max(count - start, 0), part.shape[1]) for count in counts]
            states.append(self.step(part, cache, counts=real, trace=trace))
        return torch.cat(states, dim=1)
