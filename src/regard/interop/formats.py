"""Which formats there are, and how one is told from what lies at a path. No pickle is ever read."""

from pathlib import Path
from typing import Literal

from regard.errors import InputError
from regard.interop.imported import Imported
from regard.interop.llama2c import find_checkpoint, read_llama2c
from regard.runs import save_run

Format = Literal["llama2c"]


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


def format_of(path: Path) -> Format:
    """The format of what lies there; the reader then looks into the file and refuses what only looks like it."""
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.is_file() or any(path.glob("*.bin")):
        return "llama2c"
    raise InputError(f"{path}: no model that can be imported lies there; there is llama2.c (a .bin file)")


def _check_free(out: Path) -> None:
    """Refuse a place where something is: files of two models in one folder would be mistaken for one run."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; name a folder that does not exist yet")
    if out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out}: is not empty; name a folder that does not exist yet, or empty it first")
