"""One head's weights as a heat map in SVG: a row for each piece that was written, a column for each that was read."""

import math
from collections.abc import Sequence

from regard.explorer.markup import Html, element, html

CELL = 16
LEVELS = 10
"""shades; the cells of a shade are one path, which keeps the page small"""
CHARACTER = 6.3
"""width of a letter of the labels"""
LONGEST = 12
"""letters of a piece that are shown"""


def heat_map(name: str, weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str]) -> Html:
    """The picture of weights between 0 and 1; what it shows is also said in words."""
    row_labels, column_labels = [_label(piece) for piece in rows], [_label(piece) for piece in columns]
    left = 8 + math.ceil(CHARACTER * max(map(len, row_labels), default=0))
    top = 8 + math.ceil(CHARACTER * max(map(len, column_labels), default=0))
    width, height = left + CELL * len(columns) + 2, top + CELL * len(rows) + 2
    parts = [
        f'<text class="end" x="{left - 5}" y="{top + CELL * row + 12}">{html(label)}</text>'
        for row, label in enumerate(row_labels)
    ]
    parts += [
        f'<text transform="translate({left + CELL * column + 12} {top - 5}) rotate(-90)">{html(label)}</text>'
        for column, label in enumerate(column_labels)
    ]
    parts.append(
        f'<path class="frame" d="M{left} {top}h{CELL * len(columns)}v{CELL * len(rows)}h-{CELL * len(columns)}z"/>'
    )
    parts += _cells(weights, left, top)
    picture = element(
        "svg", Html("".join(parts)), viewBox=f"0 0 {width} {height}", role="img", style=f"max-width:{width}px",
        aria_label=f"{name}. {told(weights, rows, columns)}",
    )  # fmt: skip
    return element("figure", element("figcaption", name), picture, class_="head")


def told(weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str]) -> str:
    """Where each written piece looks most, in words."""
    said = []
    for piece, row in zip(rows, weights, strict=True):
        most = max(range(len(columns)), key=lambda column: row[column])
        said.append(f"{piece} looks most at {columns[most]} ({row[most]:.0%})")
    return "; ".join(said)


def _cells(weights: Sequence[Sequence[float]], left: int, top: int) -> list[str]:
    paths: list[list[str]] = [[] for _ in range(LEVELS + 1)]
    for row, values in enumerate(weights):
        for column, weight in enumerate(values):
            if (level := round(weight * LEVELS)) > 0:
                paths[min(level, LEVELS)].append(f"M{left + CELL * column} {top + CELL * row}h{CELL}v{CELL}h-{CELL}z")
    return [
        f'<path class="cell" fill-opacity="{level / LEVELS:g}" d="{"".join(path)}"/>'
        for level, path in enumerate(paths)
        if path
    ]


def _label(piece: str) -> str:
    """A piece as it is shown: cut if long, its space as sentencepiece writes it."""
    shown = "".join(character if character.isprintable() else "·" for character in piece.replace(" ", "▁")) or "·"
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
