"""Classification: a demonstration of what "it" means, two texts, several labels, weights of labels, and faults told."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import regard
from regard.config import recipe_from
from regard.demo.grammar import references
from regard.errors import InputError
from regard.tasks.classify import ClassifyJob, score_texts
from regard.tasks.start import train
from regard.text import LabelledText

SIZE = {"d_model": 32, "heads": 4, "d_ff": 64, "encoder_layers": 1, "max_length": 64, "dropout": 0.0}
TRAINING = {"tokens_per_batch": 600, "warmup": 5, "precision": "float32", "learning_rate": 4e-3, "valid_every": 20}


def recipe(train_file, *, valid=None, data=None, training=None, model=None):
    return recipe_from({
        "task": "classify",
        "data": {"train": [str(train_file)], **({"valid": [str(valid)]} if valid else {}), **(data or {})},
        "tokens": {"kind": "word", "size": 400},
        "model": {**SIZE, **(model or {})},
        "training": {**TRAINING, "steps": 2, **(training or {})},
    })  # fmt: skip


def table(path, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def job(recipe, folder, told=None):
    return ClassifyJob(recipe, folder, (told if told is not None else []).append, device=torch.device("cpu"))


@pytest.fixture(autouse=True)
def _random_numbers_stay():
    with torch.random.fork_rng(devices=[]):
        yield


def test_what_it_means(tmp_path):
    """The demonstration: "The animal avoided the street because it was too wide." Is it the animal, or the place?"""
    found = references(count=500, seed=1)
    rows = [(one.sentence, "the first" if one.sentence.index(one.antecedent) < one.sentence.index(one.other)
             else "the second") for one in found]  # fmt: skip
    files = table(tmp_path / "train.tsv", rows[:400]), table(tmp_path / "valid.tsv", rows[400:])
    progress = train(recipe(files[0], valid=files[1], training={"steps": 80}), tmp_path / "run")
    assert progress.best is not None
    assert progress.best > 0.95
    run = regard.load(tmp_path / "run")
    assert run.recipe.data.labels == ("the first", "the second")
    answers = run.classify([rows[0][0], "", rows[1][0]])
    assert [answer.label for answer in answers] == [rows[0][1], "", rows[1][1]]
    assert answers[1].probabilities == {}
    assert sum(answers[0].probabilities.values()) == pytest.approx(1)
    alone = [run.classify(text).probabilities for text, _ in rows[:9]]
    together = [answer.probabilities for answer in run.classify([text for text, _ in rows[:9]])]
    for one, other in zip(alone, together, strict=True):
        assert list(one.values()) == pytest.approx(list(other.values()), abs=1e-5)


def test_two_texts_with_one_label(tmp_path):
    rows = [(a, b, "same" if a == b else "other") for a in "abcd" for b in "abcd"]
    path = table(tmp_path / "pairs.tsv", rows)
    fields = {"second_field": "2", "target_field": "3"}
    made = job(recipe(path, data=fields, model={"segments": 2}), tmp_path)
    batch = made.store.batch(np.array([1]))
    specials, cut = made.tokenizer.specials, made.tokenizer.encode
    assert batch.texts.tolist() == [[specials.begin, *cut("a"), specials.end, *cut("b"), specials.end]]
    first = len(cut("a")) + 2
    assert batch.segments.tolist() == [[0] * first + [1] * (batch.texts.shape[1] - first)]
    progress = train(
        recipe(path, valid=path, data=fields, model={"segments": 2}, training={"steps": 150}), tmp_path / "run"
    )
    assert progress.best == 1
    run = regard.load(tmp_path / "run")
    assert [run.classify(pair).label for pair in (("a", "a"), ("a", "c"))] == ["same", "other"]
    assert run.classify(("a", " ")).labels == ()


def test_several_labels(tmp_path):
    path = tmp_path / "several.jsonl"
    rows = [{"text": " ".join(names) or "nothing", "label": list(names)}
            for names in ((), ("a",), ("b",), ("c",), ("a", "b"), ("b", "c"), ("a", "b", "c"))]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    progress = train(recipe(path, valid=path, training={"steps": 120}), tmp_path / "run")
    run = regard.load(tmp_path / "run")
    assert run.recipe.data.several_labels is True
    assert progress.best == 1
    assert [set(run.classify(row["text"]).labels) for row in rows] == [set(row["label"]) for row in rows]
    made = job(run.recipe, tmp_path / "run")
    batch = made.store.batch(np.arange(7))
    with torch.no_grad():
        logits = made.model.logits(made.model.pool(made.model(batch.texts, batch.lengths), batch.lengths))
        right = F.binary_cross_entropy_with_logits(logits, batch.labels, reduction="sum")
        assert float(made.loss(batch)[0]) == pytest.approx(float(right))


@torch.no_grad()
def test_balanced_labels_count_the_same(tmp_path):
    path = table(tmp_path / "few.tsv", [("x y", "many")] * 6 + [("x", "few")] * 2)
    plain = job(recipe(path), tmp_path / "a")
    made = job(recipe(path, training={"class_weights": "balanced"}), tmp_path / "b")
    batch = made.store.batch(np.arange(8))
    made.model.load_state_dict(plain.model.state_dict())
    made.model.train()
    logits = made.model.logits(made.model.pool(made.model(batch.texts, batch.lengths), batch.lengths))
    weights = torch.tensor([8 / (2 * 2), 8 / (2 * 6)])  # few, many
    right = F.cross_entropy(logits, batch.labels, weight=weights, reduction="sum")
    assert float(made.loss(batch)[0]) == pytest.approx(float(right))
    assert float(made.loss(batch)[1]) == pytest.approx(float(plain.loss(batch)[1]))


def test_faults_are_told_and_counted(tmp_path):
    rows = [("good film", "good"), ("bad film", "bad"), ("so so", "mixed"), (" ", "good"), ("x " * 80, "bad")]
    path = table(tmp_path / "t.tsv", rows * 2 + [("odd", "once")])
    valid = table(tmp_path / "v.tsv", [("good", "good"), ("new", "unseen"), (" ", "good"), ("bad", "unseen")])
    told: list[str] = []
    made = job(recipe(path, valid=valid), tmp_path / "run", told)
    assert "data: 7 of 11 kept; left out: 2 empty, 2 too long" in told
    assert "labels: bad 2, good 2, mixed 2, once 1" in told
    assert "labels with one text only to learn from: once (1)" in told
    assert "validation: left out: 1 empty text" in told
    assert "validation: labels that were not in the training text, counted as wrong: unseen 2" in told
    assert made.validate()["accuracy"] <= 1 / 3
    told.clear()
    job(recipe(path, data={"labels": ["once", "mixed", "good", "bad", "never"]}), tmp_path / "stated", told)
    assert "labels with no text to learn from: never (1)" in told


def test_what_cannot_be_learned_is_refused(tmp_path):
    def refused(said, rows, **options):
        path = table(tmp_path / "wrong.tsv", rows)
        with pytest.raises(InputError, match=said):
            job(recipe(path, **options), tmp_path / "wrong")

    refused("all texts have the label 'a'; a classifier needs two labels", [("x", "a"), ("y", "a")])
    refused("label 'b': is in the training data; there is a, c", [("x", "a"), ("y", "b")], data={"labels": ["a", "c"]})
    refused("line 2: a label is blank", [("x", "a"), ("y", " ")])
    refused("line 1: 2 columns, so no column 3", [("x", "a")], data={"second_field": "3"})
    refused(r"no texts to train on \(0 of 1 kept; left out: 1 empty\)", [(" ", "a")])
    blank = table(tmp_path / "blank.tsv", [(" ", "a")])
    refused("all texts are empty", [("x", "a"), ("y", "b")], valid=blank)


def test_scores_leave_empty_texts_out_and_refuse_several_for_one(tmp_path):
    path = table(tmp_path / "t.tsv", [("good", "good"), ("bad", "bad")])
    train(recipe(path), tmp_path / "run")
    classifier = regard.load(tmp_path / "run").classifier
    rows = [LabelledText("good", ("good",), 1), LabelledText("", ("bad",), 2), LabelledText("x", ("new",), 3)]
    scored = score_texts(classifier, rows)
    assert (scored.scores.texts, scored.blank, dict(scored.strange)) == (2, 1, {"new": 1})
    with pytest.raises(InputError, match="line 7: has 2 labels; this classifier tells one a text"):
        score_texts(classifier, [LabelledText("x", ("good", "bad"), 7)])
