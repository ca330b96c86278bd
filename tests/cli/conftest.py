"""A command of the tests' own, put into the table, so that the machinery is tested whatever the real commands are."""

import argparse
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from regard.cli.commands import COMMANDS, Command
from regard.cli.options import add_recipe_options

Run = Callable[[argparse.Namespace], int]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Put `regard brew RECIPE --out RUN [--very-strong] [--cups N]` and the recipe's options into the table."""

    def put(run: Run) -> None:
        def add_arguments(parser: argparse.ArgumentParser) -> None:
            parser.add_argument("recipe", metavar="RECIPE", help="what to brew")
            parser.add_argument("--out", metavar="RUN", required=True, help="where | it <goes>")
            parser.add_argument("--very-strong", action="store_true", help="as it says")
            parser.add_argument("--cups", type=int, default=2, help="how many")
            add_recipe_options(parser)
            parser.epilog = "example:\n  regard brew coffee.toml --out pot"

        module = ModuleType("brew_command")
        vars(module).update(add_arguments=add_arguments, run=run)
        monkeypatch.setitem(sys.modules, "brew_command", module)
        monkeypatch.setitem(COMMANDS, "brew", Command("makes coffee", "brew_command"))

    return put
