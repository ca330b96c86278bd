"""What is verified: the model of a run, or tiny random models of every family built here.

Also the random inputs that all equalities draw, and the few calls in which the families differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from regard.config import Family, ModelConfig
from regard.config.model import Pattern, Positions
from regard.errors import InputError
from regard.models import DecoderOnly, EncoderDecoder, EncoderOnly, Model, build_model
from regard.nn import Cache, Trace
from regard.runs import open_run

TOKENS = 11
"""tokens of an ordinary input; every model has to take as many"""
LONG = 300
"""tokens of an input for which windows are computed in bands and no small-matrix shortcut is taken"""

FAMILIES: tuple[Family, ...] = get_args(Family)
KINDS: tuple[Positions, ...] = get_args(Positions)
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)


class Case(NamedTuple):
    """A model and what to call it."""

    name: str
    model: Model


class HeadShape(NamedTuple):
    """The sizes of one attention."""

    heads: int
    key_heads: int
    key_width: int
    value_width: int


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Models and attention sizes to verify, and the seed that all inputs are drawn from."""

    name: str
    grid: tuple[Case, ...]
    """every combination: for the equality that most depends on them"""
    models: tuple[Case, ...]
    """fewer, among which every family, kind of position, norm and pattern is found"""
    long_models: tuple[Case, ...]
    """for inputs of LONG tokens"""
    shapes: tuple[HeadShape, ...]
    seed: int
    specials: tuple[int, int] | None = None
    """a run's ids of begin and end; without a run any will do"""
    folder: Path | None = None
    """a run's"""

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        return self.models[0].model.parameters().__next__().dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.models[0].model.parameters().__next__().device

    def draw(self) -> torch.Generator:
        """A fresh stream of random numbers: what one equality draws does not depend on the others."""
        return torch.Generator().manual_seed(self.seed)


class Inputs(NamedTuple):
    """Random ids: a source with its lengths (rows full by default), and a target as long."""

    source: Tensor
    lengths: Tensor
    target: Tensor


def run_subject(folder: str | Path, *, seed: int = 1) -> Subject:
    """The model of a run folder."""
    stored = open_run(folder)
    model, specials = stored.model, stored.tokenizer.specials
    if model.config.max_length < TOKENS:
        raise InputError(f"{folder}: model.max_length = {model.config.max_length}: verify needs {TOKENS} or more")
    case = Case(str(folder), model)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Subject(
        name=f"{folder}: {model.config.family}, {parameters:,} parameters",
        grid=(case,),
        models=(case,),
        long_models=(case,),
        shapes=(shape_of(model.config),),
        seed=seed,
        specials=(specials.begin, specials.end),
        folder=Path(folder),
    )


def built_in_subject(*, seed: int = 1) -> Subject:
    """Tiny random models: every family with every kind of position, norm and pattern."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        grid = {(family, *rest): _tiny(family, *rest) for family in FAMILIES for rest in product(KINDS, *_OTHERS)}
        long = tuple(
            _tiny(family, positions, "pre", attention, window=9)
            for family, (positions, attention) in product(FAMILIES, zip(_LONG_KINDS, PATTERNS, strict=True))
        )
    fewer = [
        grid[family, kind, ("pre", "post")[number // 2 % 2], PATTERNS[number % 4]]
        for family in FAMILIES
        for number, kind in enumerate(KINDS)
    ]
    without_order = [grid[family, "none", norm, "full"] for family in FAMILIES for norm in ("pre", "post")]
    models = tuple({case.name: case for case in [*fewer, *without_order]}.values())
    return Subject(
        name=f"{len(grid)} tiny random models: every family, kind of position, norm and attention pattern",
        grid=tuple(grid.values()),
        models=models,
        long_models=long,
        shapes=_SHAPES,
        seed=seed,
    )


_OTHERS = (("pre", "post"), PATTERNS)
_SHAPES = (HeadShape(4, 4, 4, 4), HeadShape(3, 3, 8, 5), HeadShape(6, 2, 4, 6))
_LONG_KINDS: tuple[Positions, ...] = ("shaw", "sinusoidal", "alibi", "rotary")
"""Kinds for long inputs. Not index: entries of 300 leave a float32 no digits for the rest."""


def _tiny(family: Family, positions: Positions, norm: str, attention: Pattern, *, window: int = 2) -> Case:
    """A model of two layers whose other settings vary with the kind of position, so that all of them are met."""
    number = KINDS.index(positions)
    config = ModelConfig(
        family=family,
        vocabulary=23,
        source_vocabulary=19 if family == "encoder-decoder" and number % 3 else None,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        heads=4,
        kv_heads=(None, 2, 1)[number % 3],
        d_v=(None, 6)[number % 2],
        d_ff=24,
        dropout=0.0,
        norm="pre" if norm == "pre" else "post",
        norm_kind=("layer", "rms")[number % 2],
        activation=("relu", "gelu", "gelu_tanh", "silu", "swiglu")[number % 5],
        biases=number % 4 != 3,
        positions=positions,
        max_length=512,
        relative_buckets=8,
        relative_distance=6,
        attention=attention,
        window=window,
        dilation=2,
        global_positions=(0, 5),
        embeddings=("tied_all", "tied_output", "separate")[number % 3],
        embedding_norm=number % 4 == 1,
        output_bias=number % 2 == 1,
        labels=3,
        pooling=("first", "mean", "attention")[number % 3],
        pooled_layer=number % 2 == 0,
    )
    model = build_model(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # else biases and norms would hide their faults behind zeros and ones
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return Case(f"{family}, {positions} positions, {norm}-norm, {attention} attention", model)


def shape_of(config: ModelConfig) -> HeadShape:
    """The sizes of a model's attention."""
    return HeadShape(config.heads, config.key_heads, config.key_width, config.value_width)


def random_inputs(
    model: Model, draw: torch.Generator, *, rows: int, tokens: int = TOKENS, source_tokens: int | None = None
) -> Inputs:
    """Ids of the model's own vocabularies."""
    pieces = model.config.vocabulary or 1
    device = next(model.parameters()).device
    longest = min(tokens, model.config.max_length)
    source_longest = min(source_tokens or tokens, model.config.max_length)
    source = torch.randint(model.config.source_vocabulary or pieces, (rows, source_longest), generator=draw)
    target = torch.randint(pieces, (rows, longest), generator=draw)
    return Inputs(
        source=source.to(device),
        lengths=torch.full((rows,), source.shape[1], device=device),
        target=target.to(device),
    )


def states(model: Model, inputs: Inputs, *, trace: Trace | None = None) -> Tensor:
    """The model's states, all tokens at once: of the target, or for an encoder alone of the source."""
    out: Tensor
    match model:
        case EncoderDecoder():
            out = model(inputs.source, inputs.lengths, inputs.target, trace=trace)
        case EncoderOnly():
            out = model(inputs.source, inputs.lengths, trace=trace)
        case DecoderOnly():
            out = model(inputs.target, trace=trace)
    return out


def start(model: EncoderDecoder | DecoderOnly, inputs: Inputs, *, capacity: int) -> Cache:
    """An empty cache for the inputs' rows."""
    if isinstance(model, EncoderDecoder):
        return model.start(inputs.source, inputs.lengths, capacity=capacity)
    return model.start(rows=len(inputs.target), capacity=capacity)


def row_of(inputs: Inputs, row: int) -> Inputs:
    """One row alone, its source cut to its own length."""
    length = int(inputs.lengths[row])
    return Inputs(
        source=inputs.source[row : row + 1, :length],
        lengths=inputs.lengths[row : row + 1],
        target=inputs.target[row : row + 1],
    )


def decoders(cases: tuple[Case, ...]) -> Iterator[tuple[str, EncoderDecoder | DecoderOnly]]:
    """The models that decode step by step."""
    for name, model in cases:
        if not isinstance(model, EncoderOnly):
            yield name, model
