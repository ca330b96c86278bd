"""Given answers forced through the model: the log-probability of each piece, and what observed heads look at.

One forward over whole answers, without a cache: what a search found is scored and aligned by it as exactly as a text
that somebody wrote. Shapes: B rows, T pieces, V vocabulary, M source pieces.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.decoding.request import Ids
from regard.decoding.steps import CrossHead, padded
from regard.models import DecoderOnly, EncoderDecoder
from regard.nn import Trace

TOKENS = 8192
"""pieces of both sides, padding included, that are computed together"""

Writer = EncoderDecoder | DecoderOnly


class Given(NamedTuple):
    """An answer to force."""

    source: Ids
    """end included; of a decoder alone empty"""
    read: Ids
    """what the decoder reads before"""
    written: Ids
    """what is scored: with the end, if the answer has one"""


class Forced(NamedTuple):
    """What came of it."""

    logps: list[float]
    """log-probability of each written piece"""
    weights: Tensor | None
    """(T, M) the observed heads' mean attention while each written piece was told, if heads were observed"""


@torch.no_grad()
def force(
    models: Sequence[Writer], given: Sequence[Given], *, heads: Sequence[CrossHead] = (), temperature: float = 1.0,
) -> list[Forced]:  # fmt: skip
    """Each answer's, in order; of several models the mean of their probabilities and of their attention.

    `temperature` divides the scores of pieces before their softmax.
    """
    found: list[Forced | None] = [None] * len(given)
    order = sorted(range(len(given)), key=lambda row: (len(given[row].written), len(given[row].source)))
    while order:
        longest = _size(given[order[-1]])
        rows, order = order[-max(1, TOKENS // longest) :], order[: -max(1, TOKENS // longest)]
        for row, forced in zip(rows, _batch(models, [given[row] for row in rows], heads, temperature), strict=True):
            found[row] = forced
    return [each for each in found if each is not None]


def _batch(
    models: Sequence[Writer], given: Sequence[Given], heads: Sequence[CrossHead], temperature: float
) -> list[Forced]:
    device = models[0].output[0].device
    told, _ = padded([each.written or (0,) for each in given], device)
    sides = [_logps(model, given, heads, temperature) for model in models]
    chances = torch.stack([logp for logp, _ in sides]).logsumexp(0) - torch.tensor(len(models)).log()
    weights = torch.stack([seen for _, seen in sides if seen is not None]).mean(0) if heads else None
    lengths = [len(each.written) for each in given]
    picked = chances.gather(-1, told[:, :, None])[..., 0].tolist()
    return [
        Forced(
            logps[:length], weights[row, :length, : len(each.source)].cpu() if weights is not None else None
        )
        for row, (each, logps, length) in enumerate(zip(given, picked, lengths, strict=True))
    ]  # fmt: skip


def _logps(
    model: Writer, given: Sequence[Given], heads: Sequence[CrossHead], temperature: float
) -> tuple[Tensor, Tensor | None]:
    """(B, T, V) of the written pieces, and (B, T, M)."""
    device = model.output[0].device
    read, _ = padded([[*each.read, *each.written[:-1]] for each in given], device)
    trace = Trace(
        parts=("decoder.cross",), layers=tuple(sorted({layer for layer, _ in heads})),
        heads=tuple(sorted({head for _, head in heads})),
    )  # fmt: skip
    if isinstance(model, EncoderDecoder):
        source, lengths = padded([each.source for each in given], device)
        states = model(source, lengths, read, trace=trace if heads else None)
    else:
        states = model(read)
    longest = max(1, *(len(each.written) for each in given))
    first = torch.tensor([len(each.read) - 1 for each in given], device=device)
    places = (first[:, None] + torch.arange(longest, device=device)).clamp(max=read.shape[1] - 1)
    told = states.gather(1, places[:, :, None].expand(-1, -1, states.shape[2]))
    logps: Tensor = (model.logits(told).float() / temperature).log_softmax(-1)
    if not heads:
        return logps, None
    layers = [trace[f"decoder.cross.{layer}.weights"][:, (trace.heads or ()).index(head)] for layer, head in heads]
    seen = torch.stack(layers).mean(0)
    return logps, seen.gather(1, places[:, :, None].expand(-1, -1, seen.shape[2]))


def _size(given: Given) -> int:
    return len(given.source) + len(given.read) + len(given.written) + 1
