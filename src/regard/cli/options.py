"""The recipe as options: one `--section.key VALUE` for every key, made from the records of `regard.config`."""

import argparse
import dataclasses
import typing
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args, get_origin

from regard.cli.layout import RecipeAction, default_text
from regard.config import PRESETS, DecodingConfig, Recipe, recipe_from
from regard.config.model import preset_values
from regard.config.plain import convert, describe_type, field_docs
from regard.config.recipe import DEFAULT_PRESET, PAPER_TRAINING
from regard.errors import InputError, nearest

SECTIONS: tuple[str, ...] = tuple(
    name for name, hint in typing.get_type_hints(Recipe).items() if dataclasses.is_dataclass(hint)
)
"""The recipe's sections, in its order."""

LONGEST_CHOICE = 22
"""columns up to which the values to choose from stand behind the option's name; longer ones go into its text"""


class _Stated(RecipeAction):
    """Reads the words as the key's type as soon as they are met, and keeps them under `section.key`."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, *, read: Callable[[object], object], shown: str,
        nargs: str | None, metavar: str, help: str,
    ) -> None:  # fmt: skip
        super().__init__(option_strings, dest, nargs=nargs, metavar=metavar, help=help, default=argparse.SUPPRESS)
        self.read = read
        self.shown_default = shown

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        setattr(namespace, self.dest, self.read(values))


class _Decoding(_Stated):
    """The same without the section's name."""

    usage_word = "[decoding options]"


def add_recipe_options(parser: argparse.ArgumentParser, sections: Sequence[str] = SECTIONS) -> None:
    """Add an option for every key of the sections, each section a group of the help.

    Nothing is set for a key that nobody states: `overrides` gives what was.
    """
    defaults = recipe_from({"task": "translate"})
    for section in sections:
        if section not in SECTIONS:
            raise InputError(f"section {section!r}: {nearest(section, SECTIONS)}")
        kind: type = type(getattr(defaults, section))
        group = parser.add_argument_group(section, _section_text(section, kind))
        if section == "model":
            _add(group, "model.preset", docs=f"sizes to start from: {_listed(tuple(PRESETS))}", metavar="PRESET",
                 read=_known_preset, shown=DEFAULT_PRESET)  # fmt: skip
        hints, docs = typing.get_type_hints(kind), field_docs(kind)
        for name, hint in hints.items():
            if any(map(dataclasses.is_dataclass, get_args(hint))):
                continue  # a list of tables, which only a file can hold
            stated, shown = f"{section}.{name}", default_text(getattr(getattr(defaults, section), name))
            if stated == "model.family":
                shown = ""
            read = partial(convert, hint, where=stated)
            text, metavar, nargs = _described(hint, docs[name])
            _add(group, stated, docs=text, metavar=metavar, read=read, shown=shown, nargs=nargs)


def add_decoding_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for every key of the recipe's section decoding, without its name in front: `--beam`."""
    group = parser.add_argument_group("decoding", "How answers are searched; what is not stated is as the recipe says.")
    docs = field_docs(DecodingConfig)
    for name, hint in typing.get_type_hints(DecodingConfig).items():
        stated = f"decoding.{name}"
        text, metavar, nargs = _described(hint, docs[name])
        group.add_argument(
            f"--{name.replace('_', '-')}", dest=stated, action=_Decoding, read=partial(convert, hint, where=stated),
            shown="", nargs=nargs, metavar=metavar, help=text.replace("%", "%%"),
        )  # fmt: skip


def overrides(arguments: argparse.Namespace) -> dict[str, dict[str, object]]:
    """What was stated of the recipe, nested as `regard.config.read_recipe` takes it."""
    nested: dict[str, dict[str, object]] = {}
    for stated, value in vars(arguments).items():
        section, _, name = stated.partition(".")
        if name:
            nested.setdefault(section, {})[name] = value
    return nested


def _add(
    group: argparse._ArgumentGroup, stated: str, *, docs: str, metavar: str, read: Callable[[Any], object], shown: str,
    nargs: str | None = None,
) -> None:  # fmt: skip
    text = docs.replace("%", "%%")
    group.add_argument(
        f"--{stated}", dest=stated, action=_Stated, read=read, shown=shown, nargs=nargs, metavar=metavar, help=text
    )


def _described(hint: Any, docs: str) -> tuple[str, str, str | None]:
    """The text of an option, what stands behind its name, and how many words it takes."""
    if get_origin(hint) is tuple:
        return docs, describe_type(get_args(hint)[0]), "+"
    metavar = describe_type(hint)
    if get_origin(hint) is Literal and len(metavar) > LONGEST_CHOICE:
        return f"{docs} ({_listed(get_args(hint))})", "CHOICE", None
    return docs, metavar, None


def _section_text(section: str, kind: type) -> str:
    text = " ".join((kind.__doc__ or "").split())
    match section:
        case "model":
            return f"{text} The defaults shown are those of preset {DEFAULT_PRESET}; another preset has others."
        case "training":
            paper = ", ".join(f"{name} {default_text(value)}" for name, value in PAPER_TRAINING.items())
            return f"{text} With preset base or big the defaults are the paper's: {paper}."
        case _:
            return text


def _known_preset(name: str) -> str:
    preset_values(name)
    return name


def _listed(values: Sequence[object]) -> str:
    *most, last = map(str, values)
    return f"{', '.join(most)} or {last}" if most else last
