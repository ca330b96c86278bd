"""The whole calculation, step by step: every vector between a token's embedding and what the last layer makes of it.

The trace of the forward has some of them; the others are computed from those by the model's own modules, and what
comes out at the end of each sub-layer is the residual stream that the trace has (the tests hold them equal).
Shapes: T tokens, S keys, H heads, K d_k, V d_v, D d_model, F d_ff.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.explorer.arrays import Array, Axis, Plain, Some, selected
from regard.explorer.looks import Look, PartShape
from regard.nn import Part
from regard.nn.blocks import activate

DECIMALS = 3
"""of a file's vectors and scores"""
Tell = tuple[str, str, str, str]
"""title, what it says, formula, and how it is drawn: vector, heads, keys, row or mask"""

STEPS: dict[str, Tell] = {
    "embeddings": ("embedding", "the piece's vector from the table, scaled", "E[piece] · √d_model", "vector"),
    "positions": ("position", "what tells the model the place in the sentence", "PE[place]", "vector"),
    "in": ("residual stream", "what this token is so far", "x", "vector"),
    "normed": ("norm", "the same with mean 0 and variance 1, scaled as learned", "norm(x)", "vector"),
    "queries": ("query", "what this token asks for", "q = x W_Q", "heads"),
    "keys": ("keys", "what each token offers to be found by", "k = x W_K", "keys"),
    "values": ("values", "what each token gives if it is found", "v = x W_V", "keys"),
    "products": ("query · key", "how well the query and each key agree", "q · k", "row"),
    "scaled": ("divided by √d_k", "so that wide vectors do not make the softmax too sure", "q · k / √d_k", "row"),
    "biased": ("bias of positions", "what the distance of the two tokens adds", "q · k / √d_k + b", "row"),
    "mask": ("mask", "which keys this token may look at at all", "−∞ where it may not", "mask"),
    "weights": ("softmax", "shares that add up to 1", "w = softmax(scores)", "row"),
    "mixed": ("weighted sum", "the values, each by its share", "Σ w v", "heads"),
    "joined": ("heads side by side, times W_O", "what all heads found together", "concat(heads) W_O", "vector"),
    "inner": ("inside the feed-forward network", "many detectors, after the activation", "act(x W_1)", "vector"),
    "outer": ("feed-forward network", "what this layer knows to add", "act(x W_1) W_2", "vector"),
    "added": ("add", "to what was there before", "x + …", "vector"),
    "out": ("norm", "with mean 0 and variance 1, scaled as learned", "norm(x)", "vector"),
}  # fmt: skip


class Group(NamedTuple):
    """The steps of one sub-layer."""

    name: str
    title: str
    part: Part | None
    layer: int | None
    steps: tuple[str, ...]

    def to_plain(self, *, decoding: bool) -> Plain:
        """For JSON."""
        steps = []
        for step in self.steps:
            title, says, formula, kind = STEPS[step]
            array = f"calculation.{self.name}.{step}"
            if step == "mask":
                array = f"{self.part}.mask"
            elif step == "weights":
                array = f"{self.part}.{self.layer}.weights"
            steps.append(
                {"kind": kind, "name": step, "title": title, "array": array, "says": says, "formula": formula}
            )  # fmt: skip
        if decoding:
            steps.append({"kind": "pieces", "name": "pieces", "title": "the next piece", "section": "decoding",
                          "says": "each piece's share, by how well its embedding agrees with the vector",
                          "formula": "softmax(x Eᵀ)"})  # fmt: skip
        return {"name": self.name, "title": self.title, "part": self.part, "layer": self.layer, "steps": steps}


def stacks(look: Look) -> dict[str, tuple[str, list[Group]]]:
    """For each stack its side and its groups, in order."""
    found: dict[str, tuple[str, list[Group]]] = {}
    for shape in look.parts:
        name = shape.part.split(".")[0]
        if shape.part == "decoder.cross":
            continue
        found[name] = (shape.rows, _groups(look, name, shape, cross=len(look.parts) == 3 and name == "decoder"))
    return found


def _groups(look: Look, name: str, shape: PartShape, *, cross: bool) -> list[Group]:
    pre = look.model.config.norm == "pre"
    before, after = (("normed",) if pre else ()), (() if pre else ("out",))
    first = tuple(kind for kind in ("embeddings", "positions") if f"{name}.{kind}" in look.trace.values)
    groups = [Group(f"{name}.input", "input", None, None, (*first, "in"))]
    for layer in range(shape.layers):
        for part, title in (
            (shape.part, "self-attention"),
            *((("decoder.cross", "cross-attention"),) if cross else ()),
        ):
            biased = ("biased",) if look.relation(part, layer) else ()
            middle = ("queries", "keys", "values", "products", "scaled", *biased, "mask", "weights", "mixed", "joined")
            steps = ("in", *before, *middle, "added", *after)
            groups.append(Group(f"{part}.{layer}", f"layer {layer}: {title}", part, layer, steps))
        steps = ("in", *before, "inner", "outer", "added", *after)
        groups.append(Group(f"{name}.feed_forward.{layer}", f"layer {layer}: feed-forward", None, layer, steps))
    if pre:
        groups.append(Group(f"{name}.norm", "last norm", None, None, ("in", "out")))
    if name == "decoder":
        groups.append(Group("decoder.output", "output", None, None, ()))
    return groups


def calculation(look: Look, rows: dict[str, list[int]] | None = None) -> Plain:
    """The section: which steps there are, in order, and of which tokens (all, unless stated)."""
    return {
        "stacks": {
            name: {
                "side": side,
                "rows": list(range(len(look.sides[side]))) if rows is None else rows[name],
                "groups": [group.to_plain(decoding=group.name == "decoder.output") for group in groups],
            }
            for name, (side, groups) in stacks(look).items()
        }
    }


def calculation_arrays(look: Look) -> dict[str, Array]:
    """Every vector's array."""
    found: dict[str, Array] = {}
    for name, (side, groups) in stacks(look).items():
        for group in groups:
            for step in group.steps:
                if step not in ("mask", "weights"):
                    found[f"calculation.{group.name}.{step}"] = _array(look, name, side, groups, group, step)
    return found


def _array(look: Look, stack: str, side: str, groups: list[Group], group: Group, step: str) -> Array:
    config, tokens = look.model.config, len(look.sides[side])
    shape: tuple[int, ...]
    axes: tuple[Axis, ...]
    match STEPS[step][3]:
        case "row":
            assert group.part is not None
            shape, axes = (config.heads, tokens, len(look.sides[look.shape(group.part).keys])), ("head", "row", "key")
        case "heads":
            width = config.key_width if step == "queries" else config.value_width
            shape, axes = (tokens, config.heads, width), ("row", "head", "value")
        case "keys":
            assert group.part is not None
            width = config.key_width if step == "keys" else config.value_width
            shape, axes = (len(look.sides[look.shape(group.part).keys]), config.heads, width), ("key", "head", "value")
        case _:
            wide = config.d_ff if step == "inner" else config.d_model
            shape, axes = (tokens, wide), ("row", "value")
    place = groups.index(group)

    def make(heads: Some, rows: Some) -> Tensor:
        if STEPS[step][3] == "row":
            return _row(look, group, step, heads, rows)
        if STEPS[step][3] in ("heads", "keys"):
            kind = {"mixed": "head_outputs"}.get(step, step)
            return selected(look.trace[f"{group.name}.{kind}"][0].transpose(0, 1), axes, heads=heads, rows=rows)
        before = residual(look, stack, groups[place - 1]) if place else None
        return vector(look, group, step, rows, before, residual(look, stack, group))

    return Array(shape=shape, axes=axes, make=make, decimals=DECIMALS)


def residual(look: Look, stack: str, group: Group) -> Tensor:
    """The residual stream after a group, (T, D), as the trace has it."""
    trace = look.trace
    if group.name == f"{stack}.input":
        x = trace[f"{stack}.embeddings"]
        x = x + trace[f"{stack}.positions"] if f"{stack}.positions" in trace.values else x
        embedding = look.embedding(stack)
        with torch.no_grad():
            if embedding.segments is not None:
                x = x + embedding.segments.weight[0]
            whole: Tensor = x if embedding.norm is None else embedding.norm(x)
        return whole[0]
    name = f"{stack}.norm.residual" if group.name.endswith(".norm") else f"{group.name}.residual"
    return trace[name][0] if name in trace.values else look.states[0]


@torch.no_grad()
def vector(look: Look, group: Group, step: str, rows: Some, before: Tensor | None, after: Tensor) -> Tensor:
    """One vector of each of these tokens, (rows, D or F)."""

    def those(x: Tensor) -> Tensor:
        return x if rows is None else x[list(rows)]

    stack = group.name.split(".")[0]
    if step in ("embeddings", "positions"):
        return those(look.trace[f"{stack}.{step}"][0])
    if before is None:
        return those(after)
    x = those(before)
    if step == "in":
        return x
    if group.name.endswith(".norm"):
        return those(after)
    layer = look.layer(group.part or look.parts[0].part if stack == "encoder" else "decoder.self", group.layer or 0)
    norms: dict[Part | None, nn.Module | None] = {None: layer.feed_forward_norm, "decoder.cross": layer.cross_norm}
    norm = norms.get(group.part, layer.attention_norm)
    assert norm is not None
    pre = look.model.config.norm == "pre"
    if step == "out":
        return those(after)
    normed: Tensor = norm(x) if pre else x
    if step == "normed":
        return normed
    makers: dict[str, Callable[[], Tensor]] = {
        "inner": lambda: activate(layer.feed_forward.inner(normed), look.model.config.activation),
        "outer": lambda: layer.feed_forward(normed),
        "joined": lambda: joined(look, group, rows),
    }
    if step in makers:
        return makers[step]()
    return x + makers["joined" if group.part else "outer"]()  # added


def joined(look: Look, group: Group, rows: Some) -> Tensor:
    """What the heads found, side by side, times W_O; a head that is off found nothing."""
    assert group.part is not None
    assert group.layer is not None
    outputs = look.trace[f"{group.name}.head_outputs"][0]  # (H, T, V), before heads are switched off
    off = [head for part, layer, head in look.question.heads_off if (part, layer) == (group.part, group.layer)]
    on = outputs.new_ones(outputs.shape[0])
    on[off] = 0
    outputs = (outputs * on[:, None, None]).transpose(0, 1).flatten(1)
    result: Tensor = look.module(group.part, group.layer).join(outputs if rows is None else outputs[list(rows)])
    return result


@torch.no_grad()
def _row(look: Look, group: Group, step: str, heads: Some, rows: Some) -> Tensor:
    """A number for each key, (heads, rows, S)."""
    assert group.part is not None
    assert group.layer is not None
    if step == "biased":
        return look.attended(group.part, group.layer, heads, rows).scores[0]
    queries = selected(look.trace[f"{group.name}.queries"][0], ("head", "row", "value"), heads=heads, rows=rows)
    keys = selected(look.trace[f"{group.name}.keys"][0], ("head", "key", "value"), heads=heads)
    if step == "scaled" and look.relation(group.part, group.layer) is None:
        return look.attended(group.part, group.layer, heads, rows).scores[0]
    scale = 1.0 if step == "products" else float(look.model.config.key_width) ** -0.5
    return (queries * scale) @ keys.transpose(-1, -2)
