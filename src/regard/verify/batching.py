"""Equalities of batches: who else is in it, and how far its rows are filled up, changes nothing."""

import torch
from torch import Tensor

from regard.models import EncoderDecoder, EncoderOnly, Model
from regard.verify.certificate import Equality, Measured, difference
from regard.verify.subject import TOKENS, Inputs, Subject, random_inputs, row_of, states


@torch.no_grad()
def one_is_many(subject: Subject) -> Measured:
    """Rows of one length, all at once and each alone; of an encoder alone its pooled vector too."""
    for name, model in subject.models:
        inputs = random_inputs(model, subject.draw(), rows=5)
        many = states(model, inputs)
        for row in range(5):
            alone = row_of(inputs, row)
            yield f"{name}, row {row}", difference(states(model, alone), many[row : row + 1])
            if isinstance(model, EncoderOnly):
                pooled = model.pool(many, inputs.lengths)[row : row + 1]
                yield f"{name}, row {row}, pooled", difference(pooled, _pooled(model, alone))


@torch.no_grad()
def padded_is_unpadded(subject: Subject) -> Measured:
    """Sources of different lengths, filled up with random pieces; of an encoder alone its pooled vector too."""
    for name, model in subject.models:
        if not isinstance(model, EncoderDecoder | EncoderOnly):
            continue
        inputs = random_inputs(model, subject.draw(), rows=4)
        inputs = inputs._replace(lengths=torch.tensor([4, TOKENS, 1, TOKENS - 2], device=inputs.lengths.device))
        many = states(model, inputs)
        for row in range(4):
            alone = row_of(inputs, row)
            real = alone.source.shape[1] if isinstance(model, EncoderOnly) else many.shape[1]
            yield f"{name}, row {row}", difference(many[row : row + 1, :real], states(model, alone))
            if isinstance(model, EncoderOnly):
                pooled = model.pool(many, inputs.lengths)[row : row + 1]
                yield f"{name}, row {row}, pooled", difference(pooled, _pooled(model, alone))


def _pooled(model: EncoderOnly, inputs: Inputs) -> Tensor:
    return model.pool(states(model, inputs), inputs.lengths)


@torch.no_grad()
def order_without_positions(subject: Subject) -> Measured:
    """For encoders without positions and with full attention."""
    for name, model in subject.models:
        if not _orderless(model):
            continue
        draw = subject.draw()
        inputs = random_inputs(model, draw, rows=2)
        order = torch.randperm(inputs.source.shape[1], generator=draw)
        other = states(model, inputs._replace(source=inputs.source[:, order]))
        same = states(model, inputs)
        yield name, difference(other, same[:, order] if isinstance(model, EncoderOnly) else same)


def _orderless(model: Model) -> bool:
    """Whether nothing tells an encoder the order of its input."""
    config = model.config
    return config.family != "decoder-only" and config.positions == "none" and config.attention == "full"


BATCHING = (
    Equality(
        name="batch of one = batch of many",
        says="a text's states do not depend on what else is in the batch",
        bound=1e-5,
        measure=one_is_many,
    ),
    Equality(
        name="padded = unpadded",
        says="what a row is filled up with behind its end changes none of its states",
        bound=1e-5,
        measure=padded_is_unpadded,
    ),
    Equality(
        name="permuted input = permuted output",
        says="without positions an encoder's states follow the order of its input, and a decoder's stay as they are",
        bound=1e-5,
        measure=order_without_positions,
    ),
)
"""What holds of batches."""
