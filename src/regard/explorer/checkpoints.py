"""A run's checkpoints as models to look at: how its heads came to be what they are."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from regard.errors import InputError, nearest
from regard.models import Model, build_model, load_weights
from regard.runs import read_weights
from regard.tasks.run import Run
from regard.training.checkpoint import CHECKPOINTS


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One of them."""

    name: str
    step: int
    """updates done"""


def checkpoints(run: Run) -> list[Checkpoint]:
    """Those of a run that are there, the oldest first."""
    found = []
    for place in sorted((run.folder / CHECKPOINTS).glob("step-*")):
        number = place.name.split("-")[1]
        if number.isdigit() and (place / "state.safetensors").is_file():
            found.append(Checkpoint(name=place.name, step=int(number)))
    return found


def checkpoint_model(run: Run, name: str) -> Model:
    """The run's model with the weights of a checkpoint: their average over time, if one is kept."""
    names = [checkpoint.name for checkpoint in checkpoints(run)]
    if name not in names:
        raise InputError(f"checkpoint {name!r}: {nearest(name, names) if names else f'{run.folder} has none'}")
    path = run.folder / CHECKPOINTS / name / "state.safetensors"
    tensors = read_weights(path)
    flat = tensors.get("average", tensors.get("weights"))
    if flat is None:
        raise InputError(f"{path}: holds no weights")
    with torch.device("meta"):
        model = build_model(run.recipe.model)
    model.to_empty(device="cpu")
    load_weights(model, _by_name(flat, model, str(path)), source=str(path))
    return model.to(next(run.model.parameters()).device).eval()


def _by_name(flat: Tensor, model: Model, source: str) -> dict[str, Tensor]:
    """Weights out of the flat vector that training has them in: matrices first, else in the model's order."""
    trained = sorted(model.named_parameters(), key=lambda named: named[1].dim() < 2)
    ends = [0]
    for _, parameter in trained:
        ends.append(ends[-1] + parameter.numel())
    if ends[-1] != flat.numel():
        raise InputError(f"{source}: {flat.numel():,} weights, the recipe's model has {ends[-1]:,}")
    return {
        name: flat[start:end].view(parameter.shape).float()
        for (name, parameter), (start, end) in zip(trained, pairwise(ends), strict=True)
    }
