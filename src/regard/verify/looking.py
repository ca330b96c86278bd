"""Equalities of looking: what a trace shows is what the model did, and looking changes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from regard.models import EncoderDecoder, EncoderOnly, Model
from regard.nn import MultiHead, Stack, Trace, attention_formula, padding, view
from regard.nn.trace import KINDS, Head, exact
from regard.verify.certificate import Equality, Measured, difference
from regard.verify.subject import LONG, TOKENS, Inputs, Subject, random_inputs, states


def attentions(model: Model) -> Iterator[tuple[Stack, MultiHead]]:
    """Every attention of a model, with its stack."""
    for stack in model.modules():
        if isinstance(stack, Stack):
            for module in stack.modules():
                if isinstance(module, MultiHead):
                    yield stack, module


@torch.no_grad()
def seen_is_formula(subject: Subject) -> Measured:
    """Every traced row of weights against the whole matrix from the traced queries and keys."""
    for name, model, inputs in _short_and_long(subject):
        trace = Trace(kinds=frozenset({"weights", "queries", "keys", "values"}))
        states(model, inputs, trace=trace)
        longest = max(weights.shape[2] for place, weights in trace.values.items() if place.endswith("weights"))
        picked = Trace(heads=(model.config.heads - 1, 0), rows=(longest - 1, 3, 0))
        states(model, inputs, trace=picked)
        for stack, module in attentions(model):
            place = f"{module.part}.{module.layer}"
            weights = _formula_weights(trace, stack, module, inputs)
            yield f"{name}, {place}", difference(trace[f"{place}.weights"], weights)
            rows = [row for row in (longest - 1, 3, 0) if row < weights.shape[2]]
            part = weights[:, [model.config.heads - 1, 0]][:, :, rows]
            yield f"{name}, {place}, some rows of two heads", difference(picked[f"{place}.weights"], part)


def _formula_weights(trace: Trace, stack: Stack, module: MultiHead, inputs: Inputs) -> Tensor:
    place = f"{module.part}.{module.layer}"
    queries, keys, values = (trace[f"{place}.{kind}"] for kind in ("queries", "keys", "values"))
    queries, keys, values = (heads.to(exact(heads)) for heads in (queries, keys, values))
    relation = None if module.part == "decoder.cross" else module.relation or stack.relation
    mask = stack.mask if module.part == "decoder.self" else padding(inputs.lengths)
    if module.part == "encoder.self":
        mask = mask & stack.mask
    sight = view(mask, queries.shape[2], keys.shape[2], device=queries.device)
    return attention_formula(queries, keys, values, sight, bias=relation).weights


@torch.no_grad()
def seen_gives_output(subject: Subject) -> Measured:
    """The traced weights times the traced values are what the kernels gave in the same forward."""
    for name, model, inputs in _short_and_long(subject):
        trace = Trace(kinds=frozenset({"weights", "values", "head_outputs"}))
        states(model, inputs, trace=trace)
        for _, module in attentions(model):
            place = f"{module.part}.{module.layer}"
            weights = trace[f"{place}.weights"]
            out = weights @ trace[f"{place}.values"].to(weights.dtype)
            if module.relation is not None:
                queries, keys = (torch.arange(size, device=weights.device)[None] for size in weights.shape[2:])
                out = out + module.relation.values(weights, queries, keys)
            yield f"{name}, {place}", difference(trace[f"{place}.head_outputs"], out)


@torch.no_grad()
def looking_changes_nothing(subject: Subject) -> Measured:
    """Everything is traced."""
    for name, model, inputs in _short_and_long(subject):
        plain = states(model, inputs)
        yield name, difference(states(model, inputs, trace=Trace(kinds=frozenset(KINDS))), plain)


@torch.no_grad()
def off_is_zero_columns(subject: Subject) -> Measured:
    """One head of each attention, and two at once."""
    for name, model in subject.models:
        inputs = _inputs(subject, model, TOKENS)
        every: list[Head] = [(each.part, each.layer, each.layer % each.heads) for _, each in attentions(model)]
        for off in (*([head] for head in every), every[:1] + every[-1:]):
            switched = states(model, inputs, trace=Trace(kinds=frozenset(), heads_off=frozenset(off)))
            with without_columns(model, off):
                yield f"{name}, off: {off}", difference(switched, states(model, inputs))


@contextmanager
def without_columns(model: Model, heads: list[Head]) -> Iterator[None]:
    """The model with these heads' columns of W_O at zero; afterwards as it was."""
    kept: list[tuple[Tensor, Tensor]] = []
    for _, module in attentions(model):
        for part, layer, head in heads:
            if (part, layer) == (module.part, module.layer):
                first = head * module.value_width
                columns = module.join.weight.data[:, first : first + module.value_width]
                kept.append((columns, columns.clone()))
                columns.zero_()
    try:
        yield
    finally:
        for columns, values in kept:
            columns.copy_(values)


def _short_and_long(subject: Subject) -> Iterator[tuple[str, Model, Inputs]]:
    """Ordinary inputs for all models, and long ones for those that the subject has for them."""
    for cases, tokens in ((subject.models, TOKENS), (subject.long_models, LONG // 2)):
        for name, model in cases:
            inputs = _inputs(subject, model, tokens)
            yield f"{name}, {inputs.target.shape[1]} tokens", model, inputs


def _inputs(subject: Subject, model: Model, tokens: int) -> Inputs:
    """Two rows, with sources of different lengths where there are sources."""
    inputs = random_inputs(model, subject.draw(), rows=2, tokens=tokens)
    if isinstance(model, EncoderDecoder | EncoderOnly):
        width = inputs.source.shape[1]
        return inputs._replace(lengths=torch.tensor([width - 4, width], device=inputs.lengths.device))
    return inputs


LOOKING = (
    Equality(
        name="observed weights = formula",
        says="the weights in a trace are those of the equation, for all rows and heads or a few",
        bound=1e-6,
        measure=seen_is_formula,
    ),
    Equality(
        name="observed weights give the output",
        says="weights in a trace times values are what the kernels computed in the same forward",
        bound=1e-5,
        measure=seen_gives_output,
    ),
    Equality(
        name="observed = unobserved",
        says="a forward with a trace gives to the last bit what it gives without",
        bound=0.0,
        measure=looking_changes_nothing,
    ),
    Equality(
        name="head off = its columns of W_O at zero",
        says="a head switched off through a trace is a head whose part of the output matrix is zero",
        bound=1e-6,
        measure=off_is_zero_columns,
    ),
)
"""What holds of traces."""
