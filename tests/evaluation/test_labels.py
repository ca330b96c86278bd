"""Scores of labels are scikit-learn's; calibration is counted by hand; unknown labels are wrong and counted."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
    log_loss,
    precision_recall_fscore_support,
)

from regard.errors import InputError
from regard.evaluation.labels import BINS, score_one, score_several

NAMES = ("a", "b", "c", "never told")


def drawn(seed, *, several=False):
    draw = np.random.default_rng(seed)
    logits = draw.normal(size=(200, len(NAMES))) * 2
    if several:
        return 1 / (1 + np.exp(-logits)), draw.random((200, len(NAMES))) < 0.3
    logits[:, 3] -= 9
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return probabilities, draw.integers(len(NAMES), size=200)


@pytest.mark.parametrize("seed", range(4))
def test_one_label_each_against_scikit_learn(seed):
    probabilities, right = drawn(seed)
    told = probabilities.argmax(1)
    scores = score_one(probabilities, right, NAMES)
    labels = range(len(NAMES))
    assert scores.accuracy == pytest.approx(accuracy_score(right, told))
    assert scores.macro_f1 == pytest.approx(f1_score(right, told, labels=labels, average="macro", zero_division=0))
    assert scores.micro_f1 == pytest.approx(f1_score(right, told, labels=labels, average="micro"))
    assert scores.loss == pytest.approx(log_loss(right, probabilities, labels=labels))
    assert np.array_equal(scores.confusion, confusion_matrix(right, told, labels=labels))
    each = precision_recall_fscore_support(right, told, labels=labels, zero_division=0)
    ours = [[getattr(label, name) for label in scores.labels] for name in ("precision", "recall", "f1", "texts")]
    assert np.allclose(ours, each)


@pytest.mark.parametrize("seed", range(4))
def test_several_labels_against_scikit_learn(seed):
    probabilities, right = drawn(seed, several=True)
    told = probabilities >= 0.5
    scores = score_several(probabilities, right, NAMES)
    assert scores.confusion is None
    assert scores.accuracy == pytest.approx(accuracy_score(right, told))
    assert scores.macro_f1 == pytest.approx(f1_score(right, told, average="macro", zero_division=0))
    assert scores.micro_f1 == pytest.approx(f1_score(right, told, average="micro"))
    losses = [log_loss(right[:, i], probabilities[:, i], labels=[0, 1]) for i in range(len(NAMES))]
    assert scores.loss == pytest.approx(sum(losses))


def test_calibration_counted_by_hand():
    """Four sure answers, two of them right; one answer that stands on the border of two bins, which is the lower's."""
    sure, border = [0.95, 0.05], [10 / BINS, 1 - 10 / BINS]
    scores = score_one(np.array([sure] * 4 + [border]), np.array([0, 0, 1, 1, 0]), ("a", "b"))
    assert [(one.answers, one.accuracy) for one in scores.bins] == [(1, 1.0), (4, 0.5)]
    assert [one.low for one in scores.bins] == pytest.approx([9 / BINS, 14 / BINS])
    assert [one.high for one in scores.bins] == pytest.approx([10 / BINS, 1])
    assert scores.ece == pytest.approx((4 * 0.45 + 1 * (1 - 10 / BINS)) / 5)
    perfect = score_one(np.eye(3), np.arange(3), ("a", "b", "c"))
    assert (perfect.ece, perfect.accuracy, perfect.loss) == (0, 1, 0)


def test_unknown_labels_are_wrong_and_counted():
    chances = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    scores = score_one(chances, np.array([0, -1, -1]), ("a", "b"))
    assert (scores.unknown, scores.accuracy, scores.texts) == (2, pytest.approx(1 / 3), 3)
    assert scores.confusion == ((1, 0), (0, 0))
    assert scores.loss == pytest.approx(-np.log(0.9))
    assert [label.precision for label in scores.labels] == [0.5, 0]
    several = score_several(chances, np.array([[1, 0], [0, 1], [1, 0]], dtype=bool), ("a", "b"),
                            unknown=np.array([True, False, False]))  # fmt: skip
    assert (several.unknown, several.accuracy) == (1, pytest.approx(2 / 3))
    with pytest.raises(InputError, match="nothing to score"):
        score_one(np.zeros((0, 2)), np.zeros(0, dtype=int), ("a", "b"))
