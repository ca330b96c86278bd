"""`report.html`: a run on one page that needs nothing else: no network, no script.

It can be written of any run folder: one that is unfinished, that has no validation text, or whose text has moved away.
What cannot be shown is said.
"""

import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from regard.config import Recipe, read_recipe
from regard.errors import InputError
from regard.explorer.curves import Line, Point, chart
from regard.explorer.history import History, Row, read_history
from regard.explorer.labels import label_sections, try_labels
from regard.explorer.markup import Content, Html, duration, element, html, joined, large, number, section, table
from regard.explorer.samples import attention_section, read_samples, samples_section
from regard.explorer.summaries import cost_section, data_section, environment_section, mean_lengths, read_manifest
from regard.explorer.told import SCORES, words
from regard.runs.folder import RECIPE, WEIGHTS
from regard.tasks.run import Run, load
from regard.text.files import write_whole

REPORT = "report.html"
MOST_VALIDATIONS = 40
"""rows of their table; of more, some from all over the run"""


def write_report(folder: Path, first: Html | None = None) -> Path:
    """Write the run's `report.html`, or write it anew; answers with the file. `first` goes before the other parts."""
    if not (folder / RECIPE).is_file():
        raise InputError(f"{folder}: not a run folder, it has no {RECIPE}")
    path = folder / REPORT
    write_whole(path, _page(folder, first).encode())
    return path


def _page(folder: Path, first: Html | None) -> str:
    """The whole page."""
    recipe, history, manifest = read_recipe(folder / RECIPE), read_history(folder), read_manifest(folder)
    lengths = mean_lengths(recipe, manifest)
    run = load(folder) if (folder / WEIGHTS).is_file() else None
    name = folder.resolve().name
    sections = [
        *([first] if first else []),
        _curves_section(recipe, history),
        _scores_section(recipe, history),
        *_model_sections(run),
        data_section(recipe, manifest, history.padding),
        cost_section(recipe, history, lengths),
        environment_section(history),
        _recipe_section(recipe),
    ]
    style = files("regard.explorer").joinpath("report.css").read_text(encoding="utf-8")
    head = element(
        "head", Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        element("title", f"{name} · regard report"), element("style", Html(style)),
    )  # fmt: skip
    main = element("main", joined(sections), id="main")
    written = time.strftime("%Y-%m-%d %H:%M %Z")
    foot = element("footer", element("p", f"Written by regard on {written}."))
    body = element("body", _header(name, recipe, history, run), main, foot)
    return f"<!doctype html>\n{html(element('html', head, body, lang='en'))}\n"


def _header(name: str, recipe: Recipe, history: History, run: Run | None) -> Html:
    """What one wants to know first."""
    weights = sum(parameter.numel() for parameter in run.model.parameters()) if run else 0
    pairs: list[tuple[str, str]] = []
    if best := history.best:
        for key, shown in SCORES.items():
            if key in best and len(pairs) < 2:
                pairs.append((f"validation {shown.label}", f"{_value(best, key):.{shown.digits}f}"))
    if history.updates:
        pairs += [("updates", f"{history.updates:,}"), ("time", duration(history.seconds))]
        pairs.append((f"{words(recipe).told}s learned from", large(history.tokens)))
    if weights:
        pairs.append(("parameters", large(weights)))
    tiles = [element("div", element("dt", label), element("dd", value)) for label, value in pairs]
    model = recipe.model
    shape = f"{model.family}, {model.d_model} wide, {model.heads} heads"
    if model.family == "encoder-decoder":
        shape += f", {model.encoder_layers} + {model.decoder_layers} layers"
    else:
        shape += f", {model.encoder_layers if model.family == 'encoder-only' else model.decoder_layers} layers"
    status = {"stopped": "stopped by itself: its numbers were no longer finite"}.get(history.status, history.status)
    if not history.sessions:
        status = "no journal"
    state = element("span", status, class_=f"status {history.status}")
    return element(
        "header", element("p", "regard report", class_="kind"), element("h1", name),
        element("p", state, f" {recipe.task}: {shape}", class_="lead"), element("dl", *tiles, class_="tiles"),
    )  # fmt: skip


def _curves_section(recipe: Recipe, history: History) -> Html:
    """How the run went, over its updates."""
    if not history.steps:
        return _missing("curves", "Curves", "The journal holds no updates, so there are no curves.")
    scored, told = history.validations, words(recipe).told
    charts = [
        chart(
            f"Loss a {told}",
            [
                Line(name="training", points=_points(history.steps, "loss")),
                Line(name="validation", points=_points(scored, "loss"), dots=True),
            ],
        ),
        *_score_charts(scored),
        chart("Learning rate", [Line(name="rate", points=_points(history.steps, "rate"))], from_zero=True),
        chart(
            "Speed", [Line(name=f"{told}s a second", points=_points(history.steps, "speed"))],
            unit=f"{told}s a second", from_zero=True,
        ),
    ]  # fmt: skip
    parts: list[Content] = [element("div", *charts, class_="charts")]
    if left_out := sum(row.get("event") == "skipped" for row in history.steps):
        parts.append(
            element("p", f"{left_out:,} updates were left out: a number was not finite.", class_="note")
        )  # fmt: skip
    return section("curves", "Curves", *parts)


def _score_charts(scored: Sequence[Row]) -> list[Html]:
    """A chart for each kind of score that the validations have."""
    charts = []
    for title in dict.fromkeys(shown.chart for shown in SCORES.values() if shown.chart):
        kind = {key: shown for key, shown in SCORES.items() if shown.chart == title}
        lines = [Line(name=shown.label, points=_points(scored, key), dots=True) for key, shown in kind.items()]
        zero = all(shown.from_zero for shown in kind.values())
        charts.append(chart(title, [line for line in lines if line.points], from_zero=zero))
    return charts


def _scores_section(recipe: Recipe, history: History) -> Html:
    """The validations."""
    rows, best = history.validations, history.best
    if not rows:
        return _missing("scores", "Scores", "There has been no validation yet.")
    shown = list(rows)
    if len(rows) > MOST_VALIDATIONS:
        wanted = {round(place * (len(rows) - 1) / (MOST_VALIDATIONS - 1)) for place in range(MOST_VALIDATIONS)}
        shown = [row for place, row in enumerate(rows) if place in wanted or row is best]
    names = [name for name in ("loss", *SCORES) if any(name in row for row in rows)]
    names = list(dict.fromkeys(names))
    head = ["update", *(SCORES[name].label for name in names), "seconds", ""]
    table_rows = [
        [
            f"{_value(row, 'step'):,.0f}",
            *(f"{_value(row, name):.{SCORES[name].digits}f}" for name in names),
            number(_value(row, "seconds")),
            element("strong", "kept") if row is best else "better" if row.get("better") else "",
        ]
        for row in shown
    ]
    parts: list[Content] = [table("Validations", head, table_rows, words=(0, len(head) - 1))]
    if history.tested:
        scores = [(one["name"], f"{one['value']:.2f}", one["signature"]) for one in history.tested["scores"]]
        title = f"Test text: {history.tested['files']}, beam {history.tested['beam']}"
        parts.insert(0, table(title, ("score", "value", "signature"), scores, words=(0, 2)))
    if "bleu" in names:
        note = "Validation translates greedily, so that it is quick; beam search mostly does better. "
        note += "" if history.tested else "regard evaluate scores the test text, with signatures."
    elif recipe.data.valid or recipe.data.valid_share:
        note = "regard evaluate scores the test text." if recipe.training.objective == "task" else ""
    else:
        note = "There is no validation text: the loss is that of training text, which says little of other text."
    if note:
        parts.append(element("p", note, class_="note"))
    return section("scores", "Scores", *parts)


def _model_sections(run: Run | None) -> list[Html]:
    """Samples and attention, or why there are none."""
    if run is None:
        return [_missing("samples", "Samples", "No weights are kept yet: they come with the first validation.")]
    if run.recipe.task == "classify" and run.recipe.data.labels:
        try:
            return label_sections(try_labels(run))
        except InputError as error:
            return [_missing("labels", "Labels", f"They cannot be tried: {error}")]
    if run.recipe.task != "translate":
        return []
    try:
        samples = read_samples(run)
    except InputError as error:
        return [_missing("samples", "Samples", f"There are none: {error}")]
    try:
        return [samples_section(samples), attention_section(run, samples)]
    except InputError as error:
        return [samples_section(samples), _missing("attention", "Attention", f"It cannot be shown: {error}")]


def _missing(name: str, title: str, why: str) -> Html:
    return section(name, title, element("p", why, class_="note"))


def _recipe_section(recipe: Recipe) -> Html:
    return section("recipe", "Recipe", element("pre", element("code", recipe.to_toml()), tabindex=0))


def _points(rows: Sequence[Row], key: str) -> list[Point]:
    return [(float(row["step"]), _value(row, key)) for row in rows if key in row]


def _value(row: Row, key: str) -> float:
    """A number of an event; one that was not finite is written as a word."""
    try:
        return float(row.get(key, "nan"))
    except (TypeError, ValueError):
        return float("nan")
