"""`regard average`: a run whose weights are the mean of another's newest."""

import argparse

EPILOG = """\
examples:
  regard average runs/fr-en
  regard average runs/fr-en --last 3 --out runs/fr-en-last3
  regard evaluate runs/fr-en-average --against runs/fr-en

a run keeps the weights of its newest validations, as many as training.snapshots says
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("--last", type=int, metavar="INT", help="how many of the newest snapshots; without it all")
    parser.add_argument("--out", metavar="FOLDER", help="folder of the new run; without it RUN-average")


def run(arguments: argparse.Namespace) -> int:
    """Average, and write a run folder that can be used like any other."""
    from pathlib import Path

    from regard.errors import InputError
    from regard.models import load_weights
    from regard.runs import open_run, save_run
    from regard.training.snapshots import list_snapshots, mean_weights, step_of

    folder = Path(arguments.run)
    out = Path(arguments.out) if arguments.out else folder.with_name(f"{folder.resolve().name}-average")
    if arguments.last is not None and arguments.last < 1:
        raise InputError(f"--last = {arguments.last}: must be 1 or more")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is there already; take another --out")
    stored = open_run(folder)
    found = list_snapshots(folder)
    if not found:
        raise InputError(f"{folder}: keeps no snapshots to average; train with training.snapshots above 0")
    chosen = found[-arguments.last :] if arguments.last else found
    if arguments.last and len(chosen) < arguments.last:
        raise InputError(f"--last = {arguments.last}: {folder} keeps {len(found)} snapshots")
    load_weights(stored.model, mean_weights(chosen), source=f"the mean of {folder}'s snapshots")
    steps = [step_of(path) for path in chosen]
    save_run(
        out, stored.recipe, stored.tokenizer, stored.model, source_tokenizer=stored.source_tokenizer,
        notes={"mean of updates": ", ".join(map(str, steps))},
    )  # fmt: skip
    print(f"{out}: the mean of {len(steps)} snapshots, after updates {', '.join(f'{step:,}' for step in steps)}")
    print(f"whether it is better: regard evaluate {out} --against {folder}")
    return 0
