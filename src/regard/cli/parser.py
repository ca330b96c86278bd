"""An argparse parser with our habits: wrong words are an `InputError` that names the nearest right one.

Options are never abbreviated, and may be spelt with - or with _ alike.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from regard.cli import layout
from regard.errors import InputError


class Parser(argparse.ArgumentParser):
    """The parser of one command."""

    def __init__(self, *, prog: str, description: str) -> None:
        """An empty parser but for --help."""
        super().__init__(prog=prog, description=description, add_help=False, allow_abbrev=False)
        self.add_argument("-h", "--help", action="help", help="print this and leave")

    def parse_known_args(  # type: ignore[override]  # typeshed has overloads for what is a single signature
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Check the options' names before argparse, which would take the value of an unknown one for an argument."""
        return super().parse_known_args(None if args is None else self._spelt(args), namespace)

    def _spelt(self, words: Sequence[str]) -> list[str]:
        """The words with each option spelt as it was added."""
        options = {_plain(option): option for option in self._option_string_actions}
        ours = list(words)
        for place, word in enumerate(words):
            name, equals, value = word.partition("=")
            if name == "--" and not equals:
                break
            if name.startswith("--") and " " not in name:
                if _plain(name) not in options:
                    raise InputError(f"unknown option {name}: {self._hint(name, options.values())}")
                ours[place] = options[_plain(name)] + equals + value
        return ours

    def _hint(self, name: str, options: Iterable[str]) -> str:
        right = nearest_option(name, [option for option in options if option.startswith("--")])
        return f"did you mean {right}?" if right else f"{self.prog} --help lists them"

    def error(self, message: str) -> NoReturn:
        """Wrong words are wrong input."""
        raise InputError(f"{message}; see {self.prog} --help")

    def format_usage(self) -> str:
        """One line: what the command takes."""
        return layout.usage(self, layout.terminal_columns()) + "\n"

    def format_help(self) -> str:
        """The page of --help."""
        return layout.page(self) + "\n"


def nearest_option(name: str, options: Sequence[str]) -> str | None:
    """The option that was probably meant.

    Of `--model.d_modle` the section is right and only the rest is compared: else everything in --model would look near.
    A key without its section, such as `--d_model`, finds it, and so does one in a section that does not exist.
    """
    section, _, key = _plain(name).rpartition(".")
    whole = {_plain(option): option for option in options}
    beside = {
        plain.rpartition(".")[2]: option for plain, option in whole.items() if plain.rpartition(".")[0] == section
    }
    if section and beside:
        return _nearest(key, beside, cutoff=0.5)
    bare = {plain.rpartition(".")[2].removeprefix("--"): option for plain, option in reversed(whole.items())}
    return _nearest(key.removeprefix("--"), bare, cutoff=0.6) or _nearest(_plain(name), whole, cutoff=0.7)


def _nearest(name: str, named: Mapping[str, str], *, cutoff: float) -> str | None:
    close = get_close_matches(name, named, n=1, cutoff=cutoff)
    return named[close[0]] if close else None


def _plain(option: str) -> str:
    """An option in the spelling that all its spellings share."""
    return option[:2] + option[2:].replace("-", "_")
