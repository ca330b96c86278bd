"""Masked language modelling: an encoder learns from plain text to tell pieces that are hidden from it (BERT)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.config import Recipe
from regard.data import HiddenBatch, HiddenStore, TextStore
from regard.data.hidden import UNTOLD
from regard.errors import InputError
from regard.models import EncoderOnly
from regard.nn.loss import cross_entropy
from regard.tasks.beginning import Say, first_model, first_tokenizer
from regard.tasks.classify import check_recipe
from regard.text import Tokenizer, read_texts, train_tokenizer, training_sets
from regard.text.vocabulary import MASK

VALID_ROWS = 32
"""that are told together"""


class MaskedJob:
    """What the training loop asks of masked language modelling."""

    goal = ("loss", False)

    def __init__(self, recipe: Recipe, out: Path, say: Say, *, device: torch.device) -> None:
        """Learn the tokeniser and prepare the text, or find them as an earlier start left them."""
        check_recipe(recipe)
        self.tokenizer = first_tokenizer(recipe, out, say, lambda: _learned(recipe, say))
        if self.tokenizer.specials.mask is None:
            raise InputError(
                f"training.start_from = {recipe.training.start_from!r}: its pieces have no mask to hide others with"
            )
        texts = TextStore.open(recipe.data, self.tokenizer, folder=out / "data", report=say)
        self.store = _hidden(recipe, texts, self.tokenizer)
        say(f"data: {texts.report}, in {len(self.store):,} rows")
        self.recipe = replace(
            recipe,
            model=replace(recipe.model, labels=None, vocabulary=recipe.model.vocabulary or self.tokenizer.size),
        )
        self.weights = tuple(data_set.weight for data_set in training_sets(recipe.data))
        self.valid: HiddenStore | None = None
        if recipe.data.valid:
            data = replace(recipe.data, train=recipe.data.valid, sets=())
            self.valid = _hidden(
                recipe, TextStore.open(data, self.tokenizer, folder=out / "data.valid"), self.tokenizer
            )
        model = first_model(self.recipe, out, say)
        assert isinstance(model, EncoderOnly)
        self.model = model.to(device)
        self.device = device

    def loss(self, batch: HiddenBatch) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the pieces that are to be told."""
        smoothing = self.recipe.training.label_smoothing if self.model.training else 0.0
        states, right = self._told(batch)
        return cross_entropy(states, right, self.model.pieces.weight, smoothing=smoothing)

    def _told(self, batch: HiddenBatch) -> tuple[Tensor, Tensor]:
        """The states of the pieces that are to be told, and the right ones."""
        batch = batch.to(self.device)
        states = self.model(batch.texts, batch.lengths).flatten(0, 1)
        targets = batch.targets.flatten()
        places = (targets != UNTOLD).nonzero()[:, 0]
        return states[places], targets[places]

    def validate(self) -> dict[str, float]:
        """Loss and accuracy of the pieces to be told: the same ones each time; without validation text, of training."""
        store = self.valid or self.store
        rows = np.arange(len(store) if self.valid else min(len(store), 256))
        draw = np.random.default_rng(0)
        order = rows[np.argsort(store.lengths()[0][rows], kind="stable")]
        loss, hits, told = 0.0, 0, 0
        for start in range(0, len(order), VALID_ROWS):
            states, right = self._told(store.batch(order[start : start + VALID_ROWS], draw))
            loss += float(cross_entropy(states, right, self.model.pieces.weight)[1])
            hits += int((self.model.piece_logits(states).argmax(-1) == right).sum())
            told += len(right)
        return {"loss": loss / told, "accuracy": hits / told}


def _hidden(recipe: Recipe, texts: TextStore, tokenizer: Tokenizer) -> HiddenStore:
    return HiddenStore(
        texts, tokenizer, window=min(recipe.data.max_length, recipe.model.max_length - 2),
        share=recipe.training.hidden_share, whole_words=recipe.training.whole_words,
    )  # fmt: skip


def _learned(recipe: Recipe, say: Say) -> Tokenizer:
    """A tokeniser of the training text, with a mask."""
    texts = (
        part.text.lower() if recipe.data.lowercase else part.text
        for data_set in training_sets(recipe.data)
        for part in read_texts(data_set.files, text_field=recipe.data.source_field)
    )
    return train_tokenizer(texts, recipe.tokens, [MASK], say)
