"""Curves as SVG: lines over updates, drawn so that the page's style decides their colours."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from regard.explorer.markup import Html, element, html, joined, number

WIDTH, HEIGHT = 440, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 38
MOST_POINTS = 240
"""of a line; a longer one is drawn by the means of its parts"""

Point = tuple[float, float]
Place = Callable[[Point], Point]
"""From an update and a value to a place in the picture."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a chart."""

    name: str
    points: Sequence[Point]
    """(update, value), in order"""
    dots: bool = False
    """whether each point is marked, where they are few"""


def chart(
    title: str, lines: Sequence[Line], *, unit: str = "", from_zero: bool = False, across: str = "updates"
) -> Html:
    """A figure with its lines over the updates, or over something else; what is not finite is left out."""
    drawn = [Line(name=line.name, dots=line.dots, points=thinned(_finite(line.points))) for line in lines]
    drawn = [line for line in drawn if line.points]
    if not drawn:
        return Html("")
    wide = [x for line in drawn for x, _ in line.points]
    up = [y for line in drawn for _, y in line.points] + ([0.0] if from_zero else [])
    x_ticks, y_ticks = ticks(min(wide), max(wide)), ticks(min(up), max(up))
    left, right = min(wide), max(wide) if max(wide) > min(wide) else min(wide) + 1
    low, high = y_ticks[0], y_ticks[-1]

    def place(point: Point) -> Point:
        x = LEFT + (point[0] - left) / (right - left) * (WIDTH - LEFT - RIGHT)
        return x, HEIGHT - BOTTOM - (point[1] - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [_grid(place, [x for x in x_ticks if left <= x <= right], y_ticks, left, low, across)]
    parts += [_line(line, kind, place, across) for kind, line in enumerate(drawn)]
    picture = element(
        "svg", joined(parts), viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=_told(title, drawn, unit, across)
    )
    legend = [
        element("span", element("i", class_=f"swatch line-{kind}"), line.name, class_="key")
        for kind, line in enumerate(drawn)
    ]
    caption = element("figcaption", element("strong", title), element("span", *legend, class_="legend"))
    return element("figure", caption, picture, class_="chart")


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers at even distances that hold both ends."""
    if high - low < 1e-12 * max(1.0, abs(high)):
        pad = abs(high) / 2 or 1.0
        low, high = low - pad, high + pad
    rough = (high - low) / count
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [place * step for place in range(first, last + 1)]


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """The points, or if there are too many the means of neighbours; the first and the last stay."""
    if len(points) <= most:
        return list(points)
    size = (len(points) - 2) / (most - 2)
    edges = [1 + round(part * size) for part in range(most - 1)]
    groups = [points[start:end] for start, end in pairwise(edges)]
    means = [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]
    return [points[0], *means, points[-1]]


def _finite(points: Sequence[Point]) -> list[Point]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def _grid(
    place: Place, x_ticks: Sequence[float], y_ticks: Sequence[float], left: float, low: float, across: str
) -> Html:
    """Lines across at the values, and the numbers at both axes."""
    parts = []
    for tick in y_ticks:
        y = place((left, tick))[1]
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="end" x="{LEFT - 7}" y="{y + 4:.1f}">{_short(tick)}</text>')
    for tick in x_ticks:
        x = place((tick, low))[0]
        parts.append(f'<text class="middle" x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}">{_short(tick)}</text>')
    parts.append(f'<text class="end" x="{WIDTH - RIGHT}" y="{HEIGHT - 3}">{html(across)}</text>')
    return Html("".join(parts))


def _line(line: Line, kind: int, place: Place, across: str) -> Html:
    places = [place(point) for point in line.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [f'<path class="line line-{kind}" d="M{path}"/>']
    if line.dots or len(places) == 1:
        for (x, y), (update, value) in zip(places, line.points, strict=True):
            told = element("title", f"{_at(across, update)}: {line.name} {number(value)}").code
            parts.append(f'<circle class="dot line-{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.2">{told}</circle>')
    return Html("".join(parts))


def _short(value: float) -> str:
    """A tick's number, without the noise of its binary fraction."""
    if value and (abs(value) < 1e-4 or abs(value) >= 1e6):
        digits = f"{value:.1e}"
        base, _, power = digits.partition("e")
        return f"{base.removesuffix('.0')}e{int(power)}"
    return f"{value:,.10g}" if abs(value) >= 1000 else f"{value:.6g}"


def _at(across: str, place: float) -> str:
    """A place on the axis, in words."""
    return f"update {place:,.0f}" if across == "updates" else f"{across} {number(place)}"


def _told(title: str, lines: Sequence[Line], unit: str, across: str) -> str:
    """The chart in words, for those who do not see it."""
    said = [
        f"{line.name} from {number(line.points[0][1])} at {_at(across, line.points[0][0])} "
        f"to {number(line.points[-1][1])} at {_at(across, line.points[-1][0])}"
        for line in lines
    ]
    return f"{title}{f' in {unit}' if unit else ''}: {'; '.join(said)}"
