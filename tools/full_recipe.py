"""Writes recipes/translate.toml, the recipe with every key, from the records that define the keys, and its toy text.

With --check it writes nothing, names the files that are out of date, and leaves with 1 if there are any.
"""

import argparse
import dataclasses
import sys
import textwrap
from pathlib import Path
from typing import Any

from regard.config import DataConfig, DataSet, Recipe, recipe_from
from regard.config.plain import field_docs, to_toml
from regard.demo.grammar import corpus

RECIPES = Path(__file__).resolve().parent.parent / "recipes"

HEAD = """\
# Every key of a recipe, with what it says and its default. Copy it, name your own text, and change what you like. A key
# behind a # is there only to be known of: take the # away to change its value. The word "none" is a value.
#   regard train recipes/translate.toml --out runs/toy         # any key is an option too: --model.preset tiny
#   echo "The cats are small." | regard translate runs/toy
#
# Data: 1,200 English and French sentences of the demonstration's grammar, in recipes/toy. Time: under a minute on two
# cores. Score: none to speak of; so little text only shows that all parts work. Because of it three keys are not at
# their defaults: tokens.size, training.tokens_per_batch and training.warmup. Without minutes, steps and epochs it would
# be 10 epochs as well.
"""
STATED: dict[str, dict[str, object]] = {
    "data": {
        "train": ["recipes/toy/train.en", "recipes/toy/train.fr"],
        "valid": ["recipes/toy/valid.en", "recipes/toy/valid.fr"],
        "test": ["recipes/toy/test.en", "recipes/toy/test.fr"],
    },
    "tokens": {"kind": "bpe", "size": 800, "joint": True},
    "model": {"preset": "small"},
    "training": {
        "epochs": 5, "tokens_per_batch": 512, "learning_rate": 1e-3, "warmup": 50, "label_smoothing": 0.1,
        "precision": "auto",
    },
    "decoding": {"beam": 5},
}  # fmt: skip
"""what the recipe states; all else is shown behind a #"""
PRESET = "tiny, small, base, big, minilm, gpt2 or gpt3: what the keys below are unless they are stated"
SIZES = {"size": 1200, "valid": 60, "test": 60}
"""of the toy text"""


def full_recipe() -> str:
    """The recipe's text."""
    recipe = recipe_from({"task": "translate", **STATED})
    lines = [HEAD, *_comment(field_docs(Recipe)["task"] + ": translate, generate or classify"), 'task = "translate"']
    for section, stated in STATED.items():
        config = getattr(recipe, section)
        lines += ["", f"[{section}]"]
        if section == "model":
            lines += [*_comment(PRESET), f'preset = "{stated["preset"]}"']
        kind: type = type(config)
        for name, doc in field_docs(kind).items():
            if name == "sets":
                continue
            mark = "" if name in stated else "#"
            lines += [*_comment(doc), mark + _line(name, getattr(config, name))]
        if section == "data":
            lines += _sets()
    return "\n".join(lines) + "\n"


def _sets() -> list[str]:
    lines = _comment(field_docs(DataConfig)["sets"])
    lines.append("#[[data.sets]]")
    for field in dataclasses.fields(DataSet):
        value = ["more.en", "more.fr"] if field.name == "files" else field.default
        lines += [*_comment(field_docs(DataSet)[field.name]), "#" + _line(field.name, value)]
    return lines


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, 112, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _line(name: str, value: Any) -> str:
    plain = "none" if value is None else list(value) if isinstance(value, tuple) else value
    return to_toml({name: plain}).strip()


def toy_text() -> dict[str, str]:
    """The toy text's files, by their names."""
    made = corpus(size=3 * SIZES["size"], valid=3 * SIZES["valid"], test=3 * SIZES["test"])
    files = {}
    for side in ("train", "valid", "test"):
        pairs = [pair for pair in getattr(made, side) if pair.direction == "en-fr"]
        files[f"toy/{side}.en"] = "".join(f"{pair.source}\n" for pair in pairs)
        files[f"toy/{side}.fr"] = "".join(f"{pair.target}\n" for pair in pairs)
        files[f"toy/{side}.tsv"] = "".join(f"{pair.source}\t{pair.pattern}\n" for pair in pairs)
    return files


def stale(folder: Path) -> dict[Path, str]:
    """The files that differ from what they should be, with that."""
    right = {folder / name: text for name, text in {"translate.toml": full_recipe(), **toy_text()}.items()}
    return {
        path: text
        for path, text in right.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }  # fmt: skip


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say which files are out of date")
    parser.add_argument("--folder", type=Path, default=RECIPES, help="where the recipes are")
    arguments = parser.parse_args()
    files = stale(arguments.folder)
    for path, text in files.items():
        if arguments.check:
            print(f"{path}: out of date; run tools/full_recipe.py", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if arguments.check and files else 0


if __name__ == "__main__":
    sys.exit(main())
