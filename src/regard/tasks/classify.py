"""Classification: labelled texts, an encoder, cross-entropy over labels, accuracy, F1 and calibration."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import DataConfig, Recipe
from regard.data import LabelledBatch, LabelledStore, labelled_texts
from regard.errors import InputError
from regard.evaluation.labels import CHOSEN, UNKNOWN, LabelScores, Numbers, score_one, score_several
from regard.models import EncoderOnly
from regard.tasks.beginning import Say, first_model, first_tokenizer
from regard.tasks.reading import Reader, Text, is_blank
from regard.text import LabelledText, Tokenizer, train_tokenizer, training_sets

SHOWN_LABELS = 12
"""whose counts are told, at most"""


@dataclass(frozen=True, kw_only=True)
class Classification:
    """One classified text."""

    labels: tuple[str, ...]
    """the best one; of several those from one half on; of a blank text none"""
    probabilities: Mapping[str, float]
    """of each label, the best first; of a blank text nothing"""

    @property
    def label(self) -> str:
        """The labels in a word."""
        return ", ".join(self.labels)


class ClassifyJob:
    """What the training loop asks of classification."""

    goal = ("accuracy", True)

    def __init__(self, recipe: Recipe, out: Path, say: Say, *, device: torch.device) -> None:
        """Learn the tokeniser, prepare the data and the labels, or find them as an earlier start left them."""
        check_recipe(recipe)
        self.tokenizer = first_tokenizer(recipe, out, say, lambda: _learned(recipe, say))
        data = replace(recipe.data, max_length=min(recipe.data.max_length, recipe.model.max_length - 2))
        self.store = LabelledStore.open(
            data, self.tokenizer, folder=out / "data", names=recipe.data.labels or None,
            several=recipe.data.several_labels, report=say,
        )  # fmt: skip
        say(f"data: {self.store.report}")
        _tell_labels(self.store, say)
        self.recipe = replace(
            recipe,
            data=replace(recipe.data, labels=self.store.names, several_labels=self.store.several),
            model=replace(
                recipe.model, labels=len(self.store.names), vocabulary=recipe.model.vocabulary or self.tokenizer.size
            ),
        )
        self.weights = tuple(data_set.weight for data_set in training_sets(recipe.data))
        self.valid = list(labelled_texts(recipe.data, recipe.data.valid)) if recipe.data.valid else []
        if self.valid:
            self._tell_faults(say)
        if self.store.several:
            self.goal = ("macro_f1", True)
        if not self.valid:
            self.goal = ("loss", False)
        model = first_model(self.recipe, out, say, fresh=_fresh(self.recipe))
        assert isinstance(model, EncoderOnly)
        self.model = model.to(device)
        self.device = device
        self._balance = _balance(self.store).to(device) if recipe.training.class_weights == "balanced" else None

    def loss(self, batch: LabelledBatch) -> tuple[Tensor, Tensor]:
        """Cross-entropy over the labels, or for each label by itself where texts have several."""
        batch = batch.to(self.device)
        model = self.model
        states = model(batch.texts, batch.lengths, segments_BS=batch.segments)
        logits = model.logits(model.pool(states, batch.lengths)).float()
        smoothing = self.recipe.training.label_smoothing if model.training else 0.0
        balance = self._balance if model.training else None
        if self.store.several:
            right = batch.labels * (1 - smoothing) + smoothing / 2
            total = F.binary_cross_entropy_with_logits(logits, right, pos_weight=balance, reduction="sum")
            return total, F.binary_cross_entropy_with_logits(logits, batch.labels, reduction="sum")
        losses = F.cross_entropy(logits, batch.labels, label_smoothing=smoothing, reduction="none")
        if balance is not None:
            losses = losses * balance[batch.labels]
        return losses.sum(), F.cross_entropy(logits, batch.labels, reduction="sum")

    def validate(self) -> dict[str, float]:
        """Scores of the validation text; without one, the loss of some training text."""
        if not self.valid:
            batch = self.store.batch(np.arange(min(len(self.store), 256)))
            return {"loss": float(self.loss(batch)[1]) / batch.tokens}
        classifier = Classifier(self.model, self.tokenizer, self.recipe)
        scores = score_texts(classifier, self.valid).scores
        found = {"loss": scores.loss, "accuracy": scores.accuracy, "macro_f1": scores.macro_f1, "ece": scores.ece}
        return {**found, "micro_f1": scores.micro_f1} if self.store.several else found

    def _tell_faults(self, say: Say) -> None:
        """Say what of the validation text cannot be told right, once."""
        blank = sum(is_blank(_text(row)) for row in self.valid)
        if blank == len(self.valid):
            raise InputError(f"data.valid = {list(self.recipe.data.valid)}: all texts are empty")
        for line in faults(blank, strange_labels(self.valid, self.store.names)):
            say(f"validation: {line}")


class Classifier:
    """A model in use: texts in, labels out, in order."""

    def __init__(self, model: EncoderOnly, tokenizer: Tokenizer, recipe: Recipe) -> None:
        if model.label is None or not recipe.data.labels:
            raise InputError("this run has no labels: it embeds; train a classifier with training.start_from = RUN")
        self.reader = Reader(model, tokenizer, lowercase=recipe.data.lowercase)
        self.names, self.several = recipe.data.labels, bool(recipe.data.several_labels)
        self.two = recipe.data.second_field is not None

    def probabilities(self, texts: Sequence[Text]) -> Numbers:
        """Of each text and label, (N, L); a blank text's are 0."""
        found = torch.zeros(len(texts), len(self.names), dtype=torch.float64)
        model = self.reader.model
        for batch in self.reader.read(texts):
            with torch.no_grad():
                logits = model.logits(model.pool(batch.states, batch.lengths)).double()
            found[batch.rows] = (logits.sigmoid() if self.several else logits.softmax(-1)).cpu()
        made: Numbers = found.numpy()
        return made

    def classify(self, texts: Sequence[Text]) -> list[Classification]:
        """Each text's labels."""
        answers = []
        for text, chances in zip(texts, self.probabilities(texts).tolist(), strict=True):
            if is_blank(text):
                answers.append(Classification(labels=(), probabilities={}))
                continue
            ordered = sorted(zip(self.names, chances, strict=True), key=lambda pair: -pair[1])
            chosen = tuple(name for name, chance in ordered if chance >= CHOSEN) if self.several else (ordered[0][0],)
            answers.append(Classification(labels=chosen, probabilities=dict(ordered)))
        return answers


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A labelled text that a classifier was tried on."""

    scores: LabelScores
    rows: tuple[LabelledText, ...]
    """those that were scored"""
    probabilities: Numbers
    """theirs, (N, L)"""
    blank: int
    """texts that were left out, being empty"""
    strange: Mapping[str, int]
    """labels that the classifier does not know, and how many texts have them; all count as wrong"""


def score_texts(classifier: Classifier, rows: Iterable[LabelledText]) -> Scored:
    """Classify labelled texts and score what comes out."""
    every = list(rows)
    kept = tuple(row for row in every if not is_blank(_text(row)))
    names, strange = classifier.names, strange_labels(kept, classifier.names)
    probabilities = classifier.probabilities([_text(row) for row in kept])
    if classifier.several:
        right = np.array([[name in row.labels for name in names] for row in kept]).reshape(len(kept), len(names))
        unknown = np.array([any(label in strange for label in row.labels) for row in kept], dtype=bool)
        scores = score_several(probabilities, right, names, unknown=unknown)
    else:
        if several := next((row for row in kept if len(row.labels) != 1), None):
            raise InputError(f"line {several.line}: has {len(several.labels)} labels; this classifier tells one a text")
        numbers = {name: number for number, name in enumerate(names)}
        scores = score_one(probabilities, np.array([numbers.get(row.labels[0], UNKNOWN) for row in kept]), names)
    return Scored(scores=scores, rows=kept, probabilities=probabilities, blank=len(every) - len(kept), strange=strange)


def strange_labels(rows: Iterable[LabelledText], names: Sequence[str]) -> dict[str, int]:
    """Labels that are not among the names, with how many texts have them."""
    known = set(names)
    return dict(Counter(label for row in rows for label in row.labels if label not in known))


def faults(blank: int, strange: Mapping[str, int]) -> list[str]:
    """What was wrong with a labelled text, in lines for people."""
    lines = [f"left out: {blank:,} empty text{'s' * (blank != 1)}"] if blank else []
    if strange:
        listed = ", ".join(f"{label} {count:,}" for label, count in sorted(strange.items())[:SHOWN_LABELS])
        lines.append(f"labels that were not in the training text, counted as wrong: {listed}")
    return lines


def check_recipe(recipe: Recipe) -> None:
    """Refuse what classification does not have."""
    if not recipe.data.train and not recipe.data.sets:
        raise InputError('data.train is not stated: add train = ["train.tsv"] under [data]')
    if recipe.model.max_length < 3:
        raise InputError(f"model.max_length = {recipe.model.max_length}: must be 3 or more, for begin, a piece and end")


def _text(row: LabelledText) -> Text:
    return row.text if row.second is None else (row.text, row.second)


def _learned(recipe: Recipe, say: Say) -> Tokenizer:
    """A tokeniser of the training texts."""
    return train_tokenizer(_training_texts(recipe.data), recipe.tokens, [], say)


def _training_texts(data: DataConfig) -> Iterable[str]:
    for data_set in training_sets(data):
        for row in labelled_texts(data, data_set.files):
            yield row.text
            if row.second is not None:
                yield row.second


def _tell_labels(store: LabelledStore, say: Say) -> None:
    """Say how many texts each label has, and which have too few; refuse what is no choice."""
    names, counts = store.names, store.counts
    if len(names) < 2 and not store.several:
        raise InputError(f"data: all texts have the label {names[0]!r}; a classifier needs two labels or more")
    listed = ", ".join(f"{name} {counts[name]:,}" for name in names[:SHOWN_LABELS])
    say(f"labels: {listed}" + (f" and {len(names) - SHOWN_LABELS} more" if len(names) > SHOWN_LABELS else ""))
    for few, told in ((0, "no text"), (1, "one text only")):
        found = [name for name in names if counts[name] == few]
        if found:
            say(f"labels with {told} to learn from: {', '.join(found[:SHOWN_LABELS])} ({len(found):,})")


def _fresh(recipe: Recipe) -> tuple[str, ...]:
    """The head of another run's labels is no use for these, even if they are as many."""
    from regard.config import read_recipe
    from regard.runs.folder import RECIPE

    start = recipe.training.start_from
    if start is None or not (Path(start) / RECIPE).is_file():
        return ()
    theirs = read_recipe(Path(start) / RECIPE)
    return () if theirs.data.labels == recipe.data.labels else ("label.",)


def _balance(store: LabelledStore) -> Tensor:
    """So that every label counts the same: a text's weight by its label, or of several that of having each."""
    counts = torch.tensor([store.counts[name] for name in store.names], dtype=torch.float32)
    if store.several:
        return (len(store) - counts) / counts.clamp(min=1)
    return len(store) / (counts.count_nonzero() * counts.clamp(min=1))
