"""The training loop. It knows no task: a job says what a batch's loss is and how well the model does.

Everything that decides the next update (weights, moments, place in the data, random state) is in the checkpoint, so a
run that was stopped goes on with the very numbers that it would have had.
"""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.config import Recipe, TrainingConfig
from regard.data import BatchStream, Position, Share, Update
from regard.data.stream import Divisible, Store
from regard.errors import WorkError
from regard.models import Model
from regard.runs.folder import WEIGHTS, write_weights
from regard.training.board import Board
from regard.training.checkpoint import Progress, load_checkpoint, random_state, save_checkpoint, set_random_state
from regard.training.journal import Journal
from regard.training.kept import STEP, restore_kept
from regard.training.machines import Machines
from regard.training.optimizer import FlatAdam, is_finite
from regard.training.precision import Precision, keep_memory
from regard.training.schedule import learning_rate
from regard.training.snapshots import forget_after, keep_snapshot

if TYPE_CHECKING:
    from regard.training.sharded import ShardedAdam

B = TypeVar("B", bound=Divisible)
B_contra = TypeVar("B_contra", bound=Divisible, contravariant=True)

PATIENCE_WITH_NUMBERS = 10
"""updates in a row that may be skipped for numbers that are not finite"""
VALIDATIONS = 15
"""of a run, if the recipe does not say how often"""
VALIDATION_TIME = 0.1
"""of a run that is so many minutes long, the most that validations take, about"""


class Job(Protocol[B]):
    """What the loop asks of a task."""

    @property
    def model(self) -> Model:
        """What learns."""

    @property
    def store(self) -> Store[B]:
        """What it learns from."""

    @property
    def weights(self) -> tuple[float, ...]:
        """How often each set of the store comes."""

    @property
    def goal(self) -> tuple[str, bool]:
        """The score that decides which weights are kept, and whether higher is better."""

    def loss(self, batch: B) -> tuple[Tensor, Tensor]:
        """The loss to learn from and the plain one to show, each summed over the batch's tokens."""

    def validate(self) -> dict[str, float]:
        """Scores of the model as it is, the goal's among them."""


class Watcher(Protocol):
    """Who is told how it goes, to show it to people."""

    def say(self, line: str) -> None:
        """Something worth a line."""

    def stepped(self, progress: Progress, *, share: float, loss: float, rate: float, speed: float) -> None:
        """An update was done; `speed` is in target tokens a second."""

    def validated(self, progress: Progress, scores: dict[str, float], *, better: bool) -> None:
        """A validation was done."""


def run_training(
    job: Job[B],
    recipe: Recipe,
    out: Path,
    *,
    precision: Precision,
    machines: Machines,
    watcher: Watcher,
    started: float,
) -> Progress:
    """Train until a limit of the recipe is reached; goes on where the folder's last checkpoint stands.

    If the user asks to stop, the run is saved, and the answer is not `finished`.
    """
    keep_memory()
    loop = _Loop(job, recipe, out, precision=precision, machines=machines, watcher=watcher, started=started)
    try:
        with _asked_to_stop(twice_is_at_once=machines.world == 1) as asked:
            loop.run(asked)
    finally:
        for record in (loop.journal, loop.board):
            if record:
                record.close()
    return loop.progress


class _Loop(Generic[B]):
    def __init__(
        self, job: Job[B], recipe: Recipe, out: Path, *, precision: Precision, machines: Machines, watcher: Watcher,
        started: float,
    ) -> None:  # fmt: skip
        self.job, self.recipe, self.out, self.machines, self.watcher = job, recipe, out, machines, watcher
        self.config: TrainingConfig = recipe.training
        self.optimizer = self._optimizer(precision)
        self.progress = Progress()
        found = load_checkpoint(out, watcher.say)
        if found:
            self.progress, tensors, random = found
            self.optimizer.load(tensors)
            if len(random) == machines.world:
                set_random_state(random[machines.rank])
        if machines.rank and not (found and len(random) == machines.world):
            torch.manual_seed(self.config.seed + 1_000_003 * machines.rank + self.progress.step)
        if machines.first:
            forget_after(out, self.progress.step)
        if self.progress.best is not None and not self._best_is_kept():
            self.progress = replace(self.progress, best=None, best_step=0)
        self.board = Board(out, self.progress.step) if machines.first and self.config.tensorboard else None
        self.journal = Journal(out) if machines.first else None
        self.started = started - self.progress.seconds
        self.saved_at = time.monotonic()
        self.validated_share = self._share_of_time()
        self.validation_share = 0.0
        event = "resumed" if found else "started"
        self._note(event, step=self.progress.step, precision=precision.name, processes=machines.world)

    def _best_is_kept(self) -> bool:
        machines, step = self.machines, self.progress.best_step
        return bool(machines.agree(float(machines.first and restore_kept(self.out, step, self.watcher.say))))

    def _optimizer(self, precision: Precision) -> "FlatAdam | ShardedAdam":
        if not self.config.shard or self.machines.world == 1:
            return FlatAdam(self.job.model, self.config, precision.dtype)
        from regard.training.sharded import ShardedAdam  # brings FSDP along: 0.5 s that only sharing needs

        sharded = ShardedAdam(self.job.model, self.config, precision.dtype, self.machines)
        self.job.model.eval()
        with torch.no_grad():  # FSDP finds its order in the first forward of the whole, so that comes before all else
            self.job.loss(self._idle_part())
        sharded.let_go()
        return sharded

    def _idle_part(self) -> B:
        """Something to compute for a process that has no part while others have one."""
        return self.job.store.batch(np.arange(1))

    def run(self, asked: list[int]) -> None:
        """Update after update, with validations and checkpoints between, to the end."""
        before = self.progress
        if before.owed:
            self._validate()
        stream = BatchStream(
            self.job.store,
            tokens_per_batch=self.config.tokens_per_batch,
            seed=self.config.seed,
            position=Position(epoch=self.progress.epoch, batch=self.progress.batch),
            weights=self.job.weights,
            share=Share(rank=self.machines.rank, world=self.machines.world, accumulate=self.config.accumulate),
        )
        with stream:
            for update in stream:
                if self.progress.step == before.step:
                    self._tell_of_batches(update)
                done = self.machines.agree(self._share(update))
                if done >= 1 or self._waited_enough():
                    break
                self._learn(update, done)
                due = self._validation_is_due(update)
                if self.machines.agree(float(bool(asked))):
                    self.progress = replace(self.progress, owed=due)
                    self._save()
                    self._note("interrupted", step=self.progress.step)
                    return
                if due:
                    self._validate()
                elif self.machines.agree(float(time.monotonic() - self.saved_at > 60 * self.config.checkpoint_minutes)):
                    self._save()
        if before.finished and self.progress.step == before.step and before.best is not None:
            self.watcher.say(f"already finished after {before.step:,} updates")
            return
        if self.progress.validated < self.progress.step or self.progress.best is None:
            self._validate()
        self.progress = replace(self.progress, finished=True)
        self._save()
        self._note("finished", step=self.progress.step, seconds=self.progress.seconds, best=self.progress.best)

    def _tell_of_batches(self, update: Update[B]) -> None:
        self._note("planned", batches=update.batches, padding=[round(share, 5) for share in update.padding])
        sides = ("of the sources", "of the targets") if len(update.padding) == 2 else ("",) * len(update.padding)
        padding = ", ".join(f"{share:.1%} {side}".rstrip() for share, side in zip(update.padding, sides, strict=True))
        self.watcher.say(f"batches: {update.batches:,} an epoch; padding is {padding}")

    def _share(self, update: Update[B]) -> float:
        """How much of the run is done: the limit that is nearest counts."""
        config, progress = self.config, self.progress
        shares = []
        if config.minutes is not None:
            shares.append(self._share_of_time())
        if config.steps is not None:
            shares.append(progress.step / config.steps)
        if config.epochs is not None or not shares:
            shares.append((progress.epoch + progress.batch / update.batches) / (config.epochs or 10))
        return max(shares)

    def _share_of_time(self) -> float:
        return (time.monotonic() - self.started) / (60 * self.config.minutes) if self.config.minutes else 0.0

    def _learn(self, update: Update[B], share: float) -> None:
        model, progress, began = self.job.model, self.progress, time.monotonic()
        if not model.training:  # asked each time, each module would be told: a fiftieth of a small model's update
            model.train()
        plain = torch.zeros((), device=self.machines.device)
        for part in update.parts:
            total, shown = self.job.loss(part)
            (total / update.tokens).backward()
            plain += shown.detach()
        for _ in range(self._parts_of_others(update)):
            (self.job.loss(self._idle_part())[0] * 0).backward()
        length = self.optimizer.collect()
        loss = self.machines.total(plain) / update.tokens
        step = progress.step + 1
        rate = learning_rate(self.config, step, share=share, d_model=self.recipe.model.d_model)
        fine = is_finite(loss, length)
        if fine:
            self.optimizer.step(rate, length)
        now = time.monotonic()
        self.progress = replace(
            progress, step=step, epoch=update.after.epoch, batch=update.after.batch, seconds=now - self.started,
            tokens=progress.tokens + update.tokens, skipped=0 if fine else progress.skipped + 1,
            finished=False,
        )  # fmt: skip
        speed = update.tokens / (now - began)
        self._note(
            "step" if fine else "skipped", step=step, loss=loss if fine else str(loss), rate=rate,
            gradient=length if fine else str(length), tokens=update.tokens, speed=round(speed), rows=update.rows,
        )  # fmt: skip
        if self.progress.skipped >= PATIENCE_WITH_NUMBERS:
            self._note("stopped", step=step, reason="numbers not finite")
            raise WorkError(
                f"loss or gradient was not finite for {self.progress.skipped} updates in a row (up to update {step}); "
                'take a lower training.learning_rate, a longer training.warmup, or training.precision = "float32"'
            )
        self.watcher.stepped(self.progress, share=share, loss=loss, rate=rate, speed=speed)

    def _parts_of_others(self, update: Update[B]) -> int:
        """Parts that other processes compute and this one does not: when weights are shared, all work in step."""
        if isinstance(self.optimizer, FlatAdam):
            return 0
        rows = math.ceil(update.rows / self.machines.world)  # of the process that has most
        return min(rows, self.config.accumulate) - len(update.parts)

    def _validation_is_due(self, update: Update[B]) -> bool:
        if self.config.valid_every is not None:
            return self.progress.step % self.config.valid_every == 0
        if self.config.minutes is not None:
            share = self._share_of_time()
            apart = max(1 / VALIDATIONS, self.validation_share / VALIDATION_TIME)
            return bool(self.machines.agree(float(share - self.validated_share > apart)))
        whole = self.config.steps or math.ceil((self.config.epochs or 10) * update.batches)
        return self.progress.step % max(1, whole // VALIDATIONS) == 0

    def _waited_enough(self) -> bool:
        return self.config.patience is not None and self.progress.waited >= self.config.patience

    def _validate(self) -> None:
        began = time.monotonic()
        self.job.model.eval()
        with self.optimizer.averaged(), torch.no_grad():
            scores = self.job.validate()
        name, higher = self.job.goal
        score, best = self.machines.agree(scores[name]), self.progress.best
        better = best is None or math.isnan(best) or (score > best if higher else score < best)
        step = self.progress.step
        self.progress = replace(
            self.progress, seconds=time.monotonic() - self.started, validated=step, owed=False,
            best=score if better else best, best_step=step if better else self.progress.best_step,
            waited=0 if better else self.progress.waited + 1,
        )  # fmt: skip
        seconds = round(time.monotonic() - began, 2)
        self._note("validated", step=step, seconds=seconds, better=better, **scores)
        if better or self.config.snapshots:
            weights = self.optimizer.named_weights()
            if better and self.machines.first:
                write_weights(self.out / WEIGHTS, weights, notes={STEP: str(step)})
            if self.config.snapshots and self.machines.first:
                keep_snapshot(self.out, step, weights, most=self.config.snapshots)
        self._save()
        self.validated_share = self._share_of_time()
        self.validation_share = (time.monotonic() - began) / (60 * (self.config.minutes or math.inf))
        self.watcher.validated(self.progress, scores, better=better)

    def _save(self) -> None:
        self.progress = replace(self.progress, seconds=time.monotonic() - self.started)
        state, random = self.optimizer.state(), self.machines.gather(random_state())
        if self.machines.first:
            save_checkpoint(self.out, self.progress, state, random)
        self.saved_at = time.monotonic()

    def _note(self, event: str, **facts: object) -> None:
        if self.journal:
            self.journal.write(event, **facts)
        if self.board:
            self.board.write(event, facts)


@contextmanager
def _asked_to_stop(*, twice_is_at_once: bool) -> Iterator[list[int]]:
    """A list that is empty until Ctrl-C or SIGTERM asks to stop; asked again, it stops at once.

    Not so under torchrun: its processes hear of one Ctrl-C from the terminal and from torchrun, which ends them by
    itself after half a minute.
    """
    asked: list[int] = []

    def note(number: int, frame: object) -> None:
        if asked and twice_is_at_once:
            raise KeyboardInterrupt
        asked.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        before = [signal.signal(number, note) for number in numbers]
    except ValueError:  # not the main thread: whoever started it stops it
        yield asked
        return
    try:
        yield asked
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
