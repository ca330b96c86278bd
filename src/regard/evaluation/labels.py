"""Scores of labels: accuracy, F1, the confusion matrix, and whether probabilities are what they say (calibration).

Probabilities and right labels in, numbers out: where they come from is not known here. A right label that the
classifier does not know is the number -1: no answer is right there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError

BINS = 15
"""of equal width, for calibration (Guo et al. 2017)"""
UNKNOWN = -1
CHOSEN = 0.5
"""probability from which a label is chosen, where texts may have several"""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LabelScore:
    """How well one label is told."""

    name: str
    precision: float
    recall: float
    f1: float
    texts: int
    """that have it"""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Answers of like confidence."""

    low: float
    high: float
    answers: int
    confidence: float
    """their mean probability"""
    accuracy: float
    """how many of them are right"""


@dataclass(frozen=True, kw_only=True)
class LabelScores:
    """All of a text's scores."""

    texts: int
    accuracy: float
    """share of the texts whose label, or whose set of labels, is right to the last"""
    macro_f1: float
    """mean of the labels' F1: each label counts the same"""
    micro_f1: float
    """F1 of all answers together; with one label a text it is the accuracy, but for unknown labels"""
    loss: float
    """mean -log p of what is right; unknown labels aside"""
    ece: float
    """expected calibration error: how far confidence and accuracy are apart, on average over the answers"""
    labels: tuple[LabelScore, ...]
    bins: tuple[Bin, ...]
    confusion: tuple[tuple[int, ...], ...] | None
    """row i, column j: texts with label i that were told to have j; none where texts may have several labels"""
    unknown: int
    """texts whose label is not known, all counted as wrong"""


def score_one(probabilities: Numbers, right: NDArray[np.int64], names: Sequence[str]) -> LabelScores:
    """Of texts with one label each: probabilities (N, L) and the right label's number (N,)."""
    _check(probabilities, right, names)
    told = probabilities.argmax(1)
    known = right != UNKNOWN
    confusion = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(confusion, (right[known], told[known]), 1)
    hits = told == right
    labels = [
        _label(name, int(confusion[i, i]), int((told == i).sum()), int((right == i).sum()))
        for i, name in enumerate(names)
    ]  # fmt: skip
    bins = _bins(probabilities.max(1), hits)
    chances = probabilities[known, right[known]]
    return LabelScores(
        texts=len(right), accuracy=float(hits.mean()), macro_f1=_macro(labels),
        micro_f1=_f1(int(hits.sum()), len(told), int(known.sum())), loss=_mean_log(chances), ece=_ece(bins),
        labels=tuple(labels), bins=bins, confusion=tuple(tuple(map(int, row)) for row in confusion),
        unknown=int((~known).sum()),
    )  # fmt: skip


def score_several(
    probabilities: Numbers, right: NDArray[np.bool_], names: Sequence[str], *, unknown: NDArray[np.bool_] | None = None
) -> LabelScores:
    """Of texts with any number of labels: probabilities and what is right, both (N, L); `unknown` marks texts that
    also have a label that is not known."""
    _check(probabilities, right, names)
    told = probabilities >= CHOSEN
    strange = np.zeros(len(right), dtype=bool) if unknown is None else unknown
    labels = [
        _label(name, int((told & right)[:, i].sum()), int(told[:, i].sum()), int(right[:, i].sum()))
        for i, name in enumerate(names)
    ]  # fmt: skip
    bins = _bins(np.maximum(probabilities, 1 - probabilities).ravel(), (told == right).ravel())
    chances = np.where(right, probabilities, 1 - probabilities)
    return LabelScores(
        texts=len(right), accuracy=float(((told == right).all(1) & ~strange).mean()), macro_f1=_macro(labels),
        micro_f1=_f1(int((told & right).sum()), int(told.sum()), int(right.sum())),
        loss=_mean_log(chances.ravel()) * len(names), ece=_ece(bins), labels=tuple(labels), bins=bins, confusion=None,
        unknown=int(strange.sum()),
    )  # fmt: skip


def _label(name: str, hits: int, told: int, having: int) -> LabelScore:
    return LabelScore(
        name=name, precision=hits / told if told else 0.0, recall=hits / having if having else 0.0,
        f1=_f1(hits, told, having), texts=having,
    )  # fmt: skip


def _f1(hits: int, told: int, having: int) -> float:
    """2 hits / (told + having): the harmonic mean of precision and recall; 0 where nothing is told nor there."""
    return 2 * hits / (told + having) if told + having else 0.0


def _macro(labels: Sequence[LabelScore]) -> float:
    return sum(label.f1 for label in labels) / len(labels)


def _mean_log(chances: Numbers) -> float:
    """Mean of -log p; a probability of 0 counts as the smallest that there is."""
    return float(-np.log(np.maximum(chances, np.finfo(np.float64).tiny)).mean()) if len(chances) else 0.0


def _bins(confidence: Numbers, hits: NDArray[np.bool_]) -> tuple[Bin, ...]:
    """Bins that are open below and closed above; empty ones are left out."""
    numbers = np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1)
    return tuple(
        Bin(
            low=number / BINS, high=(number + 1) / BINS, answers=int((numbers == number).sum()),
            confidence=float(confidence[numbers == number].mean()), accuracy=float(hits[numbers == number].mean()),
        )
        for number in np.unique(numbers).tolist()
    )  # fmt: skip


def _ece(bins: Sequence[Bin]) -> float:
    answers = sum(one.answers for one in bins)
    return sum(one.answers * abs(one.confidence - one.accuracy) for one in bins) / answers


def _check(probabilities: Numbers, right: NDArray[np.generic], names: Sequence[str]) -> None:
    if not len(right):
        raise InputError("nothing to score: there are no texts")
    if probabilities.shape != (len(right), len(names)):
        raise ValueError(f"probabilities {probabilities.shape} of {len(right)} texts and {len(names)} labels")
