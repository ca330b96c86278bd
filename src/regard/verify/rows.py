"""Random rows to learn from, for a model of any family, and a job of the training loop that learns them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import Family, Recipe
from regard.data import PairBatch
from regard.data.plan import Lengths
from regard.models import EncoderDecoder, EncoderOnly, Model, build_model, load_weights
from regard.nn.loss import cross_entropy
from regard.tasks.start import Silent
from regard.training.loop import run_training
from regard.training.machines import Machines
from regard.training.precision import Precision
from regard.verify.subject import TOKENS

ROWS = 40
TASKS: dict[Family, str] = {
    "encoder-decoder": "translate", "encoder-only": "classify", "decoder-only": "generate"
}  # fmt: skip
"""the task whose model is of the family"""


class RandomRows:
    """A store of rows of random pieces and lengths."""

    def __init__(self, model: Model, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        longest = min(TOKENS, model.config.max_length)
        pieces = model.config.vocabulary or 1
        read = model.config.source_vocabulary or pieces
        self._source = torch.randint(read, (ROWS, longest), generator=draw)
        self._target = torch.randint(pieces, (ROWS, longest + 1), generator=draw)
        self._lengths = torch.randint(1, longest + 1, (2, ROWS), generator=draw)
        self.sets = (ROWS,)

    def __len__(self) -> int:
        return ROWS

    def lengths(self) -> tuple[Lengths, Lengths]:
        """Each row's pieces on both sides."""
        source, target = self._lengths.numpy()
        return source, target

    def batch(self, rows: NDArray[np.integer], random: np.random.Generator | None = None) -> PairBatch:
        """These rows; nothing is drawn."""
        index = torch.from_numpy(rows.astype(np.int64))
        source_lengths, target_lengths = self._lengths[:, index]
        source, target = int(source_lengths.max()), int(target_lengths.max())
        return PairBatch(
            index=index, source=self._source[index, :source], source_lengths=source_lengths,
            target_in=self._target[index, :target], target_out=self._target[index, 1 : target + 1],
            target_lengths=target_lengths,
        )  # fmt: skip


class RowsJob:
    """Learns each next piece of the target from the source, or of an encoder alone each piece from itself."""

    weights = (1.0,)
    goal = ("loss", False)

    def __init__(self, model: Model, seed: int) -> None:
        self.model = model
        self.store = RandomRows(model, seed)

    def loss(self, batch: PairBatch) -> tuple[Tensor, Tensor]:
        """Smoothed cross-entropy, as the tasks have it."""
        model = self.model
        if isinstance(model, EncoderOnly):
            states, lengths, right = model(batch.source, batch.source_lengths), batch.source_lengths, batch.source
        elif isinstance(model, EncoderDecoder):
            states = model(batch.source, batch.source_lengths, batch.target_in)
            lengths, right = batch.target_lengths, batch.target_out
        else:
            states, lengths, right = model(batch.target_in), batch.target_lengths, batch.target_out
        # after the forward pass: where processes share the weights, that is what makes these whole
        weight, bias = (model.pieces.weight, None) if isinstance(model, EncoderOnly) else model.output
        real = (torch.arange(right.shape[1]) < lengths[:, None]).flatten()
        return cross_entropy(states.flatten(0, 1)[real], right.flatten()[real], weight, bias, smoothing=0.1)

    def validate(self) -> dict[str, float]:
        """The loss of all rows."""
        batch = self.store.batch(np.arange(ROWS))
        return {"loss": float(self.loss(batch)[1]) / batch.tokens}


def learn(weights: Mapping[str, Tensor], recipe: Recipe, out: Path, *, seed: int, machines: Machines) -> None:
    """Train a model of these first weights into the folder."""
    model = build_model(recipe.model)
    load_weights(model, weights, source="first weights")
    out.mkdir(parents=True, exist_ok=True)
    run_training(
        RowsJob(model, seed), recipe, out, precision=Precision(dtype=torch.float32, reason="exact"),
        machines=machines, watcher=Silent(), started=0.0,
    )  # fmt: skip
