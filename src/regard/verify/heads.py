"""Equalities of attention itself: the kernels against the formula, at the subject's sizes of heads."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from regard.nn import (
    Alibi,
    Buckets,
    Mask,
    Relation,
    Shaw,
    attention,
    attention_formula,
    causal,
    dilated,
    full,
    global_sliding,
    matrix,
    padding,
    sliding,
)
from regard.verify.certificate import Equality, Measured, difference
from regard.verify.subject import LONG, HeadShape, Subject

ROWS = 2
WHOLE = 144
"""queries and keys for the kernels of whole matrices: more than the small-matrix shortcut takes"""


def whole_masks(queries: int, keys: int, draw: torch.Generator) -> Iterator[tuple[str, Mask]]:
    """Masks that are no band."""
    lengths = torch.tensor([keys, keys // 3])
    holes = torch.rand(ROWS, keys, generator=draw) < 0.6
    holes[:, 0] = True
    graph = torch.rand(queries, keys, generator=draw) < 0.3
    yield "full", full()
    yield "padding", padding(lengths)
    yield "padding with holes", padding(holes)
    yield "matrix", matrix(graph)
    yield "matrix of each row, and padding", matrix(torch.stack([graph, ~graph])) & padding(lengths)
    if queries == keys:
        yield "causal", causal()
        yield "causal and padding", causal() & padding(lengths)
        yield "causal and padding on the left", causal() & padding(torch.arange(keys) >= (keys - lengths)[:, None])


def band_masks(tokens: int) -> Iterator[tuple[str, Mask]]:
    """Windows, alone and with what is put together with them."""
    lengths = padding([tokens, tokens // 3])
    for name, mask in (
        ("sliding", sliding(9)),
        ("dilated", dilated(5, 3)),
        ("global", global_sliding(7, (0, tokens // 2, tokens - 2))),
    ):
        yield name, mask
        yield f"{name} and causal", mask & causal()
        yield f"{name} and padding", mask & lengths
        yield f"{name}, causal and padding", mask & causal() & lengths


def relations(shape: HeadShape, draw: torch.Generator, dtype: torch.dtype) -> Iterator[tuple[str, Relation | None]]:
    """What positions can add, with random weights."""
    yield "nothing", None
    yield "alibi", Alibi(shape.heads)
    buckets = Buckets(shape.heads, buckets=8, furthest=20, both_sides=True)
    shaw = Shaw(key_width=shape.key_width, value_width=shape.value_width, furthest=6)
    with torch.no_grad():
        for weights in (*buckets.parameters(), *shaw.parameters()):
            weights.copy_(torch.randn(weights.shape, generator=draw))
    yield "buckets", buckets.to(dtype)
    yield "shaw", shaw.to(dtype)


def random_heads(
    shape: HeadShape, queries: int, keys: int, draw: torch.Generator, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values that ask for their gradients."""
    sizes = (
        (ROWS, shape.heads, queries, shape.key_width),
        (ROWS, shape.key_heads, keys, shape.key_width),
        (ROWS, shape.key_heads, keys, shape.value_width),
    )
    q, k, v = (torch.randn(size, generator=draw).to(dtype).requires_grad_() for size in sizes)
    return q, k, v


def compare(
    shape: HeadShape, queries: int, keys: int, mask: Mask, draw: torch.Generator, dtype: torch.dtype,
    *, relation: Relation | None = None, name: str,
) -> Measured:  # fmt: skip
    """Output, and gradients of queries, keys, values and the relation's weights: kernel against formula."""
    sides = random_heads(shape, queries, keys, draw, dtype)
    learned: list[Tensor] = list(relation.parameters()) if isinstance(relation, torch.nn.Module) else []
    upstream = torch.randn(ROWS, shape.heads, queries, shape.value_width, generator=draw).to(dtype)
    fast = attention(*sides, mask, bias=relation)
    plain = attention_formula(*sides, mask, bias=relation).out
    yield f"{name}: output", difference(fast, plain)
    ours = torch.autograd.grad(fast, [*sides, *learned], upstream)
    theirs = torch.autograd.grad(plain, [*sides, *learned], upstream)
    for side, one, other in zip(("queries", "keys", "values", "relation", "relation"), ours, theirs, strict=False):
        yield f"{name}: gradient of {side}", difference(one, other, by_largest=side == "relation")


def fused_is_formula(subject: Subject) -> Measured:
    """Whole matrices, of as many queries as keys and of fewer; with relations under two of the masks."""
    for shape in subject.shapes:
        draw = subject.draw()
        for queries, keys in ((WHOLE, WHOLE), (WHOLE - 50, 2 * WHOLE)):
            for name, mask in whole_masks(queries, keys, draw):
                for kind, relation in relations(shape, draw, subject.dtype):
                    if relation is None or name in ("full", "causal and padding"):
                        place = f"{shape}, {queries} queries, {keys} keys, {name}, relation: {kind}"
                        yield from compare(
                            shape, queries, keys, mask, draw, subject.dtype, relation=relation, name=place
                        )


def band_is_formula(subject: Subject) -> Measured:
    """Bands; with relations under the masks without padding."""
    for shape in subject.shapes[-2:]:
        draw = subject.draw()
        for name, mask in band_masks(LONG):
            for kind, relation in relations(shape, draw, subject.dtype):
                if relation is None or "padding" not in name:
                    place = f"{shape}, {LONG} tokens, {name}, relation: {kind}"
                    yield from compare(shape, LONG, LONG, mask, draw, subject.dtype, relation=relation, name=place)


def blind_is_zero(subject: Subject) -> Measured:
    """Rows that hide all: an empty row of a batch, an empty row of a matrix, a window over nothing but padding."""
    shape, draw = subject.shapes[0], subject.draw()
    nobody = torch.rand(LONG, LONG, generator=draw) < 0.5
    nobody[::7] = False
    for tokens in (LONG, 40):
        for name, mask in (
            ("an empty text", padding([tokens, 0])),
            ("an empty text, causal", causal() & padding([tokens, 0])),
            ("rows of a matrix", matrix(nobody[:tokens, :tokens])),
            ("a window over padding", sliding(3) & padding([tokens, 9])),
            ("a dilated window over padding", dilated(2, 3) & padding([tokens, 9])),
        ):
            q, k, v = random_heads(shape, tokens, tokens, draw, subject.dtype)
            blind = ~mask.matrix(tokens).any(-1).expand(ROWS, tokens)
            for way, out in (("kernel", attention(q, k, v, mask)), ("formula", attention_formula(q, k, v, mask).out)):
                gradient, *others = torch.autograd.grad(out.square().sum() + out.sum(), (q, k, v))
                at = (blind[:, None].expand(out.shape[:3]),)
                wrong = torch.cat([out[at].flatten(), gradient[at].flatten()]).detach()
                finite = all(bool(side.isfinite().all()) for side in (out, gradient, *others))
                yield f"{name}, {tokens} tokens, {way}", float(wrong.abs().max()) if finite else math.nan


def rows_sum_to_one(subject: Subject) -> Measured:
    """Of queries that see something."""
    draw = subject.draw()
    for shape in subject.shapes:
        for name, mask in (*whole_masks(WHOLE, WHOLE, draw), *band_masks(WHOLE)):
            q, k, v = random_heads(shape, WHOLE, WHOLE, draw, subject.dtype)
            weights = attention_formula(q, k, v, mask).weights
            seeing = mask.matrix(WHOLE).any(-1)[:, None].expand(weights.shape[:3])
            sums = weights.double().sum(-1)[seeing]
            negative = float(-weights.detach().clamp(max=0).min())
            yield f"{shape}, {name}", max(difference(sums, torch.ones_like(sums)), negative)


def within_hull(subject: Subject) -> Measured:
    """Along many directions no output goes further than the furthest value that its query sees."""
    draw = subject.draw()
    for shape in subject.shapes:
        directions = torch.randn(shape.value_width, 12, generator=draw)
        directions = torch.cat([directions / directions.norm(dim=0), torch.eye(shape.value_width)], dim=1)
        for name, mask in (*whole_masks(WHOLE, WHOLE, draw), *band_masks(WHOLE)):
            q, k, v = random_heads(shape, WHOLE, WHOLE, draw, subject.dtype)
            with torch.no_grad():
                out = attention(q, k, v, mask).float() @ directions
                values = v.float().repeat_interleave(shape.heads // shape.key_heads, dim=1) @ directions
            seen = mask.matrix(WHOLE).expand(ROWS, -1, -1)
            seeing = seen.any(-1)[:, None].expand(out.shape[:3])
            beyond = 0.0
            for direction in range(directions.shape[1]):
                along = values[:, :, None, :, direction]
                furthest = along.masked_fill(~seen[:, None], -math.inf).amax(-1)
                beyond = max(beyond, float((out[..., direction] - furthest)[seeing].max()))
            yield f"{shape}, {name}", beyond


def order_of_keys(subject: Subject) -> Measured:
    """Keys and values in another order give the same; queries in another order give that order."""
    draw = subject.draw()
    for shape in subject.shapes:
        for tokens in (40, WHOLE):
            q, k, v = random_heads(shape, tokens, tokens, draw, subject.dtype)
            order = torch.randperm(tokens, generator=draw)
            out = attention(q, k, v)
            yield f"{shape}, keys", difference(attention(q, k[:, :, order], v[:, :, order]), out)
            yield f"{shape}, queries", difference(attention(q[:, :, order], k, v), out[:, :, order])


HEADS = (
    Equality(
        name="fused kernel = formula",
        says="attention's fast way gives what the equation gives, gradients included, under every mask and relation",
        bound=1e-5,
        measure=fused_is_formula,
    ),
    Equality(
        name="band = formula",
        says="windowed, dilated and global attention in bands gives what the whole matrix gives, gradients included",
        bound=1e-5,
        measure=band_is_formula,
    ),
    Equality(
        name="seeing nothing = zeros",
        says="a query that may see no key gets zeros and sends back a gradient of zero, never NaN",
        bound=0.0,
        measure=blind_is_zero,
    ),
    Equality(
        name="weights of a query sum to one",
        says="each row of attention weights is a distribution: nothing below zero, and one in all",
        bound=1e-6,
        measure=rows_sum_to_one,
    ),
    Equality(
        name="outputs lie among the values",
        says="what a query finds lies in the convex hull of the values that it sees",
        bound=1e-5,
        measure=within_hull,
    ),
    Equality(
        name="attention sees a set",
        says="without positions the order of keys changes nothing, and outputs follow the order of queries",
        bound=1e-5,
        measure=order_of_keys,
    ),
)
"""What holds of one attention."""
