"""`regard train`: learns what a recipe says into a run folder, or goes on where it was stopped."""

import argparse

from regard.cli.options import add_recipe_options, overrides


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

    with Screen() as screen:
        progress = train(recipe, arguments.out, watcher=screen)
    if not progress.finished:
        screen.say(f"stopped and saved after {progress.step:,} updates; the same command goes on")
        return 130
    screen.say(f"{arguments.out}: finished, {progress.step:,} updates in {progress.seconds / 60:.1f} minutes")
    return 0
