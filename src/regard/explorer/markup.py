"""Small pieces of HTML. Whatever is text is escaped here and nowhere else; `Html` is what has been through it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Html:
    """Markup that is ready, as against text, which is not."""

    code: str


Content = Html | str | int | float | None
"""What may be shown: text and numbers are escaped, none is nothing."""


def html(content: Content) -> str:
    """The markup that shows the content."""
    return content.code if isinstance(content, Html) else "" if content is None else escape(str(content))


def element(name: str, *content: Content, **attributes: str | int) -> Html:
    """An element; of an attribute's name a last underscore is left out, and others become hyphens."""
    stated = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{stated}>{''.join(map(html, content))}</{name}>")


def joined(parts: Iterable[Content]) -> Html:
    """Pieces one behind another."""
    return Html("\n".join(map(html, parts)))


def section(name: str, title: str, *content: Content) -> Html:
    """A part of the page, with its heading."""
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, joined(content), id=name, aria_labelledby=f"{name}-title")


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Content]], *, words: Sequence[int] = (0,)) -> Html:
    """A table whose first column names its rows; columns beside `words` hold numbers. It scrolls by itself."""
    kinds = ["words" if column in words else "number" for column in range(len(head))]
    titles = [element("th", name, scope="col", class_=kind) for name, kind in zip(head, kinds, strict=True)]
    body = []
    for first, *rest in rows:
        cells = [element("td", value, class_=kind) for value, kind in zip(rest, kinds[1:], strict=True)]
        body.append(element("tr", element("th", first, scope="row", class_="words"), *cells))
    whole = element(
        "table", element("caption", caption), element("thead", element("tr", *titles)), element("tbody", *body)
    )
    return element("div", whole, class_="scroll", role="region", tabindex=0, aria_label=caption)


def facts(rows: Iterable[tuple[str, Content]]) -> Html:
    """Names with their values."""
    pairs = [element("div", element("dt", name), element("dd", value)) for name, value in rows]
    return element("dl", *pairs, class_="facts")


def number(value: float, digits: int = 4) -> str:
    """A number for people: whole ones with their thousands parted, others with some digits."""
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def large(value: float) -> str:
    """A count that may be of any size: 1.2 million, 3.4e+12."""
    for size, name in ((1e15, ""), (1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{value / size:.2f} {name}" if name else f"{value:.2e}"
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A length of time."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
