"""Folders as transformers saves them: config.json, and weights as safetensors in one file or in several.

Nothing in them is executed. Weights that are pickled (pytorch_model.bin) are refused, since reading those could run
code.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import InputError
from regard.runs import read_weights

CONFIG, WHOLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLED = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt")


def read_config(folder: Path, *, needed: bool = True) -> dict[str, Any]:
    """What config.json says; empty if there is none and none is needed."""
    path = folder / CONFIG
    if not path.is_file():
        if needed:
            raise InputError(f"{folder}: has no {CONFIG}; name a folder as transformers saves it")
        return {}
    return _object(path)


def read_saved_weights(folder: Path) -> dict[str, Tensor]:
    """All weights as float32, from one file or from the parts that the index names."""
    if (folder / WHOLE).is_file():
        return _floats(read_weights(folder / WHOLE))
    if not (folder / INDEX).is_file():
        if pickled := sorted(file.name for kind in PICKLED for file in folder.glob(kind)):
            raise InputError(
                f"{folder / pickled[0]}: a pickle, which could run code and is never read; save the model again as "
                "safetensors (save_pretrained does)"
            )
        raise InputError(f"{folder}: has no weights: neither {WHOLE} nor {INDEX}")
    index = _object(folder / INDEX).get("weight_map")
    if not isinstance(index, dict):
        raise InputError(f"{folder / INDEX}: has no weight_map")
    weights: dict[str, Tensor] = {}
    for part in sorted(set(map(str, index.values()))):
        if Path(part).name != part:
            raise InputError(f"{folder / INDEX}: names {part!r}, which is not a file beside it")
        found = read_weights(folder / part)
        weights |= {name: weight for name, weight in found.items() if index.get(name) == part}
    if missing := sorted(set(index) - set(weights)):
        raise InputError(f"{folder}: {len(missing)} weights of {INDEX} are not in their files, such as {missing[0]}")
    return _floats(weights)


def _floats(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.to(torch.float32) for name, weight in weights.items()}


def _object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object")
    return content
