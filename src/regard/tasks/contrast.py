"""Sentence embedding by contrast: each text's vector is to be nearer to its partner's than to all others of the batch.

The loss is the mean of both directions' cross-entropies over cosines divided by a temperature (InfoNCE; in-batch
negatives as in Henderson et al. 2017).
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import Recipe
from regard.data import PairStore, TwinBatch, TwinStore, text_pairs
from regard.errors import InputError
from regard.models import EncoderOnly
from regard.tasks.beginning import Say, first_model, first_tokenizer
from regard.tasks.classify import check_recipe
from regard.tasks.embed import Embedder
from regard.text import Tokenizer, train_tokenizer, training_sets

VALID_PAIRS = 1000
"""of the validation text, at most, whose partners are sought among each other"""


class ContrastJob:
    """What the training loop asks of contrastive learning."""

    goal = ("accuracy", True)

    def __init__(self, recipe: Recipe, out: Path, say: Say, *, device: torch.device) -> None:
        """Learn the tokeniser and prepare the pairs, or find them as an earlier start left them."""
        check_recipe(recipe)
        if recipe.model.pooling == "attention":
            raise InputError("model.pooling = 'attention': embeddings are pooled by 'mean' or 'first'")
        if recipe.model.pooled_layer:
            raise InputError("model.pooled_layer = true: embeddings are the pooled states themselves; make it false")
        self.tokenizer = first_tokenizer(recipe, out, say, lambda: _learned(recipe, say))
        data = replace(recipe.data, max_length=min(recipe.data.max_length, recipe.model.max_length - 2))
        self.store = TwinStore(PairStore.open(data, self.tokenizer, folder=out / "data", report=say), self.tokenizer)
        say(f"data: {self.store.report}")
        self.recipe = replace(
            recipe,
            model=replace(recipe.model, labels=None, vocabulary=recipe.model.vocabulary or self.tokenizer.size),
        )
        self.weights = tuple(data_set.weight for data_set in training_sets(recipe.data))
        found = list(text_pairs(recipe.data, recipe.data.valid)) if recipe.data.valid else []
        self.valid = [pair for pair in found if pair.source.strip() and pair.target.strip()][:VALID_PAIRS]
        if not self.valid:
            self.goal = ("loss", False)
        model = first_model(self.recipe, out, say)
        assert isinstance(model, EncoderOnly)
        self.model = model.to(device)
        self.device = device

    def loss(self, batch: TwinBatch) -> tuple[Tensor, Tensor]:
        """Cross-entropy of finding each text's partner among the batch's, both ways."""
        batch = batch.to(self.device)
        model = self.model
        left = model.pool(model(batch.left, batch.left_lengths), batch.left_lengths).float()
        right = model.pool(model(batch.right, batch.right_lengths), batch.right_lengths).float()
        scores = F.normalize(left, dim=-1) @ F.normalize(right, dim=-1).T / self.recipe.training.temperature
        partners = torch.arange(len(batch), device=scores.device)
        smoothing = self.recipe.training.label_smoothing if model.training else 0.0
        total = sum(
            F.cross_entropy(way, partners, label_smoothing=smoothing, reduction="sum") for way in (scores, scores.T)
        )
        plain = sum(F.cross_entropy(way, partners, reduction="sum") for way in (scores, scores.T))
        return torch.as_tensor(total) / 2, torch.as_tensor(plain) / 2

    def validate(self) -> dict[str, float]:
        """How often a validation text's nearest is its partner; without validation text, the loss of some training."""
        batch = self.store.batch(np.arange(min(len(self.store), 256)))
        if not self.valid:
            return {"loss": float(self.loss(batch)[1]) / batch.tokens}
        embedder = Embedder(self.model, self.tokenizer, lowercase=self.recipe.data.lowercase)
        left = embedder.embed([pair.source for pair in self.valid])
        right = embedder.embed([pair.target for pair in self.valid])
        scores = left @ right.T / self.recipe.training.temperature
        partners = torch.arange(len(self.valid))
        hits = [(way.argmax(-1) == partners).float().mean() for way in (scores, scores.T)]
        loss = sum(float(F.cross_entropy(way, partners)) for way in (scores, scores.T)) / 2
        return {"loss": loss, "accuracy": float(sum(hits)) / 2}


def _learned(recipe: Recipe, say: Say) -> Tokenizer:
    """A tokeniser of both sides' texts."""

    def texts() -> Iterable[str]:
        for data_set in training_sets(recipe.data):
            for pair in text_pairs(recipe.data, data_set.files):
                yield pair.source
                yield pair.target

    return train_tokenizer(texts(), recipe.tokens, [], say)
