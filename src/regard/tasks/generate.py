"""Language models: plain text, a decoder-only model, cross-entropy, perplexity and bits per byte."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.config import DataConfig, Recipe
from regard.data import PackedStore, TextBatch, TextStore, hold_out, whole_spans
from regard.errors import InputError
from regard.models import DecoderOnly, Model
from regard.nn.loss import cross_entropy
from regard.tasks.beginning import Say, first_model, first_tokenizer
from regard.text import Tokenizer, read_texts, train_tokenizer, training_sets

OTHER_TEXT = "data.valid"
"""folder of a run for text that it does not learn from, as prepared"""
VALID_PIECES = 200_000
"""of the held out text, at most, that each validation reads"""
READ_TOGETHER = 8192
"""pieces that a validation reads at once"""


class GenerateJob:
    """What the training loop asks of a language model."""

    goal = ("loss", False)

    def __init__(self, recipe: Recipe, out: Path, say: Say, *, device: torch.device) -> None:
        """Learn the tokeniser and prepare the text, or find them as an earlier start left them."""
        self.tokenizer = first_tokenizer(recipe, out, say, lambda: _learned(recipe, say))
        texts = TextStore.open(recipe.data, self.tokenizer, folder=out / "data", report=say)
        window = window_of(recipe)
        learned, held = whole_spans(texts), None
        if not recipe.data.valid and recipe.data.valid_share:
            learned, held = hold_out(learned, recipe.data.valid_share, window)
        specials = self.tokenizer.specials
        self.store = PackedStore(texts, learned, window=window, specials=specials)
        say(f"data: {texts.report}; {self.store}")
        self.weights = tuple(data_set.weight for data_set in training_sets(recipe.data))
        self.valid = self.store
        if held is not None:
            self.valid = PackedStore(texts, held, window=window, specials=specials)
        elif recipe.data.valid:
            self.valid = packed_text(recipe, recipe.data.valid, self.tokenizer, folder=out / OTHER_TEXT)
        if self.valid is not self.store:
            say(f"validation: {self.valid}")
        continuous = recipe.data.continuous
        self.recipe = replace(
            recipe,
            data=replace(recipe.data, continuous=self.store.share_long > 0.5 if continuous is None else continuous),
            model=replace(
                recipe.model, vocabulary=recipe.model.vocabulary or self.tokenizer.size, source_vocabulary=None
            ),
        )
        model = first_model(self.recipe, out, say)
        assert isinstance(model, DecoderOnly)
        self.model = model.to(device)
        self.device = device

    def loss(self, batch: TextBatch) -> tuple[Tensor, Tensor]:
        """Every next piece from those before it."""
        smoothing = self.recipe.training.label_smoothing if self.model.training else 0.0
        return text_loss(self.model, batch.to(self.device), smoothing=smoothing)

    def validate(self) -> dict[str, float]:
        """Loss a piece, perplexity and bits per byte of the held out text; without any, of training text."""
        found = measure(self.model, self.valid, self.tokenizer, most=VALID_PIECES)
        return {"loss": found.loss, "perplexity": found.perplexity, "bits_per_byte": found.bits_per_byte}


@dataclass(frozen=True, kw_only=True)
class TextScore:
    """How well a model tells a text."""

    nats: float
    """minus the sum of the pieces' log-probabilities"""
    pieces: int
    """pieces told, each document's end among them"""
    bytes: int
    """of the text that they write, in UTF-8"""
    unknown: int
    """pieces that stand for what cannot be spelt: each is told as one"""

    @property
    def loss(self) -> float:
        """Nats a piece: comparable between models of the same pieces."""
        return self.nats / max(self.pieces, 1)

    @property
    def perplexity(self) -> float:
        """Among how many equally likely pieces the model would be as uncertain."""
        return math.exp(min(self.loss, 700.0))

    @property
    def bits_per_byte(self) -> float:
        """Comparable between models of any pieces."""
        return self.nats / math.log(2) / max(self.bytes, 1)


def text_loss(model: DecoderOnly, batch: TextBatch, *, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """The loss to learn from and the plain one, each summed over the batch's pieces."""
    states = model(batch.tokens_in, positions_BT=batch.positions).flatten(0, 1)
    targets = batch.tokens_out.flatten()
    if int(batch.lengths.min()) < batch.tokens_in.shape[1]:
        places = torch.arange(batch.tokens_in.shape[1], device=batch.lengths.device)
        real = (places < batch.lengths[:, None]).flatten().nonzero()[:, 0]
        states, targets = states[real], targets[real]
    return cross_entropy(states, targets, *model.output, smoothing=smoothing)


@torch.no_grad()
def measure(model: Model, text: PackedStore, tokenizer: Tokenizer, *, most: int | None = None) -> TextScore:
    """How well the model tells a text, of which at most so many pieces are read, from all over it.

    Long documents are read in windows that stand side by side, so the first pieces of each have little before them.
    """
    if not isinstance(model, DecoderOnly):
        raise InputError(f"model.family = {model.config.family!r}: only a decoder alone tells a text piece by piece")
    model.eval()
    rows = np.arange(len(text))
    if most is not None and text.pieces > most:
        rows = rows[np.linspace(0, len(rows) - 1, max(1, most // text.window)).round().astype(np.int64)]
    device = model.output[0].device
    nats, pieces, size, unknown = 0.0, 0, 0, 0
    together = max(1, READ_TOGETHER // text.window)
    for start in range(0, len(rows), together):
        batch = text.batch(rows[start : start + together])
        nats += float(text_loss(model, batch.to(device))[1])
        pieces += batch.tokens
        for told, length in zip(batch.tokens_out.tolist(), batch.lengths.tolist(), strict=True):
            size += tokenizer.size_of(told[:length])
            unknown += told[:length].count(tokenizer.specials.unknown)
    return TextScore(nats=nats, pieces=pieces, bytes=size, unknown=unknown)


def packed_text(recipe: Recipe, files: tuple[str, ...], tokenizer: Tokenizer, *, folder: Path) -> PackedStore:
    """Any text, read as the recipe reads its own."""
    data: DataConfig = replace(recipe.data, train=files, sets=(), tag=None)
    texts = TextStore.open(data, tokenizer, folder=folder)
    return PackedStore(texts, whole_spans(texts), window=window_of(recipe), specials=tokenizer.specials)


def held_out_text(recipe: Recipe, tokenizer: Tokenizer, *, folder: Path) -> PackedStore:
    """What a run held out of its training text."""
    texts = TextStore.open(recipe.data, tokenizer, folder=folder)
    window = window_of(recipe)
    _, held = hold_out(whole_spans(texts), recipe.data.valid_share, window)
    return PackedStore(texts, held, window=window, specials=tokenizer.specials)


def window_of(recipe: Recipe) -> int:
    """Pieces that the model reads at once in training."""
    return min(recipe.data.max_length, recipe.model.max_length)


def _learned(recipe: Recipe, say: Say) -> Tokenizer:
    """A tokeniser of the training text."""
    return train_tokenizer(_training_text(recipe.data), recipe.tokens, [], say)


def _training_text(data: DataConfig) -> Iterator[str]:
    for data_set in training_sets(data):
        for chunk in read_texts(data_set.files, text_field=data.source_field):
            yield chunk.text.lower() if data.lowercase else chunk.text
