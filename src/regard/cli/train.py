"""`regard train`: learns what a recipe says into a run folder, or goes on where it was stopped."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.options import add_recipe_options, overrides

if TYPE_CHECKING:
    from regard.cli.progress import Screen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.add_argument("recipe", metavar="RECIPE.toml", help="what to train, on what, and how")
    parser.add_argument(
        "--out", metavar="RUN", required=True, help="folder of the run; an unfinished one is gone on with"
    )
    add_recipe_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Train; 130 if the user stopped it."""
    from regard.cli.progress import Screen
    from regard.config import read_recipe

    recipe = read_recipe(arguments.recipe, overrides(arguments))
    from regard.tasks.start import train
    from regard.training.machines import join_machines, leave_machines

    first = join_machines().first
    told = "texts" if recipe.task == "classify" and recipe.training.objective == "task" else "tokens"
    with Screen(quiet=not first, told=told) as screen:
        progress = train(recipe, arguments.out, watcher=screen)
    if progress.finished:
        screen.say(f"{arguments.out}: finished, {progress.step:,} updates in {progress.seconds / 60:.1f} minutes")
    else:
        screen.say(f"stopped and saved after {progress.step:,} updates; the same command goes on")
    if first:
        _report(arguments.out, screen)
    leave_machines()
    return 0 if progress.finished else 130


def _report(out: str, screen: "Screen") -> None:
    """Write the run's report. That it cannot be written does not undo the training."""
    from regard.errors import InputError
    from regard.explorer.report import write_report

    try:
        screen.say(f"report: {write_report(Path(out))}")
    except (InputError, OSError) as error:
        screen.say(f"the report could not be written: {error}")
