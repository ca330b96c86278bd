"""The part of a report that needs the model: some sentences translated, and the heads at work on one of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from regard.data import text_pairs
from regard.errors import InputError
from regard.evaluation.scores import score
from regard.explorer.heatmap import heat_map
from regard.explorer.markup import Html, element, joined, section
from regard.tasks.run import Run
from regard.text import TextPair, training_sets

SAMPLES = 10
READ = 1000
"""sentences, at most, that samples are chosen from"""
LONGEST = 400
"""letters of a sample: longer ones take long and say little"""
PIECES = 24
"""that are written in the attention's sentence, at most"""
BEST_PIECES = 10
"""of its source: many enough to see something, few enough to read"""
MOST_HEADS = 128
"""heat maps on the page; of a larger model the last layers are shown"""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A sentence of the recipe's text and what the model makes of it."""

    pair: TextPair
    translation: str
    chrf: float


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Some of them."""

    kind: str
    """which text they are from"""
    rows: tuple[Sample, ...]


def read_samples(run: Run) -> Samples:
    """Sentences from all over the validation text, else the test text, else the training text, translated."""
    data = run.recipe.data
    sources = [("validation", data.valid, data.tag), ("test", data.test, data.tag)]
    if data.train or data.sets:
        first = training_sets(data)[0]
        sources.append(("training", first.files, first.tag))
    kind, files, tag = next((source for source in sources if source[1]), ("", (), None))
    if not files:
        raise InputError("the recipe names no text")
    pairs = [pair for pair in islice(text_pairs(data, files, tag=tag), READ) if _is_shown(pair)]
    chosen = [pairs[row * len(pairs) // SAMPLES] for row in range(SAMPLES)] if len(pairs) > SAMPLES else pairs
    if not chosen:
        raise InputError(f"{', '.join(files)}: no sentence is short enough to be shown")
    made = [_translated(run, pair) for pair in chosen]
    scores = score(made, [pair.target for pair in chosen]).sentences
    return Samples(
        kind=kind,
        rows=tuple(
            Sample(pair=pair, translation=text, chrf=its.chrf)
            for pair, text, its in zip(chosen, made, scores, strict=True)
        ),
    )


def samples_section(samples: Samples) -> Html:
    """The sentences, each with its reference and translation."""
    note = f"Sentences from all over the {samples.kind} text, with the recipe's beam. chrF2++ is of the sentence: 100 "
    note += "is the reference to the letter."
    return section("samples", "Samples", element("p", note, class_="note"), joined(map(_card, samples.rows)))


def attention_section(run: Run, samples: Samples) -> Html:
    """Every head of every layer's cross-attention while one sentence is translated."""
    sample = min(
        samples.rows, key=lambda one: abs(len(run.source_tokenizer.encode(one.pair.source)) - BEST_PIECES)
    )  # fmt: skip
    own = len(run.tokenizer.encode(sample.translation)) <= PIECES
    target = sample.translation if own else sample.pair.target
    layers, heads = run.recipe.model.decoder_layers, run.recipe.model.heads
    shown = list(range(max(0, layers - max(1, MOST_HEADS // heads)), layers))
    trace, read, written = run.trace(sample.pair.source, target, tag=sample.pair.tag)
    written = written[: PIECES + 1]
    blocks = []
    for layer in shown:
        weights = trace[f"decoder.cross.{layer}.weights"][0]
        maps = [
            heat_map(f"Layer {layer}, head {head}", weights[head, : len(written)].tolist(), written, read)
            for head in range(heads)
        ]
        title = element("summary", f"Decoder layer {layer}")
        opened = {"open": "open"} if layer == shown[-1] else {}
        blocks.append(element("details", title, element("div", *maps, class_="heads"), **opened))
    note = (
        "Cross-attention: each row is the piece that the decoder has just read, each column a piece of the source, and "
        "the stronger a cell's colour, the more the decoder looks there while it chooses the next piece. A row adds up "
        "to 1; what is below 0.05 stays empty. Layers and heads are counted from 0, as in the explorer."
    )
    if len(shown) < layers:
        note += f" Of {layers} layers the last {len(shown)} are shown."
    whose = "the model's translation" if own else "the reference, since the model's translation is long"
    sentence = element(
        "p", element("q", sample.pair.source, dir="auto"), " → ", element("q", target, dir="auto"), f" ({whose})",
        class_="sentence",
    )  # fmt: skip
    return section("attention", "Attention", sentence, element("p", note, class_="note"), joined(blocks))


def _is_shown(pair: TextPair) -> bool:
    return bool(pair.source.strip()) and max(len(pair.source), len(pair.target)) <= LONGEST


def _translated(run: Run, pair: TextPair) -> str:
    return run.translate(pair.source, tag=pair.tag).text


def _card(sample: Sample) -> Html:
    """One sentence."""
    same = sample.translation.strip() == sample.pair.target.strip()
    rows: Sequence[tuple[str, str, str]] = (
        ("Source", sample.pair.source, ""),
        ("Reference", sample.pair.target, ""),
        ("Translation", sample.translation or "(empty)", "made"),
    )
    lines = [
        element("div", element("dt", name), element("dd", text, dir="auto"), class_=f"row {kind}".strip())
        for name, text, kind in rows
    ]
    mark = element(
        "p", "as the reference" if same else f"chrF2++ {sample.chrf:.0f}", class_="mark good" if same else "mark"
    )
    return element("article", element("dl", *lines), mark, class_="sample")
