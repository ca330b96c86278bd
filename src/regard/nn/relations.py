"""Relations: what the distance between two positions adds to attention. ALiBi, T5's buckets, Shaw's clipped vectors.

A relation answers for any query and key positions, like a mask, so it serves whole squares, cached steps and bands.
Shapes: B batch, H heads, T queries, S keys, K d_k, V d_v, R distances that are told apart.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.errors import InputError


class Relation(ABC):
    """What positions add to the scores, and perhaps to the output."""

    reads_weights = False
    """whether it adds to the output too, for which it must see the weights"""
    shift_invariant = True
    """whether only the distance from query to key counts"""

    @abstractmethod
    def scores(self, q_BHTK: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """Added to the scaled scores, (B or 1, H or 1, T, S); `q` comes scaled, positions as (B or 1, T) and so on."""

    def of_heads(self, heads: Sequence[int]) -> "Relation":
        """The same for a few of the heads: for a trace."""
        return self

    def values(self, weights_BHTS: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """Added to the output, (B, H, T, V)."""
        raise NotImplementedError(f"{type(self).__name__} adds nothing to the output")


def _offsets(queries: Tensor, keys: Tensor) -> Tensor:
    """How far each key stands after each query, (B or 1, T, S)."""
    return keys[:, None, :] - queries[:, :, None]


class Table(Relation):
    """Any tensor of biases that broadcasts to (B, H, T, S), looked up by position."""

    shift_invariant = False

    def __init__(self, bias: Tensor) -> None:
        self.bias = bias.view((1,) * (4 - bias.dim()) + tuple(bias.shape))

    def scores(self, q_BHTK: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        rows, columns = self.bias.shape[2:]
        queries, keys = torch.broadcast_tensors(queries[:, :, None], keys[:, None, :])
        for name, positions, size in (("queries", queries, rows), ("keys", keys, columns)):
            if size != 1 and positions.numel() and int(positions.max()) >= size:
                needed = int(positions.max()) + 1
                raise InputError(
                    f"bias of shape {tuple(self.bias.shape)}: it has {size} {name}, but {needed} are attended"
                )
        row = queries if rows > 1 else torch.zeros_like(queries)
        column = keys if columns > 1 else torch.zeros_like(keys)
        batch = torch.arange(self.bias.shape[0], device=self.bias.device).view(-1, 1, 1)
        # indices beside the slice of heads go first, so heads come out last: (B, T, S, H)
        return self.bias[batch, :, row.clamp(min=0), column.clamp(min=0)].permute(0, 3, 1, 2)


class _OfHeads(Relation):
    """A few heads of a relation that is not the same for all."""

    def __init__(self, relation: Relation, heads: Sequence[int]) -> None:
        self.relation, self.heads = relation, list(heads)

    def scores(self, q_BHTK: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        return self.relation.scores(q_BHTK, queries, keys)[:, self.heads]


class Alibi(Relation, nn.Module):
    """Press et al. 2022: each head dislikes distance, by a slope of its own; nothing is learned."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slopes = alibi_slopes(heads)

    def of_heads(self, heads: Sequence[int]) -> Relation:
        return _OfHeads(self, heads)

    def scores(self, q_BHTK: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        slopes = torch.tensor(self.slopes, device=queries.device)
        return -slopes[:, None, None] * _offsets(queries, keys)[:, None].abs()


def alibi_slopes(heads: int) -> list[float]:
    """2^(-8/n), 2^(-16/n), …; for a count that is no power of two, every second of the next power's fills up."""
    whole = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / whole) for i in range(whole)]
    between = [2 ** (-8 * (2 * i + 1) / (2 * whole)) for i in range(heads - whole)]
    return slopes + between


class Buckets(Relation, nn.Module):
    """Raffel et al. 2020 (T5): a learned bias for each head and bucket of distances; far ones share a bucket."""

    def __init__(self, heads: int, *, buckets: int, furthest: int, both_sides: bool) -> None:
        super().__init__()
        self.bias = nn.Embedding(buckets, heads)
        self.buckets, self.furthest, self.both_sides = buckets, furthest, both_sides

    def of_heads(self, heads: Sequence[int]) -> Relation:
        return _OfHeads(self, heads)

    def scores(self, q_BHTK: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        bucket = relative_bucket(
            _offsets(queries, keys), buckets=self.buckets, furthest=self.furthest, both_sides=self.both_sides
        )
        bias: Tensor = self.bias(bucket)
        return bias.permute(0, 3, 1, 2)


def relative_bucket(offsets: Tensor, *, buckets: int, furthest: int, both_sides: bool) -> Tensor:
    """T5's bucket of each offset: near distances have one each, further ones share by their logarithm."""
    later = torch.zeros_like(offsets)
    if both_sides:
        buckets //= 2
        later = (offsets > 0).long() * buckets
        distance = offsets.abs()
    else:
        distance = (-offsets).clamp(min=0)
    near = buckets // 2
    share = (distance.clamp(min=1).float() / near).log() / math.log(furthest / near)
    far = near + (share * (buckets - near)).long()
    return later + torch.where(distance < near, distance, far.clamp(max=buckets - 1))


class Shaw(Relation, nn.Module):
    """Shaw et al. 2018: a learned vector for each distance, clipped, beside every key and every value."""

    reads_weights = True

    def __init__(self, *, key_width: int, value_width: int, furthest: int) -> None:
        super().__init__()
        self.keys = nn.Embedding(2 * furthest + 1, key_width)
        self.vectors = nn.Embedding(2 * furthest + 1, value_width)
        self.furthest = furthest

    def _index(self, queries: Tensor, keys: Tensor) -> Tensor:
        return _offsets(queries, keys).clamp(-self.furthest, self.furthest)[:, None] + self.furthest

    def scores(self, q_BHTK: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        against_BHTR = q_BHTK @ self.keys.weight.T.to(q_BHTK.dtype)  # a trace of a bf16 model looks in float32
        index = self._index(queries, keys)
        return against_BHTR.gather(-1, index.expand(*q_BHTK.shape[:3], index.shape[-1]))

    def of_heads(self, heads: Sequence[int]) -> "Relation":
        """The same for a few of the heads: for a trace."""
        return self

    def values(self, weights_BHTS: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        index = self._index(queries, keys).expand(weights_BHTS.shape)
        empty = weights_BHTS.new_zeros(*weights_BHTS.shape[:3], 2 * self.furthest + 1)
        return empty.scatter_add(-1, index, weights_BHTS) @ self.vectors.weight.to(weights_BHTS.dtype)
