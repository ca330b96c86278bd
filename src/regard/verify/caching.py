"""Equalities of decoding step by step: the cache against computing everything anew."""

import torch

from regard.models import DecoderOnly, EncoderDecoder
from regard.nn import Cache
from regard.verify.certificate import Equality, Measured, difference
from regard.verify.subject import LONG, TOKENS, Case, Inputs, Subject, decoders, random_inputs, row_of, start, states

PARTS = [[3, 4, 2], [1, 3, 3], [2, 0, 1], [1, 1, 1]]
"""tokens that each of three rows takes, step by step"""


@torch.no_grad()
def cached_is_uncached(subject: Subject) -> Measured:
    """Some tokens at once, then one by one; long inputs under a window also in two large parts."""
    for name, model in decoders(subject.grid):
        inputs = random_inputs(model, subject.draw(), rows=2)
        yield f"{name}, {TOKENS} tokens", _in_parts(model, inputs, [TOKENS // 2] + [1] * (TOKENS - TOKENS // 2))
    for name, model in decoders(subject.long_models):
        inputs = random_inputs(model, subject.draw(), rows=2, tokens=LONG)
        tokens = inputs.target.shape[1]
        first = (tokens - 2) // 2
        yield f"{name}, {tokens} tokens", _in_parts(model, inputs, [first, tokens - 2 - first, 1, 1])


def _in_parts(model: EncoderDecoder | DecoderOnly, inputs: Inputs, parts: list[int]) -> float:
    cache = start(model, inputs, capacity=sum(parts))
    stepped = [model.step(tokens, cache) for tokens in inputs.target.split(parts, dim=1)]
    return difference(torch.cat(stepped, dim=1), states(model, inputs))


@torch.no_grad()
def ragged_is_alone(subject: Subject) -> Measured:
    """Rows of different lengths in one cache, with sources of different lengths."""
    for name, model in decoders(subject.models):
        inputs = _ragged_inputs(model, subject.draw())
        whole = [states(model, row_of(inputs, row))[0] for row in range(3)]
        cache = start(model, inputs, capacity=TOKENS)
        held = [0, 0, 0]
        for counts in PARTS:
            stepped = _step(model, inputs, cache, counts)
            for row, count in enumerate(counts):
                expected = whole[row][held[row] : held[row] + count]
                yield f"{name}, row {row}", difference(stepped[row, :count], expected)
                held[row] += count


@torch.no_grad()
def moved_is_separate(subject: Subject) -> Measured:
    """Rows are joined, reordered, repeated and dropped; each then goes on as if it were alone."""
    for name, model in decoders(subject.models):
        draw = subject.draw()
        inputs, others = _ragged_inputs(model, draw), random_inputs(model, draw, rows=2, source_tokens=TOKENS - 4)
        ours, theirs = start(model, inputs, capacity=TOKENS), start(model, others, capacity=TOKENS - 2)
        _step(model, inputs, ours, PARTS[0])
        model.step(others.target[:, :5], theirs)
        joined = ours.join(theirs)
        order = [4, 1, 0, 1, 3]
        rows = [row_of(inputs, row) for row in range(3)] + [row_of(others, row) for row in range(2)]
        held = [*PARTS[0], 5, 5]
        for moved in (joined.select(order), joined.select(torch.tensor(order)).select([0, 1, 2, 3, 4])):
            for ahead in range(2):
                tokens = torch.cat([rows[row].target[:, held[row] + ahead, None] for row in order])
                stepped = model.step(tokens, moved)
                for place, row in enumerate(order):
                    expected = states(model, rows[row])[0, held[row] + ahead]
                    yield f"{name}, row {row}", difference(stepped[place, 0], expected)


@torch.no_grad()
def future_is_unseen(subject: Subject) -> Measured:
    """Other tokens later on leave the states before them as they are."""
    cases: tuple[Case, ...] = (*subject.models, *subject.long_models)
    for name, model in decoders(cases):
        draw = subject.draw()
        inputs, others = (random_inputs(model, draw, rows=2, tokens=LONG // 2) for _ in range(2))
        half = inputs.target.shape[1] // 2
        changed = torch.cat([inputs.target[:, :half], others.target[:, half:]], dim=1)
        other = states(model, inputs._replace(target=changed))
        yield name, difference(other[:, :half], states(model, inputs)[:, :half])


def _ragged_inputs(model: EncoderDecoder | DecoderOnly, draw: torch.Generator) -> Inputs:
    inputs = random_inputs(model, draw, rows=3)
    return inputs._replace(lengths=torch.tensor([TOKENS - 5, TOKENS, 1], device=inputs.lengths.device))


def _step(model: EncoderDecoder | DecoderOnly, inputs: Inputs, cache: Cache, counts: list[int]) -> torch.Tensor:
    """Each row's next `counts` tokens, filled up with piece 0."""
    tokens = torch.zeros(len(counts), max(counts), dtype=torch.long, device=inputs.target.device)
    for row, (held, count) in enumerate(zip(cache.lengths, counts, strict=True)):
        tokens[row, :count] = inputs.target[row, held : held + count]
    return model.step(tokens, cache, counts=counts)


CACHING = (
    Equality(
        name="cached = uncached",
        says="states of tokens taken step by step from a cache are those of all tokens at once",
        bound=1e-5,
        measure=cached_is_uncached,
    ),
    Equality(
        name="ragged rows = each row alone",
        says="rows of different lengths in one cache do not change one another",
        bound=1e-5,
        measure=ragged_is_alone,
    ),
    Equality(
        name="moved rows = separate rows",
        says="rows that are joined, reordered, repeated or dropped in the cache go on as they would alone",
        bound=1e-5,
        measure=moved_is_separate,
    ),
    Equality(
        name="the future is not seen",
        says="a decoder's states do not depend on later tokens",
        bound=0.0,
        measure=future_is_unseen,
    ),
)
"""What holds of models that decode."""
