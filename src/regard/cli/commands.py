"""The table of commands, and how one of them is found: its module is imported only when it is needed."""

import argparse
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from regard.cli.parser import Parser


class Command(NamedTuple):
    """A row of the table."""

    summary: str
    """what it does, in a line of help"""
    module: str
    """where it is written: a module with `add_arguments` and `run`"""


class CommandModule(Protocol):
    """What the module of a command holds."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """State what the command takes."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it, and answer with the exit code."""
        ...


COMMANDS: dict[str, Command] = {
    "demo": Command("trains on a corpus of its own and shows what came of it, in minutes", "regard.cli.demo"),
    "train": Command("learns what a recipe says into a run folder, or goes on with it", "regard.cli.train"),
    "translate": Command("translates lines of text with a trained run", "regard.cli.translate"),
    "generate": Command("goes on from a prompt with a trained language model", "regard.cli.generate"),
    "score": Command("tells how likely a run finds given translations", "regard.cli.score"),
    "classify": Command("tells the labels of lines of text with a trained run", "regard.cli.classify"),
    "embed": Command("makes vectors of lines of text with a trained or imported run", "regard.cli.embed"),
    "evaluate": Command("scores a run's answers to a test text, and against another's", "regard.cli.evaluate"),
    "look": Command("shows what every head looks at: the explorer, live or in a file", "regard.cli.look"),
    "average": Command("makes a run of the mean of a run's newest weights", "regard.cli.average"),
    "data": Command("fetches public data sets, and counts what is in a recipe's text", "regard.cli.data"),
    "cost": Command("says what a model costs: parameters, arithmetic, memory", "regard.cli.cost"),
    "import": Command("makes a run folder of another program's model: llama2.c, BERT, GPT-2", "regard.cli.import_"),
    "export": Command("makes a model of another program of a run, and compares the two", "regard.cli.export"),
    "verify": Command("measures what is claimed equal, on a run or on tiny models", "regard.cli.verify"),
}
"""Every command, in the order of the overview."""


def module_of(name: str) -> CommandModule:
    """The module of a command."""
    return cast(CommandModule, import_module(COMMANDS[name].module))


def parser_of(name: str) -> Parser:
    """The parser of a command, complete."""
    summary = COMMANDS[name].summary
    parser = Parser(prog=f"regard {name}", description=f"{summary[0].upper()}{summary[1:]}.")
    module_of(name).add_arguments(parser)
    return parser


def overview() -> str:
    """What `regard --help` prints."""
    width = max(map(len, COMMANDS), default=0)
    lines = ["usage: regard COMMAND ...", "", "Train a Transformer on your own data, look at its heads, ship it."]
    if COMMANDS:
        lines += ["", "commands:", *(f"  {name:{width}}   {command.summary}" for name, command in COMMANDS.items())]
    lines += ["", "regard COMMAND --help says what a command takes; regard --version says which regard this is."]
    return "\n".join(lines)
