"""`regard evaluate`: how good a run's answers are, one by one too, and whether another's are better.

Here of translations; what it makes of a language model is in `evaluate_text`, and of a classifier in `evaluate_labels`.
"""

import argparse
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from regard.evaluation.scores import TOKENIZATIONS

if TYPE_CHECKING:
    from regard.config import Recipe
    from regard.evaluation.scores import Difference, Scores
    from regard.text import TextPair

EPILOG = """\
examples:
  regard evaluate runs/fr-en
  regard evaluate runs/fr-en --source news.fr --target news.en --per-sentence news.tsv
  regard evaluate runs/fr-en --against runs/fr-en-without-dropout --json
  regard evaluate runs/shakespeare --test sonnets.txt
  regard evaluate runs/sst2 --test reviews.tsv --probe runs/minilm

p says how often chance alone would show so large a difference between the two
"""


@dataclass(frozen=True, kw_only=True)
class _System:
    """Whose translations are scored."""

    name: str
    hypotheses: list[str]


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What came of it."""

    system: _System
    other: _System | None
    pairs: list["TextPair"]
    where: str
    """the files that they are from"""
    beam: int
    scores: "Scores"
    differences: tuple["Difference", ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--source",
        metavar="FILE",
        help="text to translate, or of a language model to score; else the recipe's data.test",
    )
    parser.add_argument("--target", metavar="FILE", help="what the translations should be, a line for a line")
    parser.add_argument(
        "--test", metavar="FILE", help="classify: labelled text; generate: plain text; else the recipe's"
    )
    parser.add_argument(
        "--probe", metavar="RUN", help="classify: beside it a linear classifier on this run's frozen embeddings"
    )
    parser.add_argument("--hypotheses", metavar="FILE", help="translations to score instead of the run's own")
    parser.add_argument("--against", metavar="RUN|FILE", help="another run, or its translations, to compare with")
    parser.add_argument("--beam", type=int, metavar="INT", help="hypotheses kept at each step (default: the recipe's)")
    parser.add_argument("--tag", metavar="TAG", help="for a model of several directions, such as <2tr>")
    parser.add_argument("--tokenize", choices=TOKENIZATIONS, default="13a", help="how BLEU cuts text into words")
    parser.add_argument(
        "--lowercase", action="store_true", help="take all text in lower case, as is done when the recipe does so"
    )
    parser.add_argument(
        "--per-sentence", metavar="FILE",
        help="where to write each sentence with its scores: .jsonl, or a table with tabs",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="for programs")


def run(arguments: argparse.Namespace) -> int:
    """Translate, score, compare, print."""
    from regard.config import read_recipe
    from regard.errors import InputError
    from regard.runs.folder import RECIPE

    folder = Path(arguments.run)
    if not (folder / RECIPE).is_file():
        raise InputError(f"{folder}: not a run folder, it has no {RECIPE}")
    recipe = read_recipe(folder / RECIPE)
    match recipe.task:
        case "generate":
            from regard.cli.evaluate_text import evaluate_text

            return evaluate_text(recipe, arguments)
        case "classify":
            from regard.cli.evaluate_labels import evaluate_labels

            return evaluate_labels(recipe, arguments)
    found = score_translations(recipe, arguments)
    if arguments.per_sentence:
        _write_sentences(Path(arguments.per_sentence), found.pairs, found.system.hypotheses, found.scores)
    if arguments.json:
        print(json.dumps(_plain(found, arguments.hypotheses), indent=2))
    else:
        searched = "" if arguments.hypotheses else f", beam {found.beam}"
        print(f"{found.system.name} on {found.where}: {len(found.pairs):,} sentences{searched}")
        print(
            "\n".join(
                _comparison(found.system, found.other, found.differences) if found.other else _table(found.scores)
            )
        )
    return 0


def score_translations(recipe: "Recipe", arguments: argparse.Namespace) -> Scored:
    """The scores of a run's translations, or of those in a file, and what another's are beside them."""
    from regard.errors import InputError
    from regard.evaluation.scores import Scoring, compare, score

    _check(arguments)
    for option in ("test", "probe"):
        if getattr(arguments, option):
            raise InputError(
                f"--{option}: is for classifiers; {arguments.run} translates; say --source FILE --target FILE"
            )
    beam = arguments.beam or recipe.decoding.beam
    pairs, where = _pairs(recipe, arguments)
    scoring = Scoring(tokenize=arguments.tokenize, lowercase=arguments.lowercase or recipe.data.lowercase)
    references = [pair.target for pair in pairs]
    system = _system(arguments.hypotheses or arguments.run, pairs, beam)
    other = _system(arguments.against, pairs, beam) if arguments.against else None
    scores = score(system.hypotheses, references, scoring)
    differences = compare(system.hypotheses, other.hypotheses, references, scoring) if other else ()
    return Scored(
        system=system, other=other, pairs=pairs, where=where, beam=beam, scores=scores, differences=differences
    )


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together, before anything slow."""
    from regard.errors import InputError

    if arguments.beam is not None and arguments.beam < 1:
        raise InputError(f"--beam = {arguments.beam}: must be 1 or more")
    if bool(arguments.source) != bool(arguments.target):
        given, missing = ("--source", "--target") if arguments.source else ("--target", "--source")
        raise InputError(f"{given} without {missing}: say both, or neither for the recipe's data.test")
    if arguments.per_sentence and Path(arguments.per_sentence).is_dir():
        raise InputError(f"--per-sentence {arguments.per_sentence}: is a folder; name a file")


def _pairs(recipe: "Recipe", arguments: argparse.Namespace) -> tuple[list["TextPair"], str]:
    """The test text and where it is from, in its own case: a run that wants lower case makes it itself."""
    from regard.data import text_pairs
    from regard.errors import InputError

    if recipe.task != "translate":
        raise InputError(f"{arguments.run}: its task is {recipe.task}, it does not translate")
    stated = (arguments.source, arguments.target) if arguments.source else ()
    files = stated or recipe.data.test
    if not files:
        raise InputError(f"{arguments.run}: its recipe has no data.test; say --source FILE --target FILE")
    data = replace(recipe.data, lowercase=False, tag_field=None if stated else recipe.data.tag_field)
    pairs = list(text_pairs(data, files, tag=arguments.tag or data.tag))
    if arguments.tag:
        pairs = [pair._replace(tag=arguments.tag) for pair in pairs]
    where = ", ".join(files)
    if not pairs:
        raise InputError(f"{where}: no sentences to score")
    return pairs, where


def _system(name: str, pairs: list["TextPair"], beam: int) -> _System:
    """A run's translations, or those in a file."""
    from regard.errors import InputError
    from regard.text import lines

    if Path(name).is_dir():
        return _System(name=name, hypotheses=_translated(name, pairs, beam))
    hypotheses = list(lines(name))
    if len(hypotheses) != len(pairs):
        raise InputError(f"{name}: {len(hypotheses):,} lines for {len(pairs):,} sentences; must be a line for each")
    return _System(name=name, hypotheses=hypotheses)


def _translated(folder: str, pairs: list["TextPair"], beam: int) -> list[str]:
    """A translation of each source, a line each."""
    from regard.errors import InputError
    from regard.tasks.run import load
    from regard.text import training_sets

    opened = load(folder)
    data, known = opened.recipe.data, opened.source_tokenizer.tags
    tags = [pair.tag if known else None for pair in pairs]
    if known and None in tags and all(data_set.tag for data_set in training_sets(data)):
        raise InputError(f"{folder}: translates in several directions; say which with --tag: {', '.join(known)}")
    hypotheses = [""] * len(pairs)
    for tag in dict.fromkeys(tags):
        rows = [row for row, its in enumerate(tags) if its == tag]
        found = opened.translate([pairs[row].source for row in rows], beam=beam, tag=tag)
        for row, translation in zip(rows, found, strict=True):
            hypotheses[row] = translation.text.replace("\n", " ")
    return hypotheses


def _table(scores: "Scores") -> list[str]:
    """A line for each score."""
    lines = [f"{'score':10}{'value':>8}  signature"]
    lines += [f"{score.name:10}{score.value:8.2f}  {score.signature}" for score in scores.whole]
    return [*lines, f"BLEU's precisions: {scores.bleu.details}"]


def _comparison(ours: _System, theirs: _System, differences: tuple["Difference", ...]) -> list[str]:
    """Both systems side by side."""
    width = max(24, len(ours.name) + 2, len(theirs.name) + 2)
    lines = [f"{'score':10}{ours.name:>{width}}{theirs.name:>{width}}{'difference':>12}{'p':>9}"]
    for one in differences:
        first, second = (f"{side.value:.2f} ({side.mean:.2f} ± {side.margin:.2f})" for side in (one.ours, one.theirs))
        change = one.ours.value - one.theirs.value
        lines.append(f"{one.name:10}{first:>{width}}{second:>{width}}{change:>+12.2f}{one.p:>9.4f}")
    lines += [
        "",
        "in brackets the resamples: their mean, and what holds 95 of 100; of TER less is better",
        "signatures:",
    ]
    return [*lines, *(f"{one.name:10}{one.signature}" for one in differences)]


def _plain(found: Scored, hypotheses: str | None) -> dict[str, object]:
    """All of it for programs."""
    plain: dict[str, object] = {
        "system": found.system.name, "test": found.where, "sentences": len(found.scores.sentences),
        "beam": None if hypotheses else found.beam, "scores": [asdict(score) for score in found.scores.whole],
    }  # fmt: skip
    if found.other:
        plain |= {"against": found.other.name, "differences": [asdict(one) for one in found.differences]}
    return plain


def _write_sentences(path: Path, pairs: list["TextPair"], hypotheses: list[str], scores: "Scores") -> None:
    """A line for each sentence, in order."""
    from regard.text.files import kind_of, write_whole

    rows: list[dict[str, str | float]] = [
        {"source": pair.source, "target": pair.target, "hypothesis": made, **asdict(score)}
        for pair, made, score in zip(pairs, hypotheses, scores.sentences, strict=True)
    ]
    if kind_of(path) == ".jsonl":
        written = [json.dumps(row, ensure_ascii=False) for row in rows]
    else:
        written = ["\t".join(rows[0]), *("\t".join(map(_cell, row.values())) for row in rows)]
    write_whole(path, "".join(line + "\n" for line in written).encode())


def _cell(value: str | float) -> str:
    """A value in a table whose columns tabs and whose rows line ends part."""
    return f"{value:.2f}" if isinstance(value, float) else " ".join(value.replace("\t", " ").splitlines())
