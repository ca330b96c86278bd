"""Training a language model: its losses are the formula's, and a run goes from text to scores and resumes exactly."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config import Recipe, read_recipe, recipe_from
from regard.data import PackedStore, TextStore, text_batch, whole_spans
from regard.demo.grammar import corpus
from regard.errors import InputError
from regard.runs import open_run
from regard.tasks.generate import GenerateJob, measure, text_loss
from regard.tasks.start import train
from regard.training.journal import read_journal


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    """What a tiny model can learn: sentences of the demonstration's grammar."""
    return [pair.source for pair in corpus(size=660, valid=36, test=0).train if pair.direction == "en-fr"]


@pytest.fixture
def files(sentences: list[str], tmp_path: Path) -> dict[str, Path]:
    """The sentences as documents of their own, and as one text."""
    documents, text = tmp_path / "documents.jsonl", tmp_path / "text.txt"
    documents.write_text("".join(json.dumps({"text": one}) + "\n" for one in sentences), encoding="utf-8")
    text.write_text("".join(f"{one}\n" for one in sentences), encoding="utf-8")
    return {"documents": documents, "text": text}


def recipe_of(file: Path, **changes: dict[str, Any]) -> Recipe:
    tables: dict[str, dict[str, Any]] = {
        "data": {"train": [str(file)], "valid_share": 0.1, "max_length": 48},
        "tokens": {"kind": "char"},
        "model": {"d_model": 16, "heads": 2, "d_ff": 32, "decoder_layers": 1, "positions": "rotary", "max_length": 64},
        "training": {"steps": 8, "valid_every": 4, "tokens_per_batch": 480, "precision": "float32", "warmup": 2,
                     "learning_rate": 0.01},
    }  # fmt: skip
    return recipe_from({"task": "generate"} | {name: tables[name] | changes.get(name, {}) for name in tables})


@pytest.mark.parametrize("kind", ["documents", "text"])
def test_scores_are_the_formulas(kind: str, files: dict[str, Path], tmp_path: Path) -> None:
    lines: list[str] = []
    job = GenerateJob(recipe_of(files[kind]), tmp_path / "run", lines.append, device=torch.device("cpu"))
    assert job.recipe.data.continuous is (kind == "text")
    assert job.recipe.training.label_smoothing == 0.0
    found = measure(job.model, job.valid, job.tokenizer)
    nats, pieces, text = 0.0, 0, ""
    for ids in job.valid.documents_alone():
        with torch.no_grad():
            scores = job.model.logits(job.model(torch.from_numpy(ids[:-1])[None]))[0].log_softmax(-1)
        nats -= float(scores.gather(1, torch.from_numpy(ids[1:])[:, None]).sum())
        pieces += len(ids) - 1
        text += job.tokenizer.decode(ids[1:].tolist(), continued=True)
    assert found.nats == pytest.approx(nats, rel=1e-5)
    assert (found.pieces, found.bytes, found.unknown) == (pieces, len(text.encode()), 0)
    assert found.perplexity == pytest.approx(math.exp(nats / pieces), rel=1e-5)
    assert found.bits_per_byte == pytest.approx(nats / math.log(2) / len(text.encode()), rel=1e-5)
    whole = files["text"].read_text(encoding="utf-8")
    share = len(text) / len(whole)
    assert 0.08 < share < 0.12
    assert any("validation" in line for line in lines)


def test_packed_and_unpacked_losses_are_equal(files: dict[str, Path], tmp_path: Path) -> None:
    job = GenerateJob(recipe_of(files["documents"]), tmp_path / "run", print, device=torch.device("cpu"))
    specials = job.tokenizer.specials
    texts = TextStore.open(job.recipe.data, job.tokenizer, folder=tmp_path / "run" / "data")
    longest = int(texts.documents.lengths().max()) + 1
    wide = PackedStore(texts, whole_spans(texts), window=4 * longest, specials=specials)
    assert len(wide) < len(texts) / 4
    assert wide.long == 0
    together = measure(job.model, wide, job.tokenizer)
    alone = 0.0
    for ids in wide.documents_alone():
        batch = text_batch([[ids]], torch.arange(1).numpy(), pad=specials.pad)
        assert batch.positions is None
        with torch.no_grad():
            alone += float(text_loss(job.model, batch)[1])
    assert together.nats == pytest.approx(alone, rel=1e-5)


def test_a_run_learns_keeps_its_recipe_and_resumes_to_the_same_numbers(files: dict[str, Path], tmp_path: Path) -> None:
    recipe = recipe_of(files["text"])
    progress = train(recipe, tmp_path / "whole")
    assert progress.finished
    assert progress.best is not None
    stored = open_run(tmp_path / "whole")
    assert stored.recipe == read_recipe(tmp_path / "whole" / "recipe.toml")
    assert stored.recipe.model.vocabulary == stored.tokenizer.size
    events = [event for event in read_journal(tmp_path / "whole") if event["event"] == "validated"]
    assert {"loss", "perplexity", "bits_per_byte"} <= set(events[0])
    assert float(str(events[-1]["loss"])) < float(str(events[0]["loss"]))
    train(recipe_of(files["text"], training={"steps": 5, "schedule": "constant"}), tmp_path / "parts")
    train(recipe_of(files["text"], training={"schedule": "constant"}), tmp_path / "parts")
    train(recipe_of(files["text"], training={"schedule": "constant"}), tmp_path / "once")

    def losses(folder: Path) -> dict[object, object]:
        return {e["step"]: (e["loss"], e["gradient"]) for e in read_journal(folder) if e["event"] == "step"}

    assert losses(tmp_path / "parts") == losses(tmp_path / "once")


def test_blank_text_is_refused_and_counted(tmp_path: Path) -> None:
    (tmp_path / "blank.jsonl").write_text('{"text": " "}\n{"text": ""}\n')
    recipe = recipe_of(tmp_path / "blank.jsonl", tokens={"kind": "byte"})
    with pytest.raises(InputError, match=r"no text to train on \(0 of 2 kept; left out: 2 empty\)"):
        GenerateJob(recipe, tmp_path / "run", print, device=torch.device("cpu"))
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InputError, match="is empty"):
        GenerateJob(recipe_of(tmp_path / "empty.txt"), tmp_path / "run", print, device=torch.device("cpu"))
    with pytest.raises(InputError, match=r"data.valid_share = 1.0: must be at least 0 and below 1"):
        recipe_of(tmp_path / "empty.txt", data={"valid_share": 1.0})
