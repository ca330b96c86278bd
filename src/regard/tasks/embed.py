"""Embedding: a text becomes one vector, so that texts of like meaning have vectors of like direction."""

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.models import EncoderOnly
from regard.models.encoder_only import pool
from regard.tasks.reading import Reader, Text
from regard.text import Tokenizer

Pooling = Literal["mean", "first"]


class Embedder:
    """A model in use: texts in, vectors out, in order."""

    def __init__(self, model: EncoderOnly, tokenizer: Tokenizer, *, lowercase: bool = False) -> None:
        self.reader = Reader(model, tokenizer, lowercase=lowercase)

    def embed(self, texts: Sequence[Text], *, pooling: Pooling | None = None, normalise: bool = True) -> Tensor:
        """The texts' vectors, (N, D) float32, of length 1 if they are normalised; a blank text's is all zeros.

        Without a pooling it is the model's own, and the mean for one whose own is learned.
        """
        model = self.reader.model
        first = (pooling or model.config.pooling) == "first"
        vectors = torch.zeros(len(texts), model.config.d_model)
        for batch in self.reader.read(texts):
            vectors[batch.rows] = pool(batch.states, batch.lengths, first=first).float().cpu()
        return F.normalize(vectors, dim=-1) if normalise else vectors
