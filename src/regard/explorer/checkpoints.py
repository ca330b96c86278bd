"""A run's stored weights as models to look at: how its heads came to be what they are.

They are its checkpoints, from which training goes on, and its snapshots, of which it can keep many more.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import InputError, nearest
from regard.models import Model, build_model, load_weights
from regard.runs import read_weights
from regard.tasks.run import Run
from regard.training.checkpoint import CHECKPOINTS
from regard.training.snapshots import list_snapshots, step_of


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One of them."""

    name: str
    step: int
    """updates done"""
    path: Path


def checkpoints(run: Run) -> list[Checkpoint]:
    """Those of a run that are there, the oldest first, each step once."""
    found: dict[int, Checkpoint] = {}
    for path in list_snapshots(run.folder):
        found[step_of(path)] = Checkpoint(name=path.stem, step=step_of(path), path=path)
    for place in sorted((run.folder / CHECKPOINTS).glob("step-*")):
        number, path = place.name.split("-")[1], place / "state.safetensors"
        if number.isdigit() and path.is_file():
            found[int(number)] = Checkpoint(name=place.name, step=int(number), path=path)
    return [found[step] for step in sorted(found)]


def checkpoint_model(run: Run, name: str) -> Model:
    """The run's model with the weights of a checkpoint: their average over time, if one is kept."""
    known = {checkpoint.name: checkpoint.path for checkpoint in checkpoints(run)}
    if name not in known:
        raise InputError(f"checkpoint {name!r}: {nearest(name, known) if known else f'{run.folder} has none'}")
    path = known[name]
    tensors = read_weights(path)
    with torch.device("meta"):
        model = build_model(run.recipe.model)
    model.to_empty(device="cpu")
    flat = tensors.get("average", tensors.get("weights")) if path.parent.name == name else None
    load_weights(model, tensors if flat is None else _by_name(flat, model, str(path)), source=str(path))
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
