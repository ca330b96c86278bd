"""`regard data`: fetches public data sets, and counts what is in a recipe's text."""

import argparse

EPILOG = """\
examples:
  regard data list
  regard data get multi30k
  regard data check recipes/multi30k-fr-en.toml

get writes into data/NAME, goes on where it was stopped, and refuses a file that is not the right one; the environment
variable REGARD_DATA names another folder than data
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("verb", metavar="list|get|check", choices=("list", "get", "check"), help="what to do")
    parser.add_argument("what", metavar="NAME|RECIPE.toml", nargs="?", help="of get a data set, of check a recipe")
    parser.add_argument("--out", metavar="FOLDER", help="of get: where the files go; without it data/NAME")
    parser.add_argument("--mirror", metavar="URL", help="of get: another place that holds the files")


def run(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    from regard.errors import InputError

    if arguments.verb == "list":
        _list()
        return 0
    if arguments.what is None:
        wanted = {"get": "a data set, such as multi30k (regard data list)", "check": "a recipe"}[arguments.verb]
        raise InputError(f"regard data {arguments.verb}: name {wanted}")
    if arguments.verb == "get":
        _get(arguments)
    else:
        _check(arguments.what)
    return 0


def _list() -> None:
    from regard.data.fetch import known_sets

    for name, source in known_sets().items():
        print(f"{name}\n  {source.about}\n  {len(source.files)} files from {source.base}\n  licence: {source.licence}")


def _get(arguments: argparse.Namespace) -> None:
    import os
    import sys
    from pathlib import Path

    from regard.data.fetch import fetch_set

    folder = Path(arguments.out) if arguments.out else Path(os.environ.get("REGARD_DATA", "data")) / arguments.what
    fetch_set(
        arguments.what, folder, lambda line: print(line, file=sys.stderr, flush=True), mirror=arguments.mirror
    )  # fmt: skip
    print(folder)


def _check(recipe: str) -> None:
    from regard.config import read_recipe
    from regard.data.survey import survey, survey_table
    from regard.errors import InputError

    read = read_recipe(recipe)
    if read.task != "translate":
        raise InputError(f"{recipe}: its task is {read.task}; check counts sentence pairs, so far")
    print("\n".join(survey_table(list(survey(read.data)))))
