"""Which formats there are, and how one is told from what lies at a path. No pickle is ever read."""

from pathlib import Path
from typing import Literal

from regard.errors import InputError
from regard.interop.bert import read_bert
from regard.interop.gpt2 import read_gpt2
from regard.interop.imported import Imported
from regard.interop.llama2c import find_checkpoint, read_llama2c
from regard.interop.saved import CONFIG, PICKLED, read_config
from regard.runs import save_run

Format = Literal["llama2c", "bert", "gpt2"]

SAVED: dict[str, Format] = {"bert": "bert", "gpt2": "gpt2"}
"""Kinds of model that transformers saves (`model_type` in config.json) and that can be read."""


def import_run(path: str | Path, out: str | Path, *, tokenizer: str | Path | None = None) -> Imported:
    """Read the model at `path`, a file or a folder, and make the run folder `out` of it.

    `tokenizer` names the tokeniser's file where it does not lie beside the model.
    """
    _check_free(Path(out))
    imported = _read(Path(path), None if tokenizer is None else Path(tokenizer))
    save_run(out, imported.recipe, imported.tokenizer, imported.model)
    return imported


def _read(path: Path, tokenizer: Path | None) -> Imported:
    match format_of(path):
        case "llama2c":
            return read_llama2c(find_checkpoint(path), tokenizer)
        case "bert":
            return read_bert(_with_own_tokenizer(path, tokenizer))
        case "gpt2":
            return read_gpt2(_with_own_tokenizer(path, tokenizer))


def format_of(path: Path) -> Format:
    """The format of what lies there; the reader then looks into the file and refuses what only looks like it."""
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.name == CONFIG:
        path = path.parent
    if (path / CONFIG).is_file():
        kind = str(read_config(path).get("model_type"))
        if kind not in SAVED:
            raise InputError(f"{path / CONFIG}: model_type = {kind!r} cannot be imported; there is {', '.join(SAVED)}")
        return SAVED[kind]
    if path.match("*.safetensors"):
        raise InputError(f"{path}: name the folder that it lies in, with its {CONFIG} and tokeniser")
    if path.is_file() or (any(path.glob("*.bin")) and not any(path.glob(PICKLED[0]))):
        return "llama2c"
    raise InputError(
        f"{path}: no model that can be imported lies there; there is llama2.c (a .bin file) and what transformers "
        f"saves (a folder with {CONFIG}; {', '.join(SAVED)})"
    )


def _with_own_tokenizer(path: Path, tokenizer: Path | None) -> Path:
    """The folder, whose tokeniser is always its own."""
    if tokenizer is not None:
        raise InputError(f"--tokenizer {tokenizer}: {path} has its own, which its ids belong to; leave it out")
    return path.parent if path.name == CONFIG else path


def _check_free(out: Path) -> None:
    """Refuse a place where something is: files of two models in one folder would be mistaken for one run."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; name a folder that does not exist yet")
    if out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out}: is not empty; name a folder that does not exist yet, or empty it first")
