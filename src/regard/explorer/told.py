"""What a report calls the numbers of each task: scores, and what is learned from."""

from collections.abc import Mapping
from dataclasses import dataclass

from regard.config import Recipe


@dataclass(frozen=True, kw_only=True)
class ScoreName:
    """How a validation's score is shown."""

    label: str
    digits: int
    chart: str
    """the title of the chart that it is drawn in, beside others of its kind"""
    from_zero: bool = False


SCORES: Mapping[str, ScoreName] = {
    "bleu": ScoreName(label="BLEU", digits=2, chart="Scores of the validation text", from_zero=True),
    "chrf": ScoreName(label="chrF2++", digits=2, chart="Scores of the validation text", from_zero=True),
    "accuracy": ScoreName(label="accuracy", digits=4, chart="Accuracy and F1 of the validation text"),
    "macro_f1": ScoreName(label="macro F1", digits=4, chart="Accuracy and F1 of the validation text"),
    "micro_f1": ScoreName(label="micro F1", digits=4, chart="Accuracy and F1 of the validation text"),
    "ece": ScoreName(label="calibration error", digits=4, chart="Calibration error", from_zero=True),
    "perplexity": ScoreName(label="perplexity", digits=2, chart="Perplexity of the validation text"),
    "bits_per_byte": ScoreName(label="bits per byte", digits=4, chart="Bits per byte of the validation text"),
    "loss": ScoreName(label="loss", digits=3, chart=""),
}
"""Scores by their names in the journal, the most telling first."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a task learns from and tells."""

    rows: str
    """rows of its data"""
    told: str
    """what a loss is the mean over, one of it"""


def words(recipe: Recipe) -> Words:
    """The words for a recipe's task."""
    match recipe.task, recipe.training.objective:
        case "translate", _:
            return Words(rows="pairs", told="target piece")
        case "generate", _:
            return Words(rows="documents", told="piece")
        case _, "masked":
            return Words(rows="documents", told="hidden piece")
        case _, "contrastive":
            return Words(rows="pairs", told="pair")
        case _:
            return Words(rows="texts", told="text")
