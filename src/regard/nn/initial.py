"""The first values of all weights, in one place."""

import torch
from torch import nn

from regard.config import ModelConfig
from regard.nn.blocks import FeedForward, Layer, MultiHead
from regard.nn.relations import Buckets, Shaw


@torch.no_grad()
def initialise(model: nn.Module, config: ModelConfig) -> None:
    """Fill a model with its first values; seed torch before.

    | weights                             | xavier                                 | normal                         |
    |-------------------------------------|----------------------------------------|--------------------------------|
    | embeddings of pieces                | normal, 1/√d_model                     | normal, 0.02                   |
    | positions, segments, relations      | normal, 0.02                           | normal, 0.02                   |
    | W_Q, W_K, W_V; feed-forward's inner | uniform, ±√(6 / (rows + columns))      | normal, 0.02                   |
    | W_O; feed-forward's outer           | the same; pre-norm: over √(sub-layers) | normal, 0.02 / √(sub-layers)   |
    | pooling and labels                  | uniform, ±√(6 / (rows + columns))      | normal, 0.02                   |
    | biases                              | 0                                      | 0                              |
    | norms                               | 1, bias 0                              | 1, bias 0                      |

    Xavier is per matrix, though queries, keys and values are stored as one. Scaled embeddings then have entries near 1,
    and a tied output gives logits near 1. In a pre-norm stack nothing tames the residual sum but the weights that feed
    it, so these shrink with the number of sub-layers.
    """
    normal = config.initial == "normal"
    for name, module in model.named_modules():
        match module:
            case nn.Linear():
                nn.init.normal_(module.weight, std=0.02) if normal else nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            case nn.Embedding():
                pieces = "pieces" in name.rsplit(".", 1)[-1] and not normal
                nn.init.normal_(module.weight, std=config.d_model**-0.5 if pieces else 0.02)
            case nn.LayerNorm() | nn.RMSNorm():
                nn.init.ones_(module.weight)
                if isinstance(module, nn.LayerNorm):
                    nn.init.zeros_(module.bias)
    for module in model.modules():
        match module:
            case MultiHead() if not normal:
                keys, values = module.key_heads * module.key_width, module.key_heads * module.value_width
                for matrix in module.project.weight.split((module.queries, keys, values)):
                    nn.init.xavier_uniform_(matrix)
            case FeedForward() if not normal and module.activation == "swiglu":
                for matrix in module.inner.weight.chunk(2):
                    nn.init.xavier_uniform_(matrix)
            case Buckets():
                nn.init.normal_(module.bias.weight, std=0.02)
            case Shaw():
                nn.init.normal_(module.keys.weight, std=0.02)
    if normal or config.norm == "pre":
        _shrink_ends(model)


def _shrink_ends(model: nn.Module) -> None:
    layers = [module for module in model.modules() if isinstance(module, Layer)]
    for layer in layers:
        in_stack = [other for other in layers if other.part == layer.part]
        sub_layers = len(in_stack) * (3 if layer.cross is not None else 2)
        ends = [layer.attention.join, layer.feed_forward.outer]
        if layer.cross is not None:
            ends.append(layer.cross.join)
        for end in ends:
            end.weight.mul_(sub_layers**-0.5)
