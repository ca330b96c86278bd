"""Starting a training run: the recipe's task, its job, and the folder that all of it goes into."""

import errno
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from regard.config import Recipe, read_recipe
from regard.errors import InputError
from regard.runs.folder import RECIPE, TARGET_TOKENS
from regard.tasks.classify import ClassifyJob
from regard.tasks.contrast import ContrastJob
from regard.tasks.generate import GenerateJob
from regard.tasks.masked import MaskedJob
from regard.tasks.translate import TranslateJob
from regard.text.files import forget_sealed, write_whole
from regard.training.checkpoint import Progress
from regard.training.loop import Job, Watcher, run_training
from regard.training.machines import Machines, join_machines
from regard.training.precision import choose_precision

STARTS = ("classify", "generate")
"""Tasks that can start from another run."""


def train(recipe: Recipe, out: str | Path, *, watcher: Watcher | None = None) -> Progress:
    """Train what the recipe says into the folder `out`; called again for an unfinished folder, it goes on.

    The answer says how far it came; it is not `finished` if the user asked to stop.
    """
    started = time.monotonic()
    folder = Path(out)
    machines = join_machines()
    teller = watcher if watcher is not None and machines.first else Silent()
    if machines.first:
        _claim(recipe, folder)
    job = machines.one_first(lambda: _job(recipe, folder, teller.say, machines))
    if machines.first:
        write_whole(folder / RECIPE, job.recipe.to_toml().encode())
    precision = choose_precision(recipe.training.precision, machines.device)
    teller.say(f"precision: {precision.reason}")
    return run_training(
        job, job.recipe, folder, precision=precision, machines=machines, watcher=teller, started=started
    )


class Silent:
    """A watcher that tells nobody."""

    def say(self, line: str) -> None:
        """Nothing."""

    def stepped(self, progress: Progress, *, share: float, loss: float, rate: float, speed: float) -> None:
        """Nothing."""

    def validated(self, progress: Progress, scores: dict[str, float], *, better: bool) -> None:
        """Nothing."""


class TaskJob(Job[Any], Protocol):
    """A job that also knows its recipe, with what was found out from the data."""

    @property
    def recipe(self) -> Recipe:
        """As resolved."""


def _job(recipe: Recipe, out: Path, say: Callable[[str], None], machines: Machines) -> TaskJob:
    """The one place where a task is chosen."""
    if recipe.training.r_drop and recipe.task != "translate":
        raise InputError(f"training.r_drop = {recipe.training.r_drop}: only translation has it; 0 for {recipe.task}")
    if recipe.training.objective != "task" and recipe.task != "classify":
        raise InputError(f"training.objective = {recipe.training.objective!r}: is for task = 'classify'")
    if recipe.task not in STARTS and (recipe.training.start_from or recipe.training.freeze):
        key = "start_from" if recipe.training.start_from else "freeze"
        raise InputError(
            f"training.{key}: task = {recipe.task!r} learns from first values; there is {', '.join(STARTS)}"
        )
    match recipe.task:
        case "translate":
            return TranslateJob(recipe, out, say, device=machines.device)
        case "generate":
            return GenerateJob(recipe, out, say, device=machines.device)
        case "classify":
            return _classify_job(recipe, out, say, machines)


def _classify_job(recipe: Recipe, out: Path, say: Callable[[str], None], machines: Machines) -> TaskJob:
    """An encoder learns labels, hidden pieces, or pairs."""
    match recipe.training.objective:
        case "task":
            return ClassifyJob(recipe, out, say, device=machines.device)
        case "masked":
            return MaskedJob(recipe, out, say, device=machines.device)
        case "contrastive":
            return ContrastJob(recipe, out, say, device=machines.device)


def _claim(recipe: Recipe, folder: Path) -> None:
    """Make the folder, or refuse one that another recipe trains in. How long to train may be changed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(f"{folder}: no folder can be made there: {error.strerror}") from None
    if not (folder / RECIPE).exists():
        for path in folder.glob(f"{TARGET_TOKENS}.*"):  # of a start that ended before its recipe stood here
            forget_sealed(path)
        return
    there = read_recipe(folder / RECIPE)
    if not recipe.data.labels:  # not stated, so they were found out
        there = replace(there, data=replace(there.data, labels=()))
    if recipe.data.several_labels is None:
        there = replace(there, data=replace(there.data, several_labels=None))
    if _lasting(there) != _lasting(recipe):
        theirs, ours = (one.to_toml().splitlines() for one in (_lasting(there), _lasting(recipe)))
        changed = sorted({line.split(" = ")[0] for line in set(theirs) ^ set(ours)})
        raise InputError(
            f"{folder}: holds a run of another recipe (it differs in {', '.join(changed)}); take another --out, "
            "or the same recipe to go on"
        )


def _lasting(recipe: Recipe) -> Recipe:
    """The recipe without what may change between one start and the next, or is found out at the first."""
    training = replace(
        recipe.training, minutes=None, steps=None, epochs=None, patience=None, checkpoint_minutes=1.0, accumulate=1,
        shard=False, snapshots=0, tensorboard=False,
    )  # fmt: skip
    model = replace(recipe.model, vocabulary=None, source_vocabulary=None, labels=None)
    return replace(recipe, data=replace(recipe.data, continuous=None), training=training, model=model)
