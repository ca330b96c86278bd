"""A trace: what somebody wants to see of one forward, and what it showed.

It is passed down (`trace=None` by default); there are no hooks and no switches. The forward itself stays on its fast
kernels: what is asked for is computed beside it from the same queries, keys and mask.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from regard.errors import InputError, nearest
from regard.nn.attention import Attended, attention_formula
from regard.nn.relations import Relation
from regard.nn.views import View

Part = Literal["encoder.self", "decoder.self", "decoder.cross"]
PARTS: tuple[Part, ...] = ("encoder.self", "decoder.self", "decoder.cross")
KINDS = (
    "weights", "scores", "queries", "keys", "values", "head_outputs",  # of each attention, under its part and layer
    "embeddings", "positions", "residual", "logits",  # of a stack
)  # fmt: skip

Head = tuple[Part, int, int]
"""Part, layer, head."""


@dataclass(kw_only=True, eq=False)
class Trace:
    """What to keep, and after the forward the kept values by name, such as `decoder.cross.3.weights`.

    `None` means all, for parts, layers, heads and rows alike; rows are queries, counted in the tokens of this forward.
    Shapes: weights and scores (B, heads, rows, S); queries, keys, values, head_outputs (B, heads, T or S, width);
    embeddings, positions and residual (B, T, D); logits (B, T, pieces).
    """

    kinds: frozenset[str] = frozenset({"weights"})
    parts: tuple[Part, ...] | None = None
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    rows: tuple[int, ...] | None = None
    heads_off: frozenset[Head] = frozenset()
    """heads whose output is replaced by zeros in this forward"""
    values: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no forward can show."""
        for kind in self.kinds:
            if kind not in KINDS:
                raise InputError(f"trace of {kind!r}: {nearest(kind, KINDS)}")
        for part in (*(self.parts or ()), *(head[0] for head in self.heads_off)):
            if part not in PARTS:
                raise InputError(f"trace of part {part!r}: {nearest(part, PARTS)}")

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.values:
            raise InputError(f"trace has no {name!r}: {nearest(name, self.values) if self.values else 'it is empty'}")
        return self.values[name]

    def keep(self, name: str, value: Callable[[], Tensor] | Tensor | None) -> None:
        """Keep a stack's value if its kind is asked for; the kind is the name's last word."""
        if value is not None and name.rsplit(".", 1)[-1] in self.kinds:
            self.values[name] = (value() if callable(value) else value).detach().clone()

    def residual(self, part: str, layer: int, value: Tensor) -> None:
        """Keep the residual stream after a sub-layer; `encoder.feed_forward` and the like for the last."""
        if self.layers is None or layer in self.layers:
            self.keep(f"{part}.{layer}.residual", value)

    def check(self, part: Part, layers: int, heads: int) -> None:
        """Refuse a layer or head that a part of a stack does not have."""
        looked_at = self.parts is None or part in self.parts
        for name, asked, size in (("layer", self.layers, layers), ("head", self.heads, heads)):
            for number in (asked or ()) if looked_at else ():
                if not 0 <= number < size:
                    raise InputError(f"trace of {name} {number}: {part} has {name}s 0 to {size - 1}")
        for off_part, layer, head in self.heads_off:
            if off_part == part and not (0 <= layer < layers and 0 <= head < heads):
                raise InputError(f"head off ({off_part}, {layer}, {head}): {part} has {layers} layers of {heads} heads")

    def attention(
        self, part: Part, layer: int, *, queries: Tensor, keys: Tensor, values: Tensor, out: Tensor,
        sight: View, relation: Relation | None,
    ) -> Tensor:  # fmt: skip
        """See one attention as it happens; gives its output back, with the heads that are off at zero."""
        if (self.layers is None or layer in self.layers) and (self.parts is None or part in self.parts):
            self._look(f"{part}.{layer}", queries, keys, values, out, sight, relation)
        off = [head for off_part, off_layer, head in self.heads_off if (off_part, off_layer) == (part, layer)]
        if not off:
            return out
        on = torch.ones(out.shape[1], device=out.device, dtype=out.dtype)
        on[off] = 0
        return out * on[:, None, None]

    def _look(
        self,
        place: str,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        out: Tensor,
        sight: View,
        relation: Relation | None,
    ) -> None:
        heads = list(range(queries.shape[1])) if self.heads is None else list(self.heads)
        owners = owners_of(heads, queries, keys)
        for kind, value, wanted in (
            ("queries", queries, heads), ("keys", keys, owners), ("values", values, owners),
            ("head_outputs", out, heads),
        ):  # fmt: skip
            self.keep(f"{place}.{kind}", value[:, wanted])
        if not self.kinds & {"weights", "scores"}:
            return
        rows = (
            list(range(queries.shape[2])) if self.rows is None else [row for row in self.rows if row < queries.shape[2]]
        )
        seen = observed(queries, keys, values, sight, relation, heads=heads, rows=rows)
        self.keep(f"{place}.weights", seen.weights)
        self.keep(f"{place}.scores", seen.scores)


def observed(
    q_BHTK: Tensor, k_BGSK: Tensor, v_BGSV: Tensor, sight: View, relation: Relation | None, *,
    heads: Sequence[int], rows: Sequence[int],
) -> Attended:  # fmt: skip
    """The formula for these heads and queries, exact: computed in float64, given in float32 (or the model's float64).

    The scores of a trained head reach tens, where a float32 has rounded the fifth digit behind the point: a row alone
    and the same row among others, multiplied in another order, would differ in weights by more than a millionth.
    """
    fine, shown = exact(q_BHTK), torch.promote_types(q_BHTK.dtype, torch.float32)
    owners = owners_of(heads, q_BHTK, k_BGSK)
    seen = attention_formula(
        q_BHTK[:, heads][:, :, rows].to(fine), k_BGSK[:, owners].to(fine), v_BGSV[:, owners].to(fine),
        sight.rows(rows), bias=relation.of_heads(heads) if relation else None,
    )  # fmt: skip
    return Attended(*(value.to(shown) for value in seen))


def exact(x: Tensor) -> torch.dtype:
    """The finest type of numbers that the device of `x` has."""
    return torch.float32 if x.device.type == "mps" else torch.float64


def owners_of(heads: Sequence[int], q_BHTK: Tensor, k_BGSK: Tensor) -> list[int]:
    """The key head of each of these query heads."""
    shared = q_BHTK.shape[1] // k_BGSK.shape[1]
    return [head // shared for head in heads]
