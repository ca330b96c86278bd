"""Positions: how a model knows the order of its input.

Attention itself sees a set. Here are the encodings that are added to the embeddings, and the rotation of queries and
keys; what the distance of two positions adds to the scores (ALiBi, T5, Shaw) is in `relations`.

Shapes: B batch, T tokens, D d_model, K d_k.
"""

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import InputError

ADDED = ("index", "normalised_index", "binary", "sinusoidal", "learned")
"""The kinds that are added to the embeddings."""


def index(positions: Tensor, width: int) -> Tensor:
    """The step's number itself, in every component."""
    return positions[..., None].float().expand(*positions.shape, width)


def normalised_index(positions: Tensor, width: int, lengths: Tensor) -> Tensor:
    """The step's number as a share of its sentence: 0 for the first, 1 for the last; `lengths` is (B or 1)."""
    share = positions.float() / (lengths[:, None] - 1).clamp(min=1)
    return share[..., None].expand(*share.shape, width)


def binary(positions: Tensor, width: int) -> Tensor:
    """The step's number in bits, the lowest first."""
    bits = torch.arange(min(width, 62), device=positions.device)
    digits = (positions[..., None] >> bits) & 1
    return nn.functional.pad(digits.float(), (0, width - len(bits)))


def sinusoidal(positions: Tensor, width: int) -> Tensor:
    """The paper's: sines and cosines in turn, of wavelengths from 2π to 10,000 · 2π."""
    angles = positions[..., None].float() * _frequencies(width, 10_000.0, positions.device)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


def _frequencies(width: int, base: float, device: torch.device) -> Tensor:
    """Radians a step for each pair of components."""
    return base ** (-torch.arange(0, width, 2, device=device).float() / width)


class PositionEncoding(nn.Module):
    """What is added to the embeddings of tokens at given positions; nothing, for kinds that act elsewhere."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind, self.width, self.longest = config.positions, config.d_model, config.max_length
        self.learned = nn.Embedding(config.max_length, config.d_model) if self.kind == "learned" else None

    def forward(self, positions: Tensor, *, furthest: int, lengths: Tensor | None = None) -> Tensor | None:
        """(B or 1, T, D) for positions (B or 1, T), all below `furthest`.

        `lengths` are the sentences', for the normalised index. A decoder does not know how long its sentence will
        be; without lengths the share is of the longest that the model may write.
        """
        match self.kind:
            case "learned":
                assert self.learned is not None
                if furthest > self.longest:
                    raise InputError(
                        f"sequence of {furthest} tokens: learned positions end at max_length = {self.longest}"
                    )
                rows: Tensor = self.learned(positions)
                return rows
            case "index":
                return index(positions, self.width)
            case "normalised_index":
                whole = torch.tensor([self.longest], device=positions.device) if lengths is None else lengths
                return normalised_index(positions, self.width, whole)
            case "binary":
                return binary(positions, self.width)
            case "sinusoidal":
                return sinusoidal(positions, self.width)
            case _:
                return None


class Rotation:
    """Rotary positions (Su et al. 2021) for one forward: pairs of components turn by an angle that grows with position.

    The product of a query and a key then depends on their distance alone. Made once by a stack for all its layers.
    """

    def __init__(self, positions: Tensor, width: int, base: float) -> None:
        angles = positions[:, None, :, None].float() * _frequencies(width, base, positions.device)
        self.cos, self.sin = angles.cos(), angles.sin()

    def __call__(self, x_BHTK: Tensor) -> Tensor:
        """Turned, in the same type; the angles are kept in float32, for in bf16 far positions would run together."""
        even, odd = x_BHTK[..., 0::2].float(), x_BHTK[..., 1::2].float()
        turned = torch.stack((even * self.cos - odd * self.sin, even * self.sin + odd * self.cos), dim=-1)
        return turned.flatten(-2).to(x_BHTK.dtype)
