"""Snapshots: the weights of the newest validations, kept so that `regard average` can take their mean.

"Attention Is All You Need" averages the last 5 checkpoints of its base models and the last 20 of its big ones. A
snapshot holds weights only (a third of a checkpoint), and there are never more than the recipe says.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import InputError
from regard.runs import read_weights, write_weights

SNAPSHOTS = "snapshots"


def keep_snapshot(folder: Path, step: int, weights: Mapping[str, Tensor], *, most: int) -> None:
    """Write a run's weights after an update, and take away all but the newest few."""
    home = folder / SNAPSHOTS
    home.mkdir(exist_ok=True)
    write_weights(home / f"step-{step:08d}.safetensors", weights, notes={"step": str(step)})
    for old in list_snapshots(folder)[:-most]:
        old.unlink()


def forget_after(folder: Path, step: int) -> None:
    """Take away what was kept of later updates, from which a run that fell back will differ."""
    for path in list_snapshots(folder):
        if step_of(path) > step:
            path.unlink()


def list_snapshots(folder: Path) -> list[Path]:
    """A run's snapshots, oldest first."""
    return sorted((folder / SNAPSHOTS).glob("step-*.safetensors"))


def step_of(snapshot: Path) -> int:
    """The update after which it was taken."""
    return int(snapshot.stem.removeprefix("step-"))


def mean_weights(files: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each weight over some files, computed in float64."""
    sums: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    for number, path in enumerate(files):
        weights = read_weights(path)
        if number and weights.keys() != sums.keys():
            raise InputError(f"{path}: holds other weights than {files[0]}; take snapshots of one model")
        for name, weight in weights.items():
            if number and weight.shape != sums[name].shape:
                raise InputError(f"{path}: {name} has another shape than in {files[0]}; take snapshots of one model")
            sums[name] = weight.double() + (sums[name] if number else 0.0)
            kinds[name] = weight.dtype
    return {name: (total / len(files)).to(kinds[name]) for name, total in sums.items()}
