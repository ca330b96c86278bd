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
        if progress.finished:
            _test(arguments.out, progress.best_step, screen)
        _report(arguments.out, screen)
    leave_machines()
    return 0 if progress.finished else 130


def _test(out: str, step: int, screen: "Screen") -> None:
    """Score the weights that are kept on the recipe's test text, once, and leave the scores in the journal."""
    from dataclasses import asdict

    from regard.cli.commands import parser_of
    from regard.cli.evaluate import score_translations
    from regard.config import read_recipe
    from regard.errors import InputError
    from regard.runs.folder import RECIPE
    from regard.training.journal import Journal, read_journal

    folder = Path(out)
    recipe = read_recipe(folder / RECIPE)
    known = any(event["event"] == "tested" and event["step"] == step for event in read_journal(folder))
    if recipe.task != "translate" or not recipe.data.test or known:
        return
    try:
        found = score_translations(recipe, parser_of("evaluate").parse_args([out]))
    except InputError as error:  # that does not undo the training
        screen.say(f"the test text could not be scored: {error}")
        return
    journal = Journal(folder)
    scores = [asdict(score) for score in found.scores.whole]
    journal.write("tested", step=step, files=found.where, beam=found.beam, scores=scores)
    journal.close()
    shown = "  ".join(f"{score.name} {score.value:.2f}" for score in found.scores.whole)
    screen.say(f"{found.where}: {shown}  beam {found.beam}")


def _report(out: str, screen: "Screen") -> None:
    """Write the run's report. That it cannot be written does not undo the training."""
    from regard.errors import InputError
    from regard.explorer.report import write_report

    try:
        screen.say(f"report: {write_report(Path(out))}")
    except (InputError, OSError) as error:
        screen.say(f"the report could not be written: {error}")
