"""A linear probe: a logistic regression on the frozen embeddings of a run, which says what they hold already."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F

from regard.evaluation.labels import LabelScores, score_one, score_several
from regard.tasks.classify import strange_labels
from regard.tasks.embed import Embedder
from regard.tasks.reading import Text, is_blank
from regard.text import LabelledText

PENALTY = 1.0
"""half the weights' squares, times this, are added to the summed loss (scikit-learn's C = 1)"""
STEPS = 200
"""of L-BFGS, at most"""


def probe(
    embedder: Embedder, train: Sequence[LabelledText], test: Sequence[LabelledText], names: Sequence[str], *,
    several: bool = False,
) -> LabelScores:  # fmt: skip
    """Learn the labels of the training texts from their embeddings alone, and score the test texts; blank ones are
    left out, and so are training texts with labels that are not among the names."""
    strange = strange_labels(train, names)
    kept = [row for row in train if not is_blank(_text(row)) and not any(label in strange for label in row.labels)]
    tried = [row for row in test if not is_blank(_text(row))]
    weights = fitted(embedder.embed([_text(row) for row in kept]), _ones(kept, names), several=several)
    logits = embedder.embed([_text(row) for row in tried]).double() @ weights[:-1] + weights[-1]
    chances = (logits.sigmoid() if several else logits.softmax(-1)).numpy()
    right = _ones(tried, names).numpy() > 0
    if several:
        return score_several(chances, right, names)
    return score_one(chances, np.where(right.any(1), right.argmax(1), -1), names)


def fitted(vectors: torch.Tensor, right: torch.Tensor, *, several: bool = False) -> torch.Tensor:
    """The weights (D + 1, L), the last row the biases, of the penalised logistic regression."""
    x, right = vectors.double(), right.double()
    weights = torch.zeros(x.shape[1] + 1, right.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=STEPS, line_search_fn="strong_wolfe", tolerance_grad=1e-6)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logits = x @ weights[:-1] + weights[-1]
        if several:
            total = F.binary_cross_entropy_with_logits(logits, right, reduction="sum")
        else:
            total = F.cross_entropy(logits, right, reduction="sum")
        total = total + PENALTY / 2 * weights[:-1].square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    return weights.detach()


def _ones(rows: Sequence[LabelledText], names: Sequence[str]) -> torch.Tensor:
    return torch.tensor([[float(name in row.labels) for name in names] for row in rows])


def _text(row: LabelledText) -> Text:
    return row.text if row.second is None else (row.text, row.second)
