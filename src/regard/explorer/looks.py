"""A look: one text in one model, run through it once; every number that the explorer shows is of such a look.

The forward stays on its fast kernels. It keeps the queries, keys and values of all layers and the residual stream;
weights and scores are computed from them for those heads and rows that somebody wants to see, by the same formula as
a trace computes them, so that a long text costs no matrix that nobody looks at.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from regard.errors import InputError
from regard.explorer.arrays import Plain, Some
from regard.explorer.sides import Side, side_of
from regard.models import DecoderOnly, EncoderDecoder, EncoderOnly, Model
from regard.nn import Attended, Head, MultiHead, Part, Relation, Stack, Trace, View, padding, view
from regard.nn.blocks import Embedding, Layer
from regard.nn.trace import observed
from regard.tasks.run import Run
from regard.text import Tokenizer

BEST = "best"
"""the weights that a run keeps, as against a checkpoint's"""
LONGEST = 4096
"""pieces of a side"""
KEPT = frozenset({"queries", "keys", "values", "head_outputs", "embeddings", "positions", "residual"})


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is to be looked at."""

    text: str
    target: str | None = None
    """what a decoder reads; none: what the model writes"""
    tag: str | None = None
    run: int = 0
    weights: str = BEST
    heads_off: frozenset[Head] = frozenset()
    target_ids: tuple[int, ...] | None = None
    """the target in pieces, where they are known; else they are the text's"""
    beam: int | None = None
    """how wide the search for the model's own target is; none: as the recipe says"""


@dataclass(frozen=True, kw_only=True)
class PartShape:
    """One kind of attention of the model."""

    part: Part
    layers: int
    heads: int
    rows: str
    """the side that looks"""
    keys: str
    """the side that is looked at"""
    causal: bool

    def to_plain(self) -> Plain:
        """For JSON."""
        return vars(self).copy()


class Look:
    """One text in one model."""

    def __init__(self, run: Run, question: Question, *, model: Model | None = None) -> None:
        """Run the text through the model (that of the run, unless another with its shape is given)."""
        self.run, self.question, self.model = run, question, model or run.model
        self.device = next(self.model.parameters()).device
        self.sides = self._sides()
        for name, side in self.sides.items():
            at_most(LONGEST, len(side), name)
        for part, layer, head in self.question.heads_off:
            shape = self.shape(part)
            if not (0 <= layer < shape.layers and 0 <= head < shape.heads):
                raise InputError(f"head off ({part}, {layer}, {head}): {part} has {shape.layers} layers of "
                                 f"{shape.heads} heads")  # fmt: skip
        self.trace = Trace(kinds=KEPT, heads_off=self.question.heads_off)
        self.states = self._forward()

    @torch.no_grad()
    def _forward(self) -> Tensor:
        """The states behind the last layer, (1, T, D)."""
        model, ids = self.model, {name: self._tensor(side) for name, side in self.sides.items()}
        lengths = torch.tensor([len(side) for side in list(self.sides.values())[:1]], device=self.device)
        states: Tensor
        match model:
            case EncoderDecoder():
                states = model(ids["source"], lengths, ids["target"], trace=self.trace)
            case EncoderOnly():
                states = model(ids["source"], lengths, trace=self.trace)
            case DecoderOnly():
                states = model(ids["target"], trace=self.trace)
        return states

    def _tensor(self, side: Side) -> Tensor:
        return torch.tensor([side.ids], dtype=torch.int64, device=self.device)

    def _sides(self) -> dict[str, Side]:
        sides: dict[str, Side] = {}
        run, asked = self.run, self.question
        own, others = run.tokenizer, run.source_tokenizer
        if isinstance(self.model, EncoderDecoder):
            sides["source"] = side_of(source_ids(run, asked.text, asked.tag), others)
        elif isinstance(self.model, EncoderOnly):
            ids = [others.specials.begin, *others.encode(prepared(run, asked.text)), others.specials.end]
            return {"source": side_of(ids, others)}
        if asked.target_ids is not None:
            written = list(asked.target_ids)
        else:
            written = own.encode(asked.text if asked.target is None else asked.target)
        sides["target"] = side_of([own.specials.begin, *written], own)
        return sides

    @cached_property
    def parts(self) -> tuple[PartShape, ...]:
        """The kinds of attention that the model has."""
        config = self.model.config
        sides: tuple[tuple[Part, str, str, int], ...] = (
            ("encoder.self", "source", "source", config.encoder_layers),
            ("decoder.self", "target", "target", config.decoder_layers),
            ("decoder.cross", "target", "source", config.decoder_layers),
        )
        return tuple(
            PartShape(
                part=part, layers=layers, heads=config.heads, rows=rows, keys=keys, causal=part == "decoder.self"
            )
            for part, rows, keys, layers in sides
            if rows in self.sides and keys in self.sides
        )  # fmt: skip

    def tokenizer(self, side: str) -> Tokenizer:
        """That of a side."""
        return self.run.source_tokenizer if side == "source" else self.run.tokenizer

    def shape(self, part: str) -> PartShape:
        """The part of that name."""
        for shape in self.parts:
            if shape.part == part:
                return shape
        raise InputError(f"part {part!r}: this model has {', '.join(shape.part for shape in self.parts)}")

    def stack(self, name: str) -> Stack:
        """`encoder` or `decoder`."""
        found = getattr(self.model, name)
        assert isinstance(found, Stack)
        return found

    def embedding(self, stack: str) -> Embedding:
        """What turns a stack's pieces into vectors."""
        if isinstance(self.model, EncoderDecoder):
            return self.model.source_embedding if stack == "encoder" else self.model.target_embedding
        return self.model.embedding

    def layer(self, part: Part, layer: int) -> Layer:
        """The layer that an attention of a part belongs to."""
        found = self.stack(part.split(".")[0]).layers[layer]
        assert isinstance(found, Layer)
        return found

    def module(self, part: Part, layer: int) -> MultiHead:
        """The weights of one attention."""
        its = self.layer(part, layer)
        found = its.cross if part == "decoder.cross" else its.attention
        assert found is not None
        return found

    def sight(self, part: Part) -> View:
        """What the part's rows may look at: as the model's forward had it."""
        shape = self.shape(part)
        rows, keys = len(self.sides[shape.rows]), len(self.sides[shape.keys])
        mask = padding(torch.tensor([keys], device=self.device))
        if part == "encoder.self":
            mask = self.stack("encoder").mask & mask
        elif part == "decoder.self":
            mask = self.stack("decoder").mask
        return view(mask, rows, keys, device=self.device)

    def relation(self, part: Part, layer: int) -> Relation | None:
        """What positions add to the scores."""
        if part == "decoder.cross":
            return None
        return self.module(part, layer).relation or self.stack(part.split(".")[0]).relation

    @torch.no_grad()
    def attended(self, part: Part, layer: int, heads: Some = None, rows: Some = None) -> Attended:
        """Weights and scores of these heads and rows, each (1, heads, rows, S), as a trace has them."""
        shape = self.shape(part)
        chosen = list(range(shape.heads)) if heads is None else list(heads)
        lines = list(range(len(self.sides[shape.rows]))) if rows is None else list(rows)
        place, relation = f"{part}.{layer}", self.relation(part, layer)
        queries, keys, values = (self.trace[f"{place}.{kind}"] for kind in ("queries", "keys", "values"))
        return observed(queries, keys, values, self.sight(part), relation, heads=chosen, rows=lines)

    @torch.no_grad()
    def logits(self, rows: Sequence[int] | None = None) -> Tensor:
        """A score for each next piece at these rows of the target, (rows, pieces), in float64."""
        assert isinstance(self.model, EncoderDecoder | DecoderOnly)
        states = self.states[0] if rows is None else self.states[0, list(rows)]
        return self.model.logits(states).double()

    @property
    def bytes(self) -> int:
        """What is kept in memory."""
        return sum(value.numel() * value.element_size() for value in self.trace.values.values())


def prepared(run: Run, text: str) -> str:
    """The text as the run's data would have it."""
    return text.lower() if run.recipe.data.lowercase else text


def source_ids(run: Run, text: str, tag: str | None) -> list[int]:
    """What an encoder-decoder reads: the tag if there is one, the text, the end."""
    tokenizer = run.source_tokenizer
    first = [] if tag is None else [tokenizer.tag_id(tag)]
    ids = [*first, *tokenizer.encode(prepared(run, text)), tokenizer.specials.end]
    at_most(LONGEST, len(ids), "source")
    return ids


def at_most(limit: int, pieces: int, name: str) -> None:
    """Refuse a side that is too long."""
    if pieces > limit:
        raise InputError(f"{name} of {pieces:,} pieces: the explorer takes {limit:,}")


def with_target(question: Question, ids: Sequence[int]) -> Question:
    """The question with its target in pieces."""
    return replace(question, target_ids=tuple(ids))
