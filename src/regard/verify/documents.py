"""Equalities of language models: documents that share a row, and texts longer than what a window remembers."""

from collections.abc import Iterator

import torch

from regard.models import DecoderOnly
from regard.nn.windowed import STEP, WindowCache
from regard.verify.certificate import Equality, Measured, difference
from regard.verify.subject import Case, Subject, random_inputs

SIZES = ((4, 1, 6), (2, 9))
"""pieces of the documents that share each row"""
WINDOWS = 11
"""how many times the window's length is read"""
PARTS = (1, 3, STEP)
"""pieces that are read at a time, in turns"""


@torch.no_grad()
def packed_is_alone(subject: Subject) -> Measured:
    """Rows of several documents, each beginning anew at position 0."""
    for name, model in _language_models(subject.models):
        tokens = random_inputs(model, subject.draw(), rows=len(SIZES)).target
        device = tokens.device
        positions = [[place for size in sizes for place in range(size)] for sizes in SIZES]
        together = model(tokens, positions_BT=torch.tensor(positions, device=device))
        for row, sizes in enumerate(SIZES):
            begin = 0
            for size in sizes:
                alone = model(tokens[row : row + 1, begin : begin + size])
                yield f"{name}, document of {size}", difference(together[row : row + 1, begin : begin + size], alone)
                begin += size


@torch.no_grad()
def window_is_enough(subject: Subject) -> Measured:
    """Eleven windows, read in parts; and the memory that twice as many would take."""
    for name, model in _language_models((*subject.models, *subject.long_models)):
        config = model.config
        if not isinstance(model.start(rows=1, capacity=STEP, bounded=True), WindowCache):
            continue
        reached = WINDOWS * config.window * (config.dilation if config.attention == "dilated" else 1)
        tokens = random_inputs(model, subject.draw(), rows=2, tokens=reached).target
        capacity = max(STEP, tokens.shape[1])
        cache, longer = (model.start(rows=2, capacity=times * capacity, bounded=True) for times in (1, 2))
        parts = [model.step(part, cache) for part in tokens.split(_sizes(tokens.shape[1]), dim=1)]
        yield f"{name}, {tokens.shape[1]} pieces", difference(torch.cat(parts, dim=1), model(tokens))
        ours, theirs = (sum(side.numel() for side in (*one.keys, *one.values)) for one in (cache, longer))
        yield f"{name}, numbers held", float(abs(ours - theirs))


def _sizes(whole: int) -> list[int]:
    """Parts that make up the whole."""
    sizes: list[int] = []
    while whole:
        sizes.append(min(whole, PARTS[len(sizes) % len(PARTS)]))
        whole -= sizes[-1]
    return sizes


def _language_models(cases: tuple[Case, ...]) -> Iterator[tuple[str, DecoderOnly]]:
    for name, model in cases:
        if isinstance(model, DecoderOnly):
            yield name, model


DOCUMENTS = (
    Equality(
        name="packed = each document alone",
        says="documents that share a row do not see one another: each has the states that it has alone",
        bound=1e-5,
        measure=packed_is_alone,
    ),
    Equality(
        name="windowed cache = whole text",
        says="under a window a cache of constant size gives the states of the whole text, at ten windows' length too",
        bound=1e-5,
        measure=window_is_enough,
    ),
)
"""What holds of a decoder alone."""
