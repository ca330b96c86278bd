"""What a format's reader hands over, and how weights under other names become a model of ours.

Each format states its names in one table. A name in the file that the table does not have is an error, and so is a
weight of ours that nothing fills.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.config import ModelConfig, Recipe
from regard.errors import InputError
from regard.models import Model, build_model, load_weights
from regard.text import Tokenizer

Table = Mapping[str, str | None]
"""Their names to ours, where {} stands for a layer's number and None drops a weight on purpose.

Several of theirs under one of ours are put one below another, in the table's order.
"""

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A model of another program, ready to be saved as a run."""

    source: str
    """what was read, in words"""
    recipe: Recipe
    tokenizer: Tokenizer
    model: Model
    unused: tuple[str, ...] = ()
    """weights that were left out on purpose: they have no place in the model"""


def renamed(weights: Mapping[str, Tensor], table: Table, *, source: str) -> dict[str, Tensor]:
    """The weights under our names."""
    unknown = [name for name in weights if _row(name) not in table]
    if unknown:
        shown = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        raise InputError(f"{source}: weights that are not in the format's table: {shown}")
    order = {row: place for place, row in enumerate(table)}
    parts: dict[str, list[Tensor]] = {}
    for name in sorted(weights, key=lambda name: order[_row(name)]):
        ours = table[_row(name)]
        if ours is not None:
            parts.setdefault(ours.format(*_NUMBER.findall(name)), []).append(weights[name])
    return {name: torch.cat(found) if len(found) > 1 else found[0] for name, found in parts.items()}


def left_out(weights: Mapping[str, Tensor], table: Table) -> tuple[str, ...]:
    """The names of the weights that the table drops on purpose."""
    return tuple(name for name in weights if _row(name) in table and table[_row(name)] is None)


def converted(config: ModelConfig, weights: Mapping[str, Tensor], table: Table, *, source: str) -> Model:
    """The model with the weights in it, for use and not for training."""
    with torch.device("meta"):  # no first values: all of them are replaced
        model = build_model(config)
    model.to_empty(device="cpu")
    load_weights(model, renamed(weights, table, source=source), source=source)
    return model.eval()


def _row(name: str) -> str:
    """The name as the table has it."""
    return _NUMBER.sub("{}", name)
