"""A recipe that starts from another run: what that run's recipe says of the model and the pieces is what is meant.

A recipe that a run has resolved states its whole model, and needs the other run no more.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path

from regard.config.model import ModelConfig
from regard.errors import InputError

RECIPE = "recipe.toml"

Table = dict[str, object]


def started(table: Mapping[str, object], start: str) -> Table:
    """The recipe's plain values with the model and the pieces of the run `start`; model values that are stated win."""
    model, tokens = _section(table, "model"), _section(table, "tokens")
    if _is_whole(model):
        return dict(table)
    where = f"training.start_from = {start!r}"
    if "preset" in model:
        raise InputError(f"{where}: the model's shape is that run's; leave model.preset = {model['preset']!r} out")
    if set(tokens) - {"sampling"}:
        raise InputError(f"{where}: the pieces are that run's; leave tokens.{min(set(tokens) - {'sampling'})} out")
    theirs = _read(Path(start), where)
    family = _section(theirs, "model").get("family")
    if family != model["family"]:
        raise InputError(f"{where}: is {family}; task = {table['task']!r} starts from a run that is {model['family']}")
    return {
        **table,
        "model": {**_section(theirs, "model"), "labels": "none", **model},
        "tokens": {**_section(theirs, "tokens"), "sampling": 0.0, **tokens},
    }


def _is_whole(model: Mapping[str, object]) -> bool:
    """Whether every value that has one is stated, as in a resolved recipe."""
    return all(field.name in model for field in dataclasses.fields(ModelConfig) if field.default is not None)


def _read(folder: Path, where: str) -> Table:
    """The run's recipe."""
    try:
        return tomllib.loads((folder / RECIPE).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{where}: not a run folder, it has no {RECIPE}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{where}: its {RECIPE} cannot be read: {error}") from None


def _section(table: Mapping[str, object], name: str) -> Table:
    section = table.get(name, {})
    if not isinstance(section, Mapping):
        raise InputError(f"{name} = {section!r}: must be a table")
    return dict(section)
