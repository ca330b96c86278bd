"""One of several processes that learn together, as a program: a seed, then folders with a recipe and first weights."""

import sys
from pathlib import Path

from regard.config import read_recipe
from regard.runs import read_weights
from regard.runs.folder import RECIPE, WEIGHTS
from regard.training.machines import join_machines, leave_machines
from regard.verify.rows import learn


def main(words: list[str]) -> None:
    """Learn in each folder together with the other processes."""
    seed, *folders = words
    machines = join_machines()
    for folder in map(Path, folders):
        recipe, weights = read_recipe(folder / RECIPE), read_weights(folder / WEIGHTS)
        learn(weights, recipe, folder / "two", seed=int(seed), machines=machines)
    leave_machines()


if __name__ == "__main__":
    main(sys.argv[1:])
