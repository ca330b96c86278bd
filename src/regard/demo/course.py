"""The demonstration's course: write a corpus, train on it, score what was held out, find the head that reads "it"."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from regard.config import Recipe, recipe_from
from regard.demo.grammar import LECTURE_SENTENCES, Corpus, Pair, corpus, references
from regard.nn import Head, Part
from regard.tasks.run import Run, load
from regard.tasks.start import train
from regard.training.loop import Watcher

FRENCH, TURKISH = "<2fr>", "<2tr>"
"""the tags that ask for French and for Turkish"""
TEXT = "text"
"""folder of the corpus, inside the run's"""
TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
REFERENCES = 100
"""held-out sentences by which the head is found"""
CLEAR = 0.5
"""how much more weight an antecedent has than the other noun in a head that leaves no doubt"""
_PRONOUNS = ("il", "elle")

DIRECTIONS_NAMED = {
    "en-fr": "English to French", "fr-en": "French to English", "en-tr": "English to Turkish", "all": "all",
}  # fmt: skip


Place = tuple[str, Head]
"""The tag of the language that is translated into, and a head that looks at the source."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The head in which "it" looks at what it stands for, by the weights that it gives in held-out sentences."""

    place: Place
    sentences: int
    """how many those are"""
    right: float
    """share of the sentences in which the antecedent gets more weight than the other noun"""
    means: tuple[tuple[float, float, float], ...]
    """mean weight of the animal, the place and the adjective: where "it" is the animal, and where it is the place"""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the demonstration came to."""

    exact: dict[str, float]
    """for each direction, and for all, the share of held-out sentences translated word for word"""
    tested: dict[str, int]
    """how many those sentences are"""
    lectures: tuple[tuple[Pair, str], ...]
    """the lectures' sentences and what the model made of them"""
    found: Found
    rows: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
    """of both sentences, what "it" looks at in that head: words and weights"""
    step: int
    """of the first of them, the row of "it": the piece that is read, or the step that translates it"""
    seconds: float
    """that all of it took"""


def tag_of(direction: str) -> str:
    """The tag that asks for the direction's language."""
    return f"<2{direction[-2:]}>"


def demo_recipe(folder: Path, minutes: float) -> Recipe:
    """The demonstration's recipe; the text stands in the run's folder."""
    text = {side: [str(folder / TEXT / f"{side}.tsv")] for side in ("train", "valid", "test")}
    return recipe_from(
        {
            "task": "translate",
            "data": {**text, "tag_field": "3"},
            "tokens": {"size": 2500},
            "model": {
                "preset": "small", "d_model": 128, "d_ff": 512, "heads": 4, "encoder_layers": 2, "decoder_layers": 2,
                "dropout": 0.0,
            },
            "training": {  # after 4.5 epochs the translations are as good, but the head of "it" is not that sure yet
                "minutes": minutes, "epochs": 6, "tokens_per_batch": 1200, "learning_rate": 2e-3, "warmup": 200,
            },
            "decoding": {"beam": 1},
        }
    )  # fmt: skip


def write_text(folder: Path, texts: Corpus) -> None:
    """The corpus as TSV: source, target, tag."""
    (folder / TEXT).mkdir(parents=True, exist_ok=True)
    for side, pairs in (("train", texts.train), ("valid", texts.valid), ("test", texts.test)):
        lines = (f"{pair.source}\t{pair.target}\t{tag_of(pair.direction)}\n" for pair in pairs)
        (folder / TEXT / f"{side}.tsv").write_text("".join(lines), encoding="utf-8")


def run_demo(folder: Path, *, minutes: float, watcher: Watcher) -> Outcome | None:
    """All of it; none if the user stopped it on the way."""
    began = time.monotonic()
    texts = corpus()
    write_text(folder, texts)
    watcher.say(f"corpus: {len(texts.train):,} pairs of sentences in three directions, and held-out ones")
    progress = train(demo_recipe(folder, minutes), folder, watcher=watcher)
    if not progress.finished:
        return None
    run = load(folder)
    found = find_head(run)
    counts = Counter(pair.direction for pair in texts.test)
    return Outcome(
        exact=exact_share(run, texts.test),
        tested={**counts, "all": counts.total()},
        lectures=tuple((pair, _translated(run, pair)) for pair in LECTURE_SENTENCES),
        found=found,
        rows=tuple((text, it_row(run, text, found.place)) for text in (TIRED, WIDE)),
        step=_places_of_it(run, TIRED, found.place)[0],
        seconds=time.monotonic() - began,
    )


def _translated(run: Run, pair: Pair) -> str:
    return run.translate(pair.source, tag=tag_of(pair.direction)).text


def exact_share(run: Run, pairs: Sequence[Pair]) -> dict[str, float]:
    """For each direction, and for all, the share of pairs translated word for word."""
    shares: dict[str, float] = {}
    right: list[bool] = []
    for direction in sorted({pair.direction for pair in pairs}):
        some = [pair for pair in pairs if pair.direction == direction]
        made = run.translate([pair.source for pair in some], tag=tag_of(direction))
        hits = [translation.text == pair.target for translation, pair in zip(made, some, strict=True)]
        shares[direction] = sum(hits) / len(hits)
        right += hits
    return {**shares, "all": sum(right) / len(right)}


def find_head(run: Run) -> Found:
    """The head in which "it" gives its antecedent more weight than the other noun.

    "It" is looked for where it is read (its row in the encoder's heads) and where it is translated (in the decoder's
    heads on the source): into French at the step that chooses il or elle. Where no head does so clearly, also into
    Turkish, at the step that names it again.
    """
    several = references(count=REFERENCES, seed=1)
    seen: dict[Place, list[tuple[bool, float, float, float]]] = {}
    for reference in several:
        words = _words(run, reference.sentence, FRENCH)
        names = [word.strip(".,").lower() for _, word in words_with_numbers(words)]
        is_animal = names.index(reference.antecedent) < names.index(reference.other)  # the animal is the subject
        animal, place = sorted((names.index(reference.antecedent), names.index(reference.other)))
        for tag in (FRENCH, TURKISH):
            for head, row in _rows_of_it(run, reference.sentence, tag):
                weights = _by_word(row, words)
                seen.setdefault((tag, head), []).append((is_animal, weights[animal], weights[place], weights[-2]))

    def margin(place: Place) -> float:
        """How much more weight the antecedent gets than the other noun, where "it" is that of the two it does worse."""
        kinds = ([a - p for is_animal, a, p, _ in seen[place] if is_animal],
                 [p - a for is_animal, a, p, _ in seen[place] if not is_animal])  # fmt: skip
        return min(sum(kind) / len(kind) for kind in kinds)

    best = max((place for place in seen if place[0] == FRENCH), key=margin)
    if margin(best) < CLEAR:
        best = max(seen, key=margin)
    rows = seen[best]
    kinds = [[row[1:] for row in rows if row[0] is kind] for kind in (True, False)]
    return Found(
        place=best,
        sentences=len(several),
        right=sum((a > p) if is_animal else (p > a) for is_animal, a, p, _ in rows) / len(rows),
        means=tuple((_mean(kind, 0), _mean(kind, 1), _mean(kind, 2)) for kind in kinds),
    )


def where_of(place: Place) -> str:
    """A head's place in words."""
    tag, (part, layer, number) = place
    if part == "encoder.self":
        side = "the encoder, where “it” is read"
    elif tag == FRENCH:
        side = "the decoder, where French chooses il or elle for “it”"
    else:
        side = "the decoder, where Turkish names what “it” stands for"
    return f"head {number} of layer {layer} (counted from 0) in {side}"


def _mean(rows: list[tuple[float, float, float]], column: int) -> float:
    return sum(row[column] for row in rows) / len(rows)


def it_row(run: Run, text: str, place: Place) -> tuple[tuple[str, float], ...]:
    """Each word of the sentence with the weight that "it" gives it in a head."""
    tag, head = place
    rows = dict(_rows_of_it(run, text, tag))
    words = _words(run, text, tag)
    weights = _by_word(rows[head], words)
    return tuple((word, weights[number]) for number, word in words_with_numbers(words))


Pieces = list[tuple[int, str]]
"""of each piece the number of its word, and the word"""


def words_with_numbers(pieces: Pieces) -> list[tuple[int, str]]:
    """Each word once, in order."""
    return sorted(dict(pieces).items())


def _words(run: Run, text: str, tag: str) -> Pieces:
    """The words as the model reads them: the tag, the text's words, the end."""
    tokenizer = run.source_tokenizer
    ids = [tokenizer.tag_id(tag), *tokenizer.encode(text), tokenizer.specials.end]
    numbers = tokenizer.words(ids)
    by_word: dict[int, list[int]] = {}
    for id, number in zip(ids, numbers, strict=True):
        by_word.setdefault(number, []).append(id)
    names = {number: tokenizer.decode(pieces).strip() for number, pieces in by_word.items()}
    names[numbers[0]], names[numbers[-1]] = tag, "</s>"
    return [(number, names[number]) for number in numbers]


def _rows_of_it(run: Run, text: str, tag: str) -> list[tuple[Head, Tensor]]:
    """Of every head that looks at the source, what "it" gives to each of the source's pieces."""
    trace, _, written = run.trace(text, parts=("encoder.self", "decoder.cross"), tag=tag)
    model = run.recipe.model
    rows: list[tuple[Head, Tensor]] = []
    parts: list[tuple[Part, int, list[int]]] = [
        ("encoder.self", model.encoder_layers, _read_of_it(run, text, tag)),
        ("decoder.cross", model.decoder_layers, [_step_of_it(written, tag)]),
    ]
    for part, layers, places in parts:
        for layer in range(layers):
            weights = trace[f"{part}.{layer}.weights"][0]
            rows += [((part, layer, head), weights[head, places].mean(0)) for head in range(model.heads)]
    return rows


def _places_of_it(run: Run, text: str, place: Place) -> list[int]:
    """The rows of "it" in a head: its pieces in the source, or the step that translates it."""
    tag, (part, _, _) = place
    if part == "encoder.self":
        return _read_of_it(run, text, tag)
    return [_step_of_it(run.trace(text, parts=("decoder.cross",), tag=tag)[2], tag)]


def _read_of_it(run: Run, text: str, tag: str) -> list[int]:
    return [place for place, (_, word) in enumerate(_words(run, text, tag)) if word == "it"]


def _step_of_it(written: Sequence[str], tag: str) -> int:
    """The step that translates "it": which chooses il or elle, or the first piece behind çünkü; else the last."""
    if tag == FRENCH:
        found = [place - 1 for place, piece in enumerate(written) if piece.strip("▁").removeprefix("qu'") in _PRONOUNS]
    else:
        texts = ["".join(written[: place + 1]) for place in range(len(written))]
        found = [place for place, text in enumerate(texts) if text.endswith("▁çünkü")]
    return found[-1] if found else len(written) - 1


def _by_word(row: Tensor, pieces: Pieces) -> list[float]:
    """Weights of words: the sum over their pieces."""
    sums = [0.0] * (max(number for number, _ in pieces) + 1)
    for (number, _), weight in zip(pieces, row.tolist(), strict=True):
        sums[number] += weight
    return sums
