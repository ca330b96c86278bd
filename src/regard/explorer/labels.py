"""The part of a classifier's report that needs the model: each label's scores, confusion, calibration, some texts."""

from dataclasses import dataclass
from itertools import islice

from regard.data import labelled_texts
from regard.errors import InputError
from regard.evaluation.labels import LabelScores
from regard.explorer.curves import Line, chart
from regard.explorer.markup import Content, Html, element, joined, section, table
from regard.tasks.classify import Scored, faults, score_texts
from regard.tasks.run import Run
from regard.text import LabelledText

SAMPLES = 10
READ = 2000
"""texts, at most, that are classified for the report"""
MOST_LABELS = 20
"""of a confusion matrix"""
LONGEST = 400
"""letters of a text that are shown"""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A text of the recipe's that the run was tried on."""

    kind: str
    """which text it is"""
    scored: Scored


def try_labels(run: Run) -> Tried:
    """Classify the test text, else the validation text, else the training text."""
    data = run.recipe.data
    sources = (("test", data.test), ("validation", data.valid), ("training", data.train))
    kind, files = next(((name, named) for name, named in sources if named), ("", ()))
    if not files:
        raise InputError("the recipe names no text")
    scored = score_texts(run.classifier, islice(labelled_texts(data, files), READ))
    return Tried(kind=kind, scored=scored)


def label_sections(tried: Tried) -> list[Html]:
    """Scores, calibration and samples."""
    return [_scores_section(tried), _calibration_section(tried.scored.scores), _samples_section(tried)]


def _scores_section(tried: Tried) -> Html:
    scores = tried.scored.scores
    note = f"Of {scores.texts:,} texts of the {tried.kind} text: accuracy {scores.accuracy:.4f}, macro F1 "
    note += f"{scores.macro_f1:.4f}, micro F1 {scores.micro_f1:.4f}, loss {scores.loss:.4f}."
    parts: list[Content] = [element("p", note, class_="note")]
    parts += [element("p", line, class_="note") for line in faults(tried.scored.blank, tried.scored.strange)]
    rows = [
        (label.name, f"{label.precision:.4f}", f"{label.recall:.4f}", f"{label.f1:.4f}", f"{label.texts:,}")
        for label in scores.labels
    ]
    parts.append(table("Labels", ("label", "precision", "recall", "F1", "texts"), rows))
    if scores.confusion is not None and len(scores.labels) <= MOST_LABELS:
        names = [label.name for label in scores.labels]
        cells = [
            (name, *(_cell(count, sum(row)) for count in row))
            for name, row in zip(names, scores.confusion, strict=True)
        ]  # fmt: skip
        title = "Confusion: rows are right, columns were told"
        parts.append(table(title, ("right", *names), cells))
    return section("labels", "Labels", *parts)


def _cell(count: int, whole: int) -> Content:
    """A count of the confusion matrix, with its share of the row."""
    share = f" {count / whole:.0%}" if whole else ""
    return joined([element("span", f"{count:,}"), element("small", share)])


def _calibration_section(scores: LabelScores) -> Html:
    """Whether a probability is what it says."""
    bins = scores.bins
    drawn = [
        Line(name="accuracy", points=[(one.confidence, one.accuracy) for one in bins], dots=True),
        Line(name="as it should be", points=[(bins[0].confidence, bins[0].confidence), (1.0, 1.0)]),
    ]
    picture = chart("Reliability", drawn, across="confidence")
    note = (
        "Answers in bins of like confidence: of those told with 0.8, 8 of 10 should be right. The expected "
        f"calibration error, how far the two are apart on average, is {scores.ece:.4f}."
    )
    rows = [
        (f"{one.low:.2f} to {one.high:.2f}", f"{one.answers:,}", f"{one.confidence:.3f}", f"{one.accuracy:.3f}")
        for one in bins
    ]
    counted = table("Bins", ("probability", "answers", "mean confidence", "right"), rows)
    columns = element("div", element("div", picture, class_="charts"), element("div", counted), class_="columns")
    return section("calibration", "Calibration", element("p", note, class_="note"), columns)


def _samples_section(tried: Tried) -> Html:
    """Some texts from all over, and the surest of the wrong ones."""
    scored = tried.scored
    names = [label.name for label in scored.scores.labels]
    chances = scored.probabilities
    count = len(scored.rows)
    chosen = [row * count // SAMPLES for row in range(SAMPLES)] if count > SAMPLES else list(range(count))
    best = chances.argmax(1).tolist()
    wrong = [row for row in range(count) if names[best[row]] not in scored.rows[row].labels]
    surest = sorted(wrong, key=lambda row: -chances[row, best[row]])[:SAMPLES]
    blocks: list[Content] = []
    for title, rows in ((f"From all over the {tried.kind} text", chosen), ("Wrong, and most sure of it", surest)):
        cards = [_card(scored.rows[row], names[best[row]], float(chances[row, best[row]])) for row in rows]
        if cards:
            blocks += [element("h3", title), joined(cards)]
    return section("samples", "Samples", *blocks)


def _card(row: LabelledText, told: str, chance: float) -> Html:
    """One text."""
    text = row.text if row.second is None else f"{row.text} | {row.second}"
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    lines = [
        element("div", element("dt", name), element("dd", value, dir="auto"), class_=f"row {kind}".strip())
        for name, value, kind in (("Text", shown, ""), ("Right", ", ".join(row.labels), ""), ("Told", told, "made"))
    ]
    good = told in row.labels
    mark = element("p", f"{chance:.2f}", class_="mark good" if good else "mark")
    return element("article", element("dl", *lines), mark, class_="sample")
