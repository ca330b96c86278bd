"""Which heads of cross-attention align, and how sure a model may be: both told from pairs that are known to be right.

Shapes: T target pieces, M source pieces.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding.forced import Given, Writer, force
from regard.decoding.steps import CrossHead
from regard.models import EncoderDecoder

MOST_HEADS = 4
STRENGTH = 1.0
"""counts that a piece's own frequency weighs as much as, where a table of translations is learnt"""


def telling_heads(model: EncoderDecoder, known: Sequence[Given]) -> tuple[CrossHead, ...]:
    """The heads through whose attention the source tells most about the target.

    Every head is read as an aligner: from the first half of the pairs comes a table of which pieces it links, and
    the other half's targets are given probabilities by the table along its links, as IBM's first model does it. The
    best head is taken, then others in order of their scores as long as the mean of all taken scores higher.
    """
    config = model.config
    every = [(layer, head) for layer in range(config.decoder_layers) for head in range(config.heads)]
    links = {head: _Links([each.weights for each in force([model], known, heads=[head])], known) for head in every}
    scores = {head: links[head].likelihood() for head in every}
    ranked = sorted(every, key=lambda head: -scores[head])
    taken, best = [ranked[0]], scores[ranked[0]]
    for head in ranked[1:MOST_HEADS]:
        mean = torch.stack([links[each].weights for each in (*taken, head)]).mean(0)
        score = links[head].likelihood(mean)
        if score > best:
            taken, best = [*taken, head], score
    return tuple(sorted(taken))


class _Links:
    """A head's attention over all pairs, a row for each link of a target piece and a source piece."""

    def __init__(self, seen: Sequence[Tensor | None], known: Sequence[Given]) -> None:
        weights, sources, targets, rows, half = [], [], [], [], []
        count = 0
        for place, (weight, given) in enumerate(zip(seen, known, strict=True)):
            assert weight is not None
            length, width = len(given.written) - 1, len(given.source)  # its end tells nothing
            weights.append(weight[:length].flatten())
            sources.append(torch.tensor(given.source).repeat(length))
            targets.append(torch.tensor(given.written[:-1], dtype=torch.long).repeat_interleave(width))
            rows.append(torch.arange(count, count + length).repeat_interleave(width))
            half.append(torch.full((length * width,), place % 2 == 0))
            count += length
        self.weights, self.half, self.rows = torch.cat(weights), torch.cat(half), torch.cat(rows)
        self.source = torch.cat(sources).unique(return_inverse=True)[1]
        self.target = torch.cat(targets).unique(return_inverse=True)[1]

    def likelihood(self, weights: Tensor | None = None) -> float:
        """Mean log-probability of the second half's target pieces under a table that the first half gave."""
        weights = self.weights if weights is None else weights
        sources, targets = int(self.source.max()) + 1, int(self.target.max()) + 1
        place = self.source * targets + self.target
        table = torch.zeros(sources * targets).index_add_(0, place[self.half], weights[self.half]).view(sources, -1)
        alone = table.sum(0) + 0.1
        alone = alone / alone.sum()
        table = (table + STRENGTH * alone) / (table.sum(1, keepdim=True) + STRENGTH)
        rest = ~self.half
        told = table.flatten()[place[rest]] * weights[rest]
        rows = self.rows[rest].unique(return_inverse=True)[1]
        return float(torch.zeros(int(rows.max()) + 1).index_add_(0, rows, told).clamp(min=1e-9).log().mean())


def fitted_temperature(models: Sequence[Writer], known: Sequence[Given]) -> float:
    """What scores are to be divided by so that known pieces become likeliest: above 1 the model is too sure of itself.

    Guo and others (2017). Found by golden section between 1/4 and 4.
    """

    def loss(log: float) -> float:
        forced = force(models, known, temperature=2.0**log)
        return -sum(sum(each.logps) for each in forced)

    low, high = -2.0, 2.0
    share = (5**0.5 - 1) / 2
    inner, outer = high - share * (high - low), low + share * (high - low)
    losses = loss(inner), loss(outer)
    for _ in range(10):
        if losses[0] < losses[1]:
            high, outer = outer, inner
            inner = high - share * (high - low)
            losses = loss(inner), losses[0]
        else:
            low, inner = inner, outer
            outer = low + share * (high - low)
            losses = losses[1], loss(outer)
    return float(2.0 ** ((low + high) / 2))
