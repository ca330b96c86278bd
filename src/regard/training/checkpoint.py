"""Checkpoints: all that a run needs to go on as if it had never stopped. Safetensors and JSON, with checksums.

A checkpoint is a folder that appears whole: written beside its place, flushed, then renamed. Reading takes the newest
one whose checksums hold, so a crash, a full disk or a flipped byte costs the steps since, never the run.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.config.plain import build, to_plain
from regard.errors import InputError
from regard.runs import read_weights, write_weights
from regard.text.files import flush_folder, write_whole

CHECKPOINTS = "checkpoints"
_STATE, _FACTS = "state.safetensors", "state.json"
KEPT = 2
"""checkpoints that stay: if the newest is damaged there is one more"""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands."""

    step: int = 0
    """updates done"""
    epoch: int = 0
    """whole passes done"""
    batch: int = 0
    """batches done of the pass"""
    seconds: float = 0.0
    """time spent"""
    tokens: int = 0
    """target tokens learned from"""
    skipped: int = 0
    """updates left out in a row because a number was not finite"""
    best: float | None = None
    """the best score of a validation"""
    best_step: int = 0
    """the update after which it was reached"""
    waited: int = 0
    """validations since"""
    validated: int = 0
    """the update after which the last validation was"""
    owed: bool = False
    """whether a validation was due when the run was stopped"""
    finished: bool = False


def random_state() -> Tensor:
    """The state of torch's generators: the processor's, then the accelerator's if there is one."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_available():
        states.append(torch.cuda.get_rng_state())
    return torch.cat(states)


def set_random_state(state: Tensor) -> None:
    """Let torch's generators go on from there."""
    own = len(torch.get_rng_state())
    torch.set_rng_state(state[:own])
    if torch.cuda.is_available() and len(state) > own:
        torch.cuda.set_rng_state(state[own:])


def save_checkpoint(
    folder: Path, progress: Progress, tensors: dict[str, Tensor], random: Sequence[Tensor] | None = None
) -> Path:
    """Write a checkpoint into the run's folder, and take away all but the newest few.

    Those of later updates go too: the run fell back behind them since they are damaged. `random` holds each process's
    `random_state`; without it there is one process, and its state is taken.
    """
    home = folder / CHECKPOINTS
    home.mkdir(parents=True, exist_ok=True)
    place = home / f"step-{progress.step:08d}"
    while place.exists():  # the same step again; what is there may be all there is, and stays until this one is whole
        place = place.with_name(f"{place.name}-again")
    beside = home / f".{place.name}.part"
    for left in home.glob(".step-*.part"):  # of a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    try:
        beside.mkdir()
        states = {f"random.{rank}": state for rank, state in enumerate(random or [random_state()])}
        write_weights(beside / _STATE, {**tensors, **states})
        facts = {"progress": to_plain(progress), "sha256": _hash(beside / _STATE)}
        write_whole(beside / _FACTS, json.dumps({**facts, "check": _check(facts)}, indent=1).encode())
        beside.rename(place)
        flush_folder(home)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    places = _newest_first(home)
    mine = places.index(place)
    for old in places[:mine] + places[mine + KEPT :]:
        shutil.rmtree(old, ignore_errors=True)
    return place


def load_checkpoint(
    folder: Path, notice: Callable[[str], None]
) -> tuple[Progress, dict[str, Tensor], list[Tensor]] | None:
    """The newest whole checkpoint of a run, or none if it has none; `notice` hears of damaged ones.

    Beside the progress and the tensors: the random state of each of the processes that there were.
    """
    home = folder / CHECKPOINTS
    damaged = 0
    for place in _newest_first(home):
        try:
            progress, tensors = _read(place)
        except (InputError, OSError, ValueError, KeyError, TypeError) as error:
            notice(f"{place} is damaged and left aside: {error}")
            damaged += 1
            continue
        count = sum(name.startswith("random.") for name in tensors)
        return progress, tensors, [tensors.pop(f"random.{rank}") for rank in range(count)]
    if damaged:
        raise InputError(f"{home}: all {damaged} checkpoints are damaged; move the folder away to start anew")
    return None


def _read(place: Path) -> tuple[Progress, dict[str, Tensor]]:
    facts = json.loads((place / _FACTS).read_text(encoding="utf-8"))
    if facts.pop("check") != _check(facts):
        raise InputError(f"{_FACTS} does not have the content that was written")
    if _hash(place / _STATE) != facts["sha256"]:
        raise InputError(f"{_STATE} does not have the content that was written")
    return build(Progress, facts["progress"]), read_weights(place / _STATE)


def _newest_first(home: Path) -> list[Path]:
    return sorted(home.glob("step-*"), reverse=True)


def _check(facts: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
