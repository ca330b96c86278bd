"""`regard evaluate` of a classifier: accuracy, F1, confusion, calibration; a linear probe and another run beside it."""

import argparse
import json
from dataclasses import asdict
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.config import Recipe
    from regard.evaluation.labels import LabelScores
    from regard.tasks.classify import Scored
    from regard.tasks.run import Run
    from regard.text import LabelledText

MOST_LABELS = 12
"""of a confusion matrix that is printed"""


def evaluate_labels(recipe: "Recipe", arguments: argparse.Namespace) -> int:
    """Classify the test text, score, print."""
    from regard.tasks.classify import faults, score_texts
    from regard.tasks.run import load

    rows, where = _rows(arguments, recipe)
    opened = load(arguments.run)
    scored = score_texts(opened.classifier, rows)
    other = score_texts(load(arguments.against).classifier, rows) if arguments.against else None
    probed = _probe(arguments.probe, opened, rows) if arguments.probe else None
    if arguments.per_sentence:
        _write_texts(Path(arguments.per_sentence), scored, opened)
    if arguments.json:
        plain: dict[str, object] = {
            "system": arguments.run, "test": where, "texts": scored.scores.texts, "empty": scored.blank,
            "strange_labels": dict(scored.strange), "scores": asdict(scored.scores),
        }  # fmt: skip
        if other:
            plain |= {"against": arguments.against, "their_scores": asdict(other.scores), "p": _p(scored, other)}
        if probed:
            plain |= {"probe": arguments.probe, "probe_scores": asdict(probed)}
        print(json.dumps(plain, indent=2, ensure_ascii=False))
        return 0
    print(f"{arguments.run} on {where}: {scored.scores.texts:,} texts")
    for line in faults(scored.blank, scored.strange):
        print(line)
    systems = [(arguments.run, scored.scores)]
    systems += [(arguments.against, other.scores)] if other else []
    systems += [(f"linear probe on {arguments.probe}", probed)] if probed else []
    print("\n".join(_table(systems)))
    if other:
        print(f"p = {_p(scored, other):.4f}: how often chance alone would part the two so far (exact McNemar test)")
    print("\n".join(_details(scored.scores)))
    return 0


def _rows(arguments: argparse.Namespace, recipe: "Recipe") -> tuple[list["LabelledText"], str]:
    """The labelled test text and where it is from."""
    from regard.data import labelled_texts
    from regard.errors import InputError

    for option in ("source", "target", "hypotheses", "beam", "tag"):
        if getattr(arguments, option) is not None:
            raise InputError(f"--{option}: is for translations; {arguments.run} classifies; say --test FILE")
    if recipe.training.objective != "task":
        raise InputError(f"{arguments.run}: learned {recipe.training.objective} text, not labels; train from it first")
    files = (arguments.test,) if arguments.test else recipe.data.test or recipe.data.valid
    if not files:
        raise InputError(f"{arguments.run}: its recipe has neither data.test nor data.valid; say --test FILE")
    rows = list(labelled_texts(recipe.data, files))
    where = ", ".join(files)
    if not any(row.text.strip() for row in rows):
        raise InputError(f"{where}: no texts to score")
    return rows, where


def _probe(folder: str, opened: "Run", rows: list["LabelledText"]) -> "LabelScores":
    from regard.data import labelled_texts
    from regard.tasks.probe import probe
    from regard.tasks.run import load
    from regard.text import training_sets

    data, classifier = opened.recipe.data, opened.classifier
    train = [row for one in training_sets(data) for row in labelled_texts(data, one.files)]
    return probe(load(folder).embedder, train, rows, classifier.names, several=classifier.several)


def _table(systems: list[tuple[str, "LabelScores"]]) -> list[str]:
    """A line for each system."""
    width = max(len(name) for name, _ in systems) + 2
    lines = [f"{'':{width}}{'accuracy':>9}{'macro F1':>10}{'micro F1':>10}{'loss':>9}{'ECE':>8}"]
    for name, scores in systems:
        lines.append(
            f"{name:{width}}{scores.accuracy:9.4f}{scores.macro_f1:10.4f}{scores.micro_f1:10.4f}{scores.loss:9.4f}"
            f"{scores.ece:8.4f}"
        )
    return lines


def _details(scores: "LabelScores") -> list[str]:
    """The labels one by one, and who was taken for whom."""
    width = max(7, *(len(label.name) + 2 for label in scores.labels))
    lines = ["", f"{'label':{width}}{'precision':>10}{'recall':>8}{'F1':>8}{'texts':>8}"]
    lines += [
        f"{label.name:{width}}{label.precision:10.4f}{label.recall:8.4f}{label.f1:8.4f}{label.texts:8,}"
        for label in scores.labels
    ]
    if scores.confusion is not None and len(scores.labels) <= MOST_LABELS:
        columns = [max(8, len(label.name) + 2) for label in scores.labels]
        heads = "".join(f"{label.name:>{column}}" for label, column in zip(scores.labels, columns, strict=True))
        lines += ["", f"{'right':{width}}{heads}   (columns: what was told)"]
        for label, row in zip(scores.labels, scores.confusion, strict=True):
            cells = "".join(f"{count:{column},}" for count, column in zip(row, columns, strict=True))
            lines.append(f"{label.name:{width}}{cells}")
    return lines


def _p(ours: "Scored", theirs: "Scored") -> float:
    """The exact McNemar test: of the texts that one of the two alone got right, is either's share beyond chance?"""
    mine, its = _hits(ours), _hits(theirs)
    only_mine = sum(a and not b for a, b in zip(mine, its, strict=True))
    only_its = sum(b and not a for a, b in zip(mine, its, strict=True))
    both = only_mine + only_its
    tail = sum(comb(both, k) for k in range(min(only_mine, only_its) + 1))
    return min(1.0, float(2 * tail / 2**both))


def _hits(scored: "Scored") -> list[bool]:
    """Which texts were told right."""
    names = [label.name for label in scored.scores.labels]
    if scored.scores.confusion is None:
        return [
            {name for name, chance in zip(names, chances, strict=True) if chance >= 0.5} == set(row.labels)
            for row, chances in zip(scored.rows, scored.probabilities.tolist(), strict=True)
        ]
    told = scored.probabilities.argmax(1).tolist()
    return [names[number] == row.labels[0] for row, number in zip(scored.rows, told, strict=True)]


def _write_texts(path: Path, scored: "Scored", opened: "Run") -> None:
    """A line for each text, in order: what is right, what was told and how surely."""
    from regard.text.files import kind_of, write_whole

    names = opened.classifier.names
    written = []
    table = kind_of(path) != ".jsonl"
    for row, chances in zip(scored.rows, scored.probabilities.tolist(), strict=True):
        ordered = sorted(zip(names, chances, strict=True), key=lambda pair: -pair[1])
        right = ", ".join(row.labels)
        if table:
            written.append("\t".join([row.text.replace("\t", " "), right, ordered[0][0], f"{ordered[0][1]:.4f}"]))
        else:
            plain = {"text": row.text, "right": list(row.labels), "probabilities": dict(ordered)}
            written.append(json.dumps(plain, ensure_ascii=False))
    head = ["text\tright\tbest\tprobability"] if table else []
    write_whole(path, "".join(line + "\n" for line in [*head, *written]).encode())
