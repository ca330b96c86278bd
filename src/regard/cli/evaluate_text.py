"""`regard evaluate` of a language model: perplexity and bits per byte of a text."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import InputError

if TYPE_CHECKING:
    from regard.config import Recipe
    from regard.data import PackedStore
    from regard.runs import Stored
    from regard.tasks.generate import TextScore

_OTHERS = ("target", "hypotheses", "beam", "tag", "per_sentence")
"""options that only translation has"""


def evaluate_text(recipe: "Recipe", arguments: argparse.Namespace) -> int:
    """Score the text, print."""
    from regard.runs import open_run
    from regard.tasks.generate import measure

    for name in _OTHERS:
        if getattr(arguments, name, None):
            option = name.replace("_", "-")
            raise InputError(f"--{option}: {arguments.run} generates; say --test FILE for the text to score")
    found = []
    for folder in [arguments.run, *([arguments.against] if arguments.against else [])]:
        stored = open_run(folder)
        if stored.recipe.task != "generate":
            raise InputError(f"{folder}: its task is {stored.recipe.task}, it does not generate")
        text, where = _text(stored, recipe, arguments.test or arguments.source)
        found.append((folder, measure(stored.model, text, stored.tokenizer), text.window))
    if arguments.json:
        rows = [_plain(folder, score, window) for folder, score, window in found]
        print(json.dumps({**rows[0], "text": where, **({"against": rows[1]} if rows[1:] else {})}, indent=2))
        return 0
    for folder, score, window in found:
        print("\n".join(_lines(folder, score, window, where)))
    return 0


def _text(stored: "Stored", recipe: "Recipe", file: str | None) -> tuple["PackedStore", str]:
    """The text that is asked for, cut by the run's own tokeniser, and what it is."""
    from regard.tasks.generate import OTHER_TEXT, held_out_text, packed_text

    data, folder = recipe.data, Path(stored.folder)
    for files, what in (((file,) if file else (), ""), (data.test, ""), (data.valid, "validation text ")):
        if files:
            return packed_text(stored.recipe, files, stored.tokenizer, folder=folder / OTHER_TEXT), what + ", ".join(
                files
            )
    if data.valid_share and stored.recipe.data == data:
        text = held_out_text(stored.recipe, stored.tokenizer, folder=folder / "data")
        return text, f"the last {data.valid_share:.0%} of {', '.join(data.train)}"
    raise InputError(f"{stored.folder}: its recipe has no data.test; say --test FILE for the text to score")


def _plain(folder: str, score: "TextScore", window: int) -> dict[str, object]:
    """For JSON."""
    return {
        "run": folder, "loss": score.loss, "perplexity": score.perplexity, "bits_per_byte": score.bits_per_byte,
        "pieces": score.pieces, "bytes": score.bytes, "unknown": score.unknown, "window": window,
    }  # fmt: skip


def _lines(folder: str, score: "TextScore", window: int, where: str) -> list[str]:
    """For people."""
    lines = [
        f"{folder} on {where}: {score.pieces:,} pieces, {score.bytes:,} bytes",
        f"loss           {score.loss:8.4f}  nats a piece",
        f"perplexity     {score.perplexity:8.3f}  of a piece",
        f"bits per byte  {score.bits_per_byte:8.4f}",
        f"longer documents are read in windows of {window:,} pieces, side by side",
    ]
    if score.unknown:
        lines.append(f"{score.unknown:,} pieces are unknown: bits per byte count each as if it could be spelt")
    return lines
