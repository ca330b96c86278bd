"""A small corpus, its tokeniser, and the recipe's data section that reads it."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.config import DataConfig, TokensConfig
from regard.text import Tokenizer, train_tokenizer

WORDS = ["kedi", "köpek", "ışık", "ev", "gün", "çocuk", "kitap", "yol", "su", "the", "house", "water", "day", "and"]
TAGS = ("<2fr>", "<2tr>")

Corpus = Callable[..., DataConfig]


def sentences(count: int, seed: int, longest: int = 14) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choice(WORDS) for _ in range(draw.randint(1, longest))) for _ in range(count)]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_tokenizer(sentences(300, 0), TokensConfig(size=300), TAGS)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Writes parallel files, `count` different lines of random words or the `pairs` given, and says where they are."""

    def write(count: int = 0, *, pairs: list[tuple[str, str]] | None = None, name: str = "train") -> tuple[str, str]:
        rows = pairs or list(zip(sentences(count, 1), sentences(count, 2), strict=True))
        files = [tmp_path / f"{name}.fr", tmp_path / f"{name}.en"]
        for file, side in zip(files, zip(*rows, strict=True), strict=True):
            file.write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
        return str(files[0]), str(files[1])

    return write
