"""The parts of a Transformer: attention, masks, positions, blocks, cache and trace."""

from regard.nn.attention import Attended, attention, attention_formula
from regard.nn.blocks import FeedForward, Layer, MultiHead, Sight, Stack
from regard.nn.cache import Cache, Memory, empty_cache
from regard.nn.masks import Mask, causal, dilated, full, global_sliding, matrix, padding, sliding
from regard.nn.relations import Alibi, Buckets, Relation, Shaw
from regard.nn.trace import Head, Part, Trace
from regard.nn.views import View, view

__all__ = [
    "Alibi", "Attended", "Buckets", "Cache", "FeedForward", "Head", "Layer", "Mask", "Memory", "MultiHead", "Part",
    "Relation", "Shaw", "Sight", "Stack", "Trace", "View", "attention", "attention_formula", "causal", "dilated",
    "empty_cache", "full", "global_sliding", "matrix", "padding", "sliding", "view",
]  # fmt: skip
