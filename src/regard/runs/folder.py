"""A run folder: `recipe.toml` as resolved, `tokens.*` and `model.safetensors`. No pickle is ever read or written.

Files appear whole or not at all: each is written beside its place, flushed to the disk, and renamed.
"""

import errno
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regard.config import Recipe, read_recipe
from regard.errors import InputError
from regard.models import Model, build_model, load_weights
from regard.text import Tokenizer, load_tokenizer
from regard.text.files import fill_whole, write_whole

RECIPE, WEIGHTS = "recipe.toml", "model.safetensors"
CHECKSUM = "sha256"
"""the name of the weights' checksum among a safetensors file's notes"""
TARGET_TOKENS, SOURCE_TOKENS = "tokens", "tokens.source"
"""names of the tokenisers' files; without a source's own, one serves both sides"""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What a run folder holds."""

    folder: Path
    recipe: Recipe
    tokenizer: Tokenizer
    """of what the model writes (and reads, if joint)"""
    source_tokenizer: Tokenizer
    """of what an encoder-decoder reads; the same object if joint"""
    model: Model


def save_run(
    folder: str | Path, recipe: Recipe, tokenizer: Tokenizer, model: Model, *,
    source_tokenizer: Tokenizer | None = None, notes: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Make a run folder, or replace what is in it; `notes` stand with the weights."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    tokenizer.save(place, TARGET_TOKENS)
    if source_tokenizer is not None and source_tokenizer is not tokenizer:
        source_tokenizer.save(place, SOURCE_TOKENS)
    write_whole(place / RECIPE, recipe.to_toml().encode())
    write_weights(place / WEIGHTS, model.state_dict(), notes=notes)


def open_run(folder: str | Path, *, device: torch.device | str = "cpu", weights: str = WEIGHTS) -> Stored:
    """Read a run folder, its weights from the named file in it; the model comes ready for use, not for training."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{place}: no such run folder")
    for name in (RECIPE, weights):
        if not (place / name).is_file():
            raise InputError(f"{place}: not a finished run, it has no {name}")
    recipe = read_recipe(place / RECIPE)
    tokenizer = load_tokenizer(place, TARGET_TOKENS)
    joint = not any(place.glob(f"{SOURCE_TOKENS}.*"))
    with torch.device("meta"):
        model = build_model(recipe.model)
    model.to_empty(device="cpu")
    load_weights(model, read_weights(place / weights), source=str(place / weights))
    return Stored(
        folder=place,
        recipe=recipe,
        tokenizer=tokenizer,
        source_tokenizer=tokenizer if joint else load_tokenizer(place, SOURCE_TOKENS),
        model=model.to(device).eval(),
    )


def write_weights(path: Path, weights: Mapping[str, Tensor], *, notes: Mapping[str, str] | None = None) -> None:
    """Named tensors as safetensors, with a checksum; tensors that share memory must have been reduced to one name."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    marked = {**(notes or {}), CHECKSUM: _checksum(whole)}
    try:
        fill_whole(path, lambda beside: save_file(whole, beside, metadata=marked))
    except SafetensorError as error:  # it speaks for the system, in words only
        if f"os error {errno.ENOSPC}" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None
        raise


def read_weights(path: Path) -> dict[str, Tensor]:
    """The named tensors of a safetensors file; refuses a file that is not what was written, if it has a checksum."""
    try:
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
            expected = (file.metadata() or {}).get(CHECKSUM)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: not a whole safetensors file: {error}") from None
    if expected is not None and expected != _checksum(weights):
        raise InputError(f"{path}: is damaged: the weights do not have the checksum that was written with them")
    return weights


def read_notes(path: Path) -> dict[str, str]:
    """What `write_weights` was given to note beside the weights."""
    try:
        with safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: not a whole safetensors file: {error}") from None


def _checksum(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 of the names, types, shapes and values. A gigabyte takes about a second."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
