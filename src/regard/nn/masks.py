"""Masks: which query may look at which key, as objects that say what they mean.

A mask knows positions, not matrices: `draw` answers for any query and key positions, so that the same object serves
the whole square (the plain twin), one cached step, or a band of it. Masks compose with `&`: a key is seen if every
part shows it. Shapes: B batch, T queries, S keys, N sequence.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.errors import InputError


class Mask(ABC):
    """What a query may look at."""

    @abstractmethod
    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        """True where the query at a position may see the key at a position.

        `queries` is (B or 1, …, T) and `keys` (B or 1, …, S), whole numbers; the answer is (B or 1, …, T, S).
        """

    def __and__(self, other: "Mask") -> "Mask":
        """Both at once."""
        parts = [part for mask in (self, other) for part in mask.parts if not isinstance(part, Full)]
        return parts[0] if len(parts) == 1 else Both(parts=tuple(parts)) if parts else Full()

    @property
    def parts(self) -> tuple["Mask", ...]:
        """The simple masks that this one is made of."""
        return (self,)

    @property
    def may_blind(self) -> bool:
        """Whether some query of a square might see nothing at all."""
        return False

    @property
    def shift_invariant(self) -> bool:
        """Whether only the distance from query to key counts, so that one drawing serves every place and row."""
        return False

    def check(self, *, batch: int, queries: Tensor, keys: Tensor) -> None:
        """Refuse an input that the mask's own shape does not fit."""
        for part in self.parts:
            if part is not self:
                part.check(batch=batch, queries=queries, keys=keys)

    def matrix(self, queries: int, keys: int | None = None) -> Tensor:
        """The mask drawn whole, (B or 1, T, S): for pictures and for the plain twin."""
        return self.draw(torch.arange(queries)[None], torch.arange(queries if keys is None else keys)[None])


def _offsets(queries: Tensor, keys: Tensor) -> Tensor:
    """How far each key stands after each query, (…, T, S)."""
    return keys[..., None, :] - queries[..., :, None]


@dataclass(frozen=True)
class Full(Mask):
    """Every query sees every key."""

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        return torch.ones_like(_offsets(queries, keys), dtype=torch.bool)

    @property
    def shift_invariant(self) -> bool:
        return True


@dataclass(frozen=True)
class Causal(Mask):
    """No query sees a later key: what lets a decoder learn all its steps at once."""

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        return _offsets(queries, keys) <= 0

    @property
    def shift_invariant(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Padding(Mask):
    """Keys that only fill up a row are not seen. Made by `padding`, from lengths or from a boolean (B, S)."""

    lengths: Tensor | None = None
    kept: Tensor | None = None

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        rows = (-1, *(1,) * (keys.dim() - 1))
        if self.lengths is not None:
            seen = keys < self.lengths.view(rows)
        else:
            assert self.kept is not None
            if not keys.numel():
                return torch.zeros((*queries.shape, 0), dtype=torch.bool, device=keys.device)
            width = self.kept.shape[1]
            index = keys.expand(self.kept.shape[0], *keys.shape[1:]).clamp(0, width - 1)
            seen = self.kept.gather(1, index.flatten(1)).view(index.shape) & (keys < width)
        return seen[..., None, :].expand(*seen.shape[:-1], queries.shape[-1], seen.shape[-1])

    def check(self, *, batch: int, queries: Tensor, keys: Tensor) -> None:
        given = self.lengths if self.lengths is not None else self.kept
        assert given is not None
        if given.shape[0] not in (1, batch):
            raise InputError(f"padding of shape {tuple(given.shape)}: the batch has {batch} rows")
        if self.kept is not None and keys.numel() and int(keys.max()) >= self.kept.shape[1]:
            raise InputError(
                f"padding of shape {tuple(given.shape)}: it has {self.kept.shape[1]} keys, "
                f"but {int(keys.max()) + 1} are attended"
            )

    @cached_property
    def _blinds(self) -> bool:
        lengths = self.lengths if self.lengths is not None else self.kept.sum(1) if self.kept is not None else None
        return lengths is not None and bool((lengths < 1).any())

    @property
    def may_blind(self) -> bool:
        return self._blinds


@dataclass(frozen=True)
class Sliding(Mask):
    """Keys no further than `window` positions to either side."""

    window: int

    def __post_init__(self) -> None:
        _positive(window=self.window)

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        return _offsets(queries, keys).abs() <= self.window

    @property
    def shift_invariant(self) -> bool:
        return True


@dataclass(frozen=True)
class Dilated(Mask):
    """Every `dilation`-th key, and of these no more than `window` to either side."""

    window: int
    dilation: int

    def __post_init__(self) -> None:
        _positive(window=self.window, dilation=self.dilation)

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        offsets = _offsets(queries, keys)
        return (offsets.abs() <= self.window * self.dilation) & (offsets % self.dilation == 0)

    @property
    def shift_invariant(self) -> bool:
        return True


@dataclass(frozen=True)
class GlobalSliding(Mask):
    """A sliding window, and a few positions that see all and that all see."""

    window: int
    positions: tuple[int, ...]

    def __post_init__(self) -> None:
        _positive(window=self.window)
        if min(self.positions, default=0) < 0:
            raise InputError(f"global positions {list(self.positions)}: must be 0 or more")

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        marked = torch.tensor(self.positions, device=keys.device, dtype=keys.dtype)
        everywhere = torch.isin(keys, marked)[..., None, :] | torch.isin(queries, marked)[..., :, None]
        return everywhere | (_offsets(queries, keys).abs() <= self.window)


WINDOWS = (Sliding, Dilated, GlobalSliding)
"""Masks that show what is near: a query without a key near it sees nothing."""


@dataclass(frozen=True, eq=False)
class Matrix(Mask):
    """Any boolean matrix: (T, S), or (B, T, S); a graph's adjacency, say. Rows are queries."""

    seen: Tensor

    def __post_init__(self) -> None:
        if self.seen.dtype != torch.bool or self.seen.dim() not in (2, 3):
            shape = tuple(self.seen.shape)
            raise InputError(
                f"mask of shape {shape} and {self.seen.dtype}: must be boolean, (queries, keys) or with batch"
            )

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        seen = self.seen if self.seen.dim() == 3 else self.seen[None]
        queries, keys = torch.broadcast_tensors(queries[..., :, None], keys[..., None, :])
        row = torch.arange(seen.shape[0], device=seen.device).view(-1, *(1,) * (queries.dim() - 1))
        visible: Tensor = seen[row, queries.clamp(0, seen.shape[1] - 1), keys.clamp(0, seen.shape[2] - 1)]
        return visible

    def check(self, *, batch: int, queries: Tensor, keys: Tensor) -> None:
        shape = tuple(self.seen.shape)
        if self.seen.dim() == 3 and shape[0] not in (1, batch):
            raise InputError(f"mask of shape {shape}: the batch has {batch} rows")
        for name, positions, size in (("queries", queries, shape[-2]), ("keys", keys, shape[-1])):
            if positions.numel() and int(positions.max()) >= size:
                raise InputError(
                    f"mask of shape {shape}: it has {size} {name}, but {int(positions.max()) + 1} are attended"
                )

    @property
    def may_blind(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Documents(Mask):
    """Several documents in one row, none of which sees another. Made by `within_documents`."""

    numbers: Tensor
    """(B, N): which document each place belongs to"""

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        return _at(self.numbers, queries)[..., :, None] == _at(self.numbers, keys)[..., None, :]


@dataclass(frozen=True, eq=False)
class Restarted(Mask):
    """A mask whose positions are counted anew in each document of a row. Made by `within_documents`."""

    mask: Mask
    positions: Tensor
    """(B, N): each place's position in its document"""

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        return self.mask.draw(_at(self.positions, queries), _at(self.positions, keys))


def _at(table_BN: Tensor, places: Tensor) -> Tensor:
    """The table's values at places (B or 1, …); places beyond it, which nobody looks at, read its ends."""
    rows = max(table_BN.shape[0], places.shape[0])
    index = places.expand(rows, *places.shape[1:]).clamp(0, table_BN.shape[1] - 1)
    return table_BN.expand(rows, -1).gather(1, index.flatten(1)).view(index.shape)


@dataclass(frozen=True, eq=False)
class Both(Mask):
    """What all of its parts show. Made by `&`."""

    parts: tuple[Mask, ...] = ()

    def draw(self, queries: Tensor, keys: Tensor) -> Tensor:
        seen = self.parts[0].draw(queries, keys)
        for part in self.parts[1:]:
            seen = seen & part.draw(queries, keys)
        return seen

    @property
    def may_blind(self) -> bool:
        """Any part may; and a window over a padded row shows nothing where only padding is near."""
        padded = any(isinstance(part, Padding) for part in self.parts)
        near = any(isinstance(part, WINDOWS) for part in self.parts)
        left = any(isinstance(part, Padding) and part.kept is not None for part in self.parts)
        return any(part.may_blind for part in self.parts) or (padded and near) or (left and len(self.parts) > 1)

    @property
    def shift_invariant(self) -> bool:
        return all(part.shift_invariant for part in self.parts)


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{name} = {size}: must be 1 or more")


def full() -> Mask:
    """Every query sees every key."""
    return Full()


def causal() -> Mask:
    """No query sees a later key."""
    return Causal()


def padding(kept: Tensor | Sequence[int]) -> Mask:
    """Hide what only fills up a row: from each row's length (B), or from a boolean (B, S), true where a key is real."""
    given = kept if isinstance(kept, Tensor) else torch.tensor(kept)
    if given.dtype == torch.bool and given.dim() == 2:
        return Padding(kept=given)
    if given.dim() == 1 and not given.is_floating_point() and given.dtype != torch.bool:
        return Padding(lengths=given)
    raise InputError(
        f"padding of shape {tuple(given.shape)} and {given.dtype}: must be lengths (B) or a boolean (B, S)"
    )


def sliding(window: int) -> Mask:
    """Keys no further than `window` positions to either side."""
    return Sliding(window)


def dilated(window: int, dilation: int) -> Mask:
    """Every `dilation`-th key, and of these no more than `window` to either side."""
    return Dilated(window, dilation)


def global_sliding(window: int, positions: Sequence[int]) -> Mask:
    """A sliding window, and a few positions that see all and that all see."""
    return GlobalSliding(window, tuple(sorted(set(positions))))


def matrix(seen: Tensor) -> Mask:
    """Any boolean matrix (queries, keys), with a batch in front if rows differ."""
    return Matrix(seen)


def within_documents(mask: Mask, positions: Tensor) -> Mask:
    """The mask inside each document of packed rows; `positions` (B, N) begin at 0 in each document."""
    inside = mask if mask.shift_invariant else Restarted(mask, positions)
    return inside & Documents((positions == 0).cumsum(-1))
