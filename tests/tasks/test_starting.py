"""Starting from another run: masked text, then labels; pairs; frozen weights; and what does not fit."""

import json
import math
import shutil
from collections import Counter
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import regard
from regard.config import read_recipe, recipe_from
from regard.demo.grammar import corpus
from regard.errors import InputError
from regard.runs import read_weights
from regard.tasks.contrast import ContrastJob
from regard.tasks.masked import MaskedJob
from regard.tasks.start import train

SIZE = {"d_model": 32, "heads": 4, "d_ff": 64, "encoder_layers": 2, "max_length": 48, "dropout": 0.0}
TRAINING = {"steps": 60, "tokens_per_batch": 800, "warmup": 5, "precision": "float32", "learning_rate": 3e-3,
            "valid_every": 30}  # fmt: skip


@pytest.fixture(autouse=True)
def _random_numbers_stay():
    with torch.random.fork_rng(devices=[]):
        yield


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Sentences of the demonstration's grammar: plain, labelled by language, and in pairs."""
    folder = tmp_path_factory.mktemp("text")
    whole = corpus(size=900, valid=90, test=0)
    for part, pairs in (("train", whole.train), ("valid", whole.valid)):
        plain = [pair.source for pair in pairs]
        labelled = [f"{pair.source}\t{pair.direction[:2]}" for pair in pairs]
        twins = [f"{pair.source}\t{pair.target}" for pair in pairs if pair.direction == "en-fr"]
        for name, lines in (("plain.jsonl", None), ("labelled.tsv", labelled), ("twins.tsv", twins)):
            lines = [f'{{"text": "{line}"}}' for line in plain] if lines is None else lines
            (folder / f"{part}.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def recipe(text, kind, *, training=None, **more):
    start = (training or {}).get("start_from")
    return recipe_from({
        "task": "classify",
        "data": {"train": [str(text / f"train.{kind}")], "valid": [str(text / f"valid.{kind}")]},
        **({} if start else {"tokens": {"size": 500}, "model": SIZE}),
        "training": {**TRAINING, **(training or {})},
        **more,
    })  # fmt: skip


@pytest.fixture(scope="module")
def masked(text, tmp_path_factory):
    """A run that learned hidden pieces, and how it went."""
    folder = tmp_path_factory.mktemp("masked") / "run"
    asked = recipe(text, "plain.jsonl", training={"objective": "masked", "whole_words": True, "steps": 120})
    with torch.random.fork_rng(devices=[]):
        progress = train(asked, folder)
    return folder, progress


def test_hidden_pieces_are_learned_and_labels_from_there(text, masked, tmp_path):
    """The model has to know more than how frequent pieces are: its loss is below what that alone can reach."""
    folder, progress = masked
    tokenizer = regard.load(folder).tokenizer
    lines = (text / "valid.plain.jsonl").read_text(encoding="utf-8").splitlines()
    counts = Counter(id for line in lines for id in tokenizer.encode(json.loads(line)["text"]))
    assert progress.best < -sum(n / counts.total() * math.log(n / counts.total()) for n in counts.values())
    told = []
    start = {"start_from": str(folder), "freeze": ["pieces", "encoder.layers.0"], "steps": 30}
    asked = recipe(text, "labelled.tsv", training=start)
    assert asked.model.d_model == 32
    assert asked.tokens.size == 500
    train(asked, tmp_path / "run", watcher=Teller(told))
    assert f"weights: from {folder}; new: label.weight, label.bias" in told
    assert any(line.startswith("frozen: ") for line in told)
    before, after = read_weights(folder / "model.safetensors"), read_weights(tmp_path / "run" / "model.safetensors")
    for name, weight in before.items():
        frozen = name.startswith(("pieces.", "encoder.layers.0."))
        assert torch.equal(weight, after[name]) == frozen, name
    run = regard.load(tmp_path / "run")
    assert run.classify("The cat sleeps.").label in ("en", "fr")
    assert run.tokenizer.encode("The cat") == regard.load(folder).tokenizer.encode("The cat")


def test_an_interrupted_run_needs_the_other_no_more(text, masked, tmp_path):
    """Frozen weights are in the checkpoint, and the resolved recipe states the whole model."""
    folder = shutil.copytree(masked[0], tmp_path / "start")
    start = {"start_from": str(folder), "freeze": ["pieces"], "steps": 10, "valid_every": 5}
    whole = recipe(text, "labelled.tsv", training={**start, "steps": 20})
    train(whole, tmp_path / "whole")
    train(recipe(text, "labelled.tsv", training=start), tmp_path / "run")
    resolved = read_recipe(tmp_path / "run" / "recipe.toml")
    shutil.rmtree(folder)
    gone = replace(resolved, training=replace(resolved.training, steps=20))
    train(gone, tmp_path / "run")
    ours, right = (read_weights(tmp_path / name / "model.safetensors") for name in ("run", "whole"))
    assert ours.keys() == right.keys()
    assert torch.equal(ours["pieces.weight"], right["pieces.weight"])


def test_texts_find_their_partners(text, tmp_path):
    asked = recipe(text, "twins.tsv", training={"objective": "contrastive", "steps": 100})
    progress = train(asked, tmp_path / "run")
    assert progress.best > 0.3  # of 30 partners: by chance 0.03
    vectors = regard.load(tmp_path / "run").embed(["The cat sleeps.", "Le chat dort.", ""])
    assert vectors.norm(dim=-1).tolist() == pytest.approx([1, 1, 0])


@torch.no_grad()
def test_the_contrastive_loss_is_cross_entropy_both_ways(text, tmp_path):
    asked = recipe(text, "twins.tsv", training={"objective": "contrastive", "temperature": 0.1})
    job = ContrastJob(asked, tmp_path, [].append, device=torch.device("cpu"))
    batch = job.store.batch(torch.arange(5).numpy())
    left, right = (
        torch.stack([
            F.normalize(job.model.pool(job.model(ids[None, :n], n[None]), n[None])[0], dim=-1)
            for ids, n in zip(side, lengths, strict=True)
        ])
        for side, lengths in ((batch.left, batch.left_lengths), (batch.right, batch.right_lengths))
    )  # fmt: skip
    cosines = (left @ right.T) / 0.1
    plain = -(cosines.log_softmax(-1).diagonal() + cosines.log_softmax(0).diagonal()).sum() / 2
    total, shown = job.loss(batch)
    assert float(total) == pytest.approx(float(plain), rel=1e-5)
    assert float(shown) == pytest.approx(float(plain), rel=1e-5)


@torch.no_grad()
def test_the_masked_loss_is_that_of_the_hidden_pieces_alone(text, tmp_path):
    job = MaskedJob(
        recipe(text, "plain.jsonl", training={"objective": "masked"}), tmp_path, [].append, device=torch.device("cpu")
    )
    batch = job.store.batch(torch.arange(6).numpy())
    logits = job.model.piece_logits(job.model(batch.texts, batch.lengths))
    plain = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=-1, reduction="sum")
    assert float(job.loss(batch)[0]) == pytest.approx(float(plain), rel=1e-5)


def test_what_does_not_fit_is_told(text, masked, tmp_path):
    folder, _ = masked

    def refused(said, *, training, **more):
        with pytest.raises(InputError, match=said):
            train(
                recipe(text, "labelled.tsv", training={"start_from": str(folder), **training}, **more), tmp_path / "x"
            )

    refused("leave model.preset = 'tiny' out", training={}, model={"preset": "tiny"})
    refused(r"the pieces are that run's; leave tokens\.size out", training={}, tokens={"size": 100})
    refused("no weight is called 'encoder.layer'; did you mean", training={"freeze": ["encoder.layer"]})
    refused("leaves no weight to learn", training={"freeze": ["pieces", "encoder", "label"]})
    refused("not a run folder, it has no recipe", training={"start_from": str(tmp_path / "none")})
    refused(r"misshapen encoder\.layers\.0\.feed_forward", training={}, model={"d_ff": 80})
    with pytest.raises(InputError, match="is encoder-only; task = 'generate' starts from a run that is decoder-only"):
        recipe_from({"task": "generate", "training": {"start_from": str(folder)}})
    labelled = tmp_path / "labelled"
    train(recipe(text, "labelled.tsv", training={"steps": 1}), labelled)
    with pytest.raises(InputError, match="its pieces have no mask"):
        train(
            recipe(text, "plain.jsonl", training={"objective": "masked", "start_from": str(labelled)}), tmp_path / "y"
        )
    with pytest.raises(InputError, match="this run has no labels: it embeds"):
        regard.load(folder).classify("x")


class Teller:
    """A watcher that keeps the lines it is told."""

    def __init__(self, lines):
        self.say = lines.append

    def stepped(self, progress, **numbers):
        pass

    def validated(self, progress, scores, *, better):
        pass
