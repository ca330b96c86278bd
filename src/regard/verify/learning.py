"""Equalities of training: stopped, divided or shared among processes, a run comes to the same weights.

They are measured by the training loop itself, on copies of the subject's models and on random rows, by what every
update writes into the journal and by the weights at the end. Where sums are taken in another order, three things would
make more of the rounding than it is, and are kept away from:

- Adam turns a gradient that is zero but for rounding into a step as long as any other. Its epsilon is so large here
  that its steps are nearly as long as the gradients.
- A trained model finds random rows absurd, and its gradients are long: 5 to 18 on a translator of 2.6 million weights.
  They are clipped to a length of 1, whatever the model. What clipping hides, a gradient that is too long or too short
  as a whole, shows in the lengths before it, which are compared as well.
- A unit of ReLU that rounding alone switches on or off for some token changes its gradient at once. Of 30 seeds on that
  translator one met such a unit: -2.0e-6 in one run and 8e-7 in the other, where 0.9 is usual. Its row of the weights
  came out 7e-6 apart (unclipped, another's 2e-5) and the other rows 2e-7. The copies therefore have GELU instead, which
  has no such edge; a division of batches does not depend on it.

What is left is rounding: at most 4e-7 over 30 seeds on two trained translators, and 2e-6 over 132 tiny random models.
What the loss reaches has to move far beyond that. The rate is as high as it is so that of the vector that moves least,
a norm's, the farthest entry ends 1.6e-3 from where it began: one per cent of its gradient is beyond the bound.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from regard.config import Recipe, recipe_from
from regard.config.plain import to_plain
from regard.models import EncoderOnly, Model
from regard.nn.loss import cross_entropy, cross_entropy_formula
from regard.runs import read_weights, write_weights
from regard.runs.folder import RECIPE, WEIGHTS
from regard.training.journal import read_journal
from regard.training.machines import Machines
from regard.verify.certificate import Equality, Measured, difference
from regard.verify.rows import TASKS, learn
from regard.verify.subject import Case, Subject, random_inputs, states

UPDATES = 6
SMOOTH = {"learning_rate": 0.5, "epsilon": 1.0, "clip": 1.0}
"""of runs that add up in another order"""
PROCESSES = 2
PROGRAM = ("-m", "regard.verify.process")
"""what Python runs as one of them"""
TIMEOUT = 600.0
"""seconds that processes may take before they count as stuck"""


def resumed_is_uninterrupted(subject: Subject) -> Measured:
    """With dropout, a mean of weights and weight decay: whole, and in two parts."""
    for name, model in _some(subject):
        recipe = _recipe(model, dropout=0.1, training={"ema": 0.9, "weight_decay": 0.01, "learning_rate": 1e-3})
        half = replace(recipe, training=replace(recipe.training, steps=UPDATES // 2))
        with TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
            whole, parts = Path(folder, "whole"), Path(folder, "parts")
            _learn(model, recipe, whole, seed=subject.seed)
            _learn(model, half, parts, seed=subject.seed)
            _learn(model, recipe, parts, seed=subject.seed)
            yield from _compared(name, parts, whole)


def accumulated_is_whole(subject: Subject) -> Measured:
    """Each update's batch at once, and in three parts."""
    for name, model in _some(subject):
        recipe = _smooth_recipe(model)
        divided = replace(recipe, training=replace(recipe.training, accumulate=3))
        with TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
            whole, parts = Path(folder, "whole"), Path(folder, "parts")
            _learn(model, recipe, whole, seed=subject.seed)
            _learn(model, divided, parts, seed=subject.seed)
            yield from _compared(name, parts, whole)


def two_processes_are_one(subject: Subject) -> Measured:
    """One process, and two that talk through the loopback: with all weights each, and with a share of them each."""
    with TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
        cases = []
        for number, (name, model) in enumerate(_some(subject)):
            for shard in (False, True):
                recipe = _smooth_recipe(model, shard=shard)
                place = Path(folder, f"{number}-{'shared' if shard else 'whole'}")
                place.mkdir()
                write_weights(place / WEIGHTS, model.state_dict())
                (place / RECIPE).write_text(recipe.to_toml(), encoding="utf-8")
                _learn(model, recipe, place / "one", seed=subject.seed)
                cases.append((f"{name}{', weights shared' if shard else ''}", place))
        _run_processes([str(place) for _, place in cases], seed=subject.seed)
        for name, place in cases:
            yield from _compared(name, place / "two", place / "one")


def loss_is_torchs(subject: Subject) -> Measured:
    """Values and gradients, with and without smoothing."""
    for name, model in subject.models:
        draw = subject.draw()
        inputs = random_inputs(model, draw, rows=3)
        with torch.no_grad():
            told = states(model, inputs).flatten(0, 1)
        weight, bias = (model.pieces.weight, None) if isinstance(model, EncoderOnly) else model.output
        right = (inputs.source if isinstance(model, EncoderOnly) else inputs.target).flatten()
        for smoothing in (0.0, 0.1):
            sides = [
                _gradients(function, told, right, weight, bias, smoothing)
                for function in (cross_entropy, cross_entropy_formula)
            ]
            for part, (ours, theirs) in enumerate(zip(*sides, strict=True)):
                what = ("smoothed", "plain", "gradient of states", "of weights", "of bias")[part]
                yield f"{name}, smoothing {smoothing}, {what}", difference(ours, theirs, by_largest=True)


def _gradients(
    function: object, told: Tensor, right: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float
) -> list[Tensor]:
    assert callable(function)
    leaves = [one.detach().clone().requires_grad_() for one in (told, weight, bias) if one is not None]
    total, plain = function(leaves[0], right, *leaves[1:], smoothing=smoothing)
    (total / len(right)).backward()
    return [total / len(right), plain / len(right), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def _some(subject: Subject) -> tuple[Case, ...]:
    """The first model of each family: the loop is the same for all."""
    return tuple({type(case.model): case for case in reversed(subject.models)}.values())[::-1]


def _recipe(model: Model, *, dropout: float, training: Mapping[str, object]) -> Recipe:
    config = replace(model.config, dropout=dropout, attention_dropout=0.0, activation_dropout=0.0)
    return recipe_from(
        {
            "task": TASKS[config.family],
            "model": to_plain(config),
            "training": {
                "steps": UPDATES, "valid_every": UPDATES, "tokens_per_batch": 60, "schedule": "constant", "warmup": 0,
                "snapshots": 0, **training,
            },
        }
    )  # fmt: skip


def _smooth_recipe(model: Model, *, shard: bool = False) -> Recipe:
    """Of a run on which rounding stays as small as it is."""
    recipe = _recipe(model, dropout=0.0, training={**SMOOTH, "shard": shard})
    if recipe.model.activation != "relu":
        return recipe
    return replace(recipe, model=replace(recipe.model, activation="gelu"))


def _learn(model: Model, recipe: Recipe, out: Path, *, seed: int) -> None:
    torch.manual_seed(seed)
    learn(model.state_dict(), recipe, out, seed=seed, machines=Machines(rank=0, world=1, device=torch.device("cpu")))


def _compared(name: str, ours: Path, theirs: Path) -> Iterator[tuple[str, float]]:
    """The losses and the gradients' lengths of all updates, and the weights at the end."""
    for what, key in (("losses", "loss"), ("lengths of gradients", "gradient")):
        written = [
            torch.tensor([float(str(event[key])) for event in read_journal(run) if event["event"] == "step"])
            for run in (ours, theirs)
        ]
        yield f"{name}, {what}", difference(*written)
    right = read_weights(theirs / WEIGHTS)
    found = read_weights(ours / WEIGHTS)
    for weight in right:
        yield f"{name}, {weight}", difference(found[weight], right[weight])


def _run_processes(folders: list[str], *, seed: int) -> None:
    """Learn in every folder by processes as torchrun starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ, "WORLD_SIZE": str(PROCESSES), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    command = [sys.executable, *PROGRAM, str(seed), *folders]
    processes = [
        subprocess.Popen(
            command, env={**environment, "RANK": str(rank)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for rank in range(PROCESSES)
    ]
    try:
        said = [process.communicate(timeout=TIMEOUT)[1].decode(errors="replace") for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, text in zip(processes, said, strict=True):
        if process.returncode:
            raise RuntimeError(f"a process ended with {process.returncode}: {text.strip().splitlines()[-1:]}")


LEARNING = (
    Equality(
        name="resumed = uninterrupted",
        says="a run that was stopped and goes on comes to the same losses and weights, dropout included",
        bound=0.0,
        measure=resumed_is_uninterrupted,
    ),
    Equality(
        name="accumulated = whole batch",
        says="a batch that is computed in parts gives the losses and weights of the batch at once",
        bound=1e-5,
        measure=accumulated_is_whole,
    ),
    Equality(
        name="two processes = one",
        says="processes that divide each batch come to one's losses and weights, whether they share the weights or not",
        bound=1e-5,
        measure=two_processes_are_one,
    ),
    Equality(
        name="label-smoothed loss = torch's",
        says="the loss that holds a slice of the logits at a time is torch's on all of them, gradients included",
        bound=1e-5,
        measure=loss_is_torchs,
    ),
)
"""What holds of training."""
