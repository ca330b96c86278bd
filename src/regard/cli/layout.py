"""How a command's help looks, in a terminal and as a page of the docs: the same rows, drawn twice."""

import argparse
import shutil
import textwrap
from collections.abc import Iterable
from typing import NamedTuple

WIDEST = 96
"""columns of a page of help, where the terminal has them"""
NAMES = 38
"""columns that the names of options may take; the text of a longer one begins on the next line"""


class Row(NamedTuple):
    """An option or argument."""

    name: str
    text: str
    default: str


class Group(NamedTuple):
    """Options that belong together."""

    title: str
    text: str
    rows: list[Row]


class RecipeAction(argparse.Action):
    """An option that stands for a key of the recipe: the usage line has one word for all of them."""

    shown_default = ""
    usage_word = "[--section.key VALUE] ..."


def default_text(value: object) -> str:
    """A default as it would be typed; nothing where there is none to type."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case tuple() | list():
            return " ".join(map(default_text, value))
        case _:
            return str(value).removesuffix(".0")


def groups(parser: argparse.ArgumentParser) -> list[Group]:
    """All that a command takes, as its help orders it: arguments, options, then the groups that it made."""
    return [
        Group((group.title or "").removeprefix("positional "), group.description or "", rows)
        for group in parser._action_groups
        if (rows := [_row(action) for action in group._group_actions if action.help is not argparse.SUPPRESS])
    ]


def usage(parser: argparse.ArgumentParser, columns: int) -> str:
    """What the command takes, in a line that wraps where it must."""
    words: list[str] = []
    options = [action for action in parser._actions if action.option_strings and action.dest != "help"]
    for action in (action for action in parser._actions if not action.option_strings):
        words.append(_value(action))
    for action in sorted(options, key=lambda action: not action.required):
        if not isinstance(action, RecipeAction) and action.help is not argparse.SUPPRESS:
            word = f"{action.option_strings[0]} {_value(action)}".strip()
            words.append(word if action.required else f"[{word}]")
    words += dict.fromkeys(action.usage_word for action in options if isinstance(action, RecipeAction))
    start = f"usage: {parser.prog} "
    # An option and its value stay on one line: textwrap breaks at blanks, so those inside a word are hidden from it.
    hidden = " ".join(word.replace(" ", "\0") for word in words)
    lines = _wrapped(hidden, columns - len(start))
    return (start + ("\n" + " " * len(start)).join(lines)).replace("\0", " ").rstrip()


def page(parser: argparse.ArgumentParser) -> str:
    """What --help prints."""
    columns = terminal_columns()
    parts = [usage(parser, columns), *_paragraphs(parser.description, columns)]
    every = groups(parser)
    lengths = [len(row.name) for group in every for row in group.rows]
    left = max((length for length in lengths if length <= NAMES), default=0) + 4
    for group in every:
        lines = _wrapped(f"{group.title}: {group.text}" if group.text else f"{group.title}:", columns)
        for row in group.rows:
            text = _wrapped(row.text + (f" [{row.default}]" if row.default else ""), columns - left)
            beside = len(row.name) + 4 <= left
            first = [f"  {row.name}".ljust(left) + (text[0] if text else "")] if beside else [f"  {row.name}"]
            lines += [line.rstrip() for line in first + [" " * left + line for line in text[beside:]]]
        parts.append("\n".join(lines))
    if parser.epilog:
        parts.append(parser.epilog.strip("\n"))
    return "\n\n".join(parts)


def markdown(parser: argparse.ArgumentParser) -> str:
    """The command's page of the docs."""
    parts = [f"# {parser.prog}", *_paragraphs(parser.description, 120), f"```text\n{usage(parser, WIDEST)}\n```"]
    for group in groups(parser):
        parts.append(f"## {group.title}")
        parts += _paragraphs(group.text, 120)
        first = "argument" if group.title == "arguments" else "option"
        lines = [f"| {first} | what it says | default |", "|---|---|---|"]
        for row in group.rows:
            default = f"`{row.default}`" if row.default else ""
            cells = (f"`{row.name}`", row.text.replace("<", "&lt;"), default)
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        parts.append("\n".join(lines))
    if parser.epilog:
        parts.append(f"```text\n{parser.epilog.strip(chr(10))}\n```")
    parts.append("*Written by `tools/help_pages.py` from what the command itself takes.*")
    return "\n\n".join(parts) + "\n"


def _row(action: argparse.Action) -> Row:
    names = ", ".join(action.option_strings)
    name = f"{names} {_value(action)}".strip()
    if isinstance(action, RecipeAction):
        default = action.shown_default
    elif action.default in (None, False, argparse.SUPPRESS) or action.nargs == 0:
        default = ""
    else:
        default = default_text(action.default)
    return Row(name, " ".join((action.help or "").replace("%%", "%").split()), default)


def _value(action: argparse.Action) -> str:
    """What stands behind an option's name, or an argument's own name."""
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    word = action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
    match action.nargs:
        case 0:
            return ""
        case "?":
            return f"[{word}]"
        case "*":
            return f"[{word} ...]"
        case "+":
            return f"{word} ..."
        case int(count):
            return " ".join([word] * count)
        case _:
            return word


def terminal_columns() -> int:
    """How wide a page of help may be here."""
    return max(40, min(WIDEST, shutil.get_terminal_size((WIDEST, 40)).columns))


def _wrapped(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, max(columns, 20), break_long_words=False, break_on_hyphens=False)


def _paragraphs(text: str | None, columns: int) -> Iterable[str]:
    return ("\n".join(_wrapped(paragraph, columns)) for paragraph in (text or "").split("\n\n") if paragraph.strip())
