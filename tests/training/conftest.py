"""A tiny translation to train: some pairs of the demonstration's grammar, a model of one layer a side."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config import Recipe, recipe_from
from regard.demo.grammar import corpus
from regard.runs import read_weights
from regard.training.journal import read_journal

MakeRecipe = Callable[..., Recipe]


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Files of some 200 pairs to learn from and a dozen to watch."""
    folder = tmp_path_factory.mktemp("text")
    whole = corpus(size=660, valid=36, test=0)
    files: dict[str, list[str]] = {}
    for part, pairs in (("train", whole.train), ("valid", whole.valid)):
        some = [pair for pair in pairs if pair.direction == "en-fr"]
        files[part] = [str(folder / f"{part}.en"), str(folder / f"{part}.fr")]
        for file, side in zip(files[part], ("source", "target"), strict=True):
            Path(file).write_text("".join(f"{getattr(pair, side)}\n" for pair in some), encoding="utf-8")
    return files


@pytest.fixture
def recipe(text: dict[str, list[str]]) -> MakeRecipe:
    """The recipe, with any values changed: `recipe(training={"steps": 3})`."""

    def make(**changes: dict[str, Any]) -> Recipe:
        tables: dict[str, dict[str, Any]] = {
            "data": dict(text),
            "tokens": {"size": 300},
            "model": {"d_model": 16, "heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1,
                      "max_length": 40},
            "training": {"steps": 12, "valid_every": 4, "tokens_per_batch": 400, "precision": "float32", "warmup": 4,
                         "schedule": "inverse_sqrt", "learning_rate": 0.01},
        }  # fmt: skip
        return recipe_from({"task": "translate"} | {name: tables[name] | changes.get(name, {}) for name in tables})

    return make


class Teller:
    """A watcher that keeps what it is told, and does something after a step if asked."""

    def __init__(self, after: Callable[[int], object] | None = None) -> None:
        self.lines: list[str] = []
        self.after = after

    def say(self, line: str) -> None:
        self.lines.append(line)

    def stepped(self, progress: Any, *, share: float, loss: float, rate: float, speed: float) -> None:
        if self.after:
            self.after(progress.step)

    def validated(self, progress: Any, scores: dict[str, float], *, better: bool) -> None:
        pass


@pytest.fixture
def teller() -> type[Teller]:
    return Teller


@pytest.fixture(scope="session")
def outcome() -> Callable[[Path], Any]:
    """All that training made which does not depend on the clock: losses, rates, scores, and the weights kept."""

    def read(folder: Path) -> Any:
        steps: dict[object, object] = {}
        scores: dict[object, object] = {}
        for event in read_journal(folder):
            if event["event"] == "step":
                steps[event["step"]] = (event["loss"], event["gradient"], event["rate"], event["tokens"])
            if event["event"] == "validated":
                scores[event["step"]] = (event["loss"], event["bleu"], event["chrf"], event["better"])
        weights = read_weights(folder / "model.safetensors")
        return steps, scores, {name: weight.numpy().tobytes() for name, weight in weights.items()}

    return read


@pytest.fixture(autouse=True)
def _random_numbers_stay() -> Any:
    """Training sets torch's generator; other tests do not notice."""
    with torch.random.fork_rng(devices=[]):
        yield
