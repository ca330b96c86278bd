"""Pairs that a run knows to be right, from which it tells what its heads do and how sure it may be of itself."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from regard.config import Recipe
from regard.data import Ragged, text_pairs
from regard.data.ragged import id_type
from regard.decoding import Given
from regard.errors import InputError
from regard.text import Tokenizer

MOST = 300
LONGEST = 100
"""pieces of a side"""


def known_pairs(folder: Path, recipe: Recipe, tokenizer: Tokenizer, source_tokenizer: Tokenizer) -> list[Given]:
    """Pairs of the recipe's validation text; where it is not there any more, of the training data in the run folder."""
    pairs = list(islice(_valid(recipe, tokenizer, source_tokenizer), MOST))
    return pairs or list(islice(_stored(folder, tokenizer, source_tokenizer), MOST))


def _valid(recipe: Recipe, tokenizer: Tokenizer, source_tokenizer: Tokenizer) -> Iterator[Given]:
    if not recipe.data.valid or not all(Path(file).exists() for file in recipe.data.valid):
        return
    try:
        for pair in text_pairs(recipe.data, recipe.data.valid, tag=recipe.data.tag):
            tag = [source_tokenizer.tag_id(pair.tag)] if pair.tag in source_tokenizer.tags and pair.tag else []
            source, target = source_tokenizer.encode(pair.source), tokenizer.encode(pair.target)
            yield from _given([*tag, *source], target, tokenizer, source_tokenizer)
    except InputError:  # other text stands there now: what was given so far will do
        return


def _stored(folder: Path, tokenizer: Tokenizer, source_tokenizer: Tokenizer) -> Iterator[Given]:
    for place in sorted((folder / "data").glob("pairs-*")):
        try:
            sources = Ragged.open(place, "source", id_type(source_tokenizer.size))
            targets = Ragged.open(place, "target", id_type(tokenizer.size))
        except (OSError, ValueError):
            continue
        for row in range(len(targets)):
            yield from _given(sources[row].tolist(), targets[row].tolist(), tokenizer, source_tokenizer)


def _given(source: list[int], target: list[int], tokenizer: Tokenizer, source_tokenizer: Tokenizer) -> Iterator[Given]:
    if 0 < len(source) <= LONGEST and 0 < len(target) <= LONGEST:
        yield Given(
            (*source, source_tokenizer.specials.end), (tokenizer.specials.begin,), (*target, tokenizer.specials.end)
        )
