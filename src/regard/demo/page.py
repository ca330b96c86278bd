"""What came of the demonstration, as a part of its run's `report.html`."""

from regard.demo.course import DIRECTIONS_NAMED, Outcome, where_of
from regard.explorer.markup import Content, Html, duration, element, joined, section, table


def outcome_section(outcome: Outcome) -> Html:
    """Scores, the lectures' sentences, and what "it" looks at."""
    scores = [
        (DIRECTIONS_NAMED[direction], f"{outcome.tested[direction]:,}", f"{share:.1%}")
        for direction, share in outcome.exact.items()
    ]
    head = ("direction", "held-out sentences", "translated word for word")
    parts: list[Content] = [
        element("p", f"Writing the corpus, training and all below took {duration(outcome.seconds)}.", class_="note"),
        table("Combinations of words that are in no training sentence", head, scores),
        _sentences(outcome),
        _head(outcome),
    ]  # fmt: skip
    return section("demonstration", "The demonstration", *parts)


def _sentences(outcome: Outcome) -> Html:
    """The lectures' sentences and their translations."""
    right = element("strong", "as it should be")
    tables = []
    for direction in dict.fromkeys(pair.direction for pair, _ in outcome.lectures):
        rows = [
            (pair.source, made, right if made == pair.target else f"should be: {pair.target}")
            for pair, made in outcome.lectures
            if pair.direction == direction
        ]
        name = f"The lectures' sentences, {DIRECTIONS_NAMED[direction]}"
        tables.append(table(name, ("sentence", "translation", ""), rows, words=(0, 1, 2)))
    return joined(tables)


def _head(outcome: Outcome) -> Html:
    """The head of "it": where it is, its mean weights, and its row for both sentences."""
    found = outcome.found
    note = (
        f"The head in which “it” looks most at what it stands for is {where_of(found.place)}. In {found.right:.0%} of "
        f"{found.sentences} held-out sentences that noun has more weight there than the other."
    )
    rows = [
        (f"where “it” is the {name}", *(f"{weight:.2f}" for weight in means))
        for name, means in zip(("animal", "place"), found.means, strict=True)
    ]
    means = table("Mean weights", ("", "the animal", "the place", "the adjective"), rows)
    shown = [element("p", *_shaded(row), class_="shaded") for _, row in outcome.rows]
    said = "What “it” looks at: the stronger a word's colour, the more."
    return joined(
        [element("h3", "What “it” looks at"), element("p", note), means, element("p", said, class_="note"), *shown]
    )


def _shaded(row: tuple[tuple[str, float], ...]) -> list[Content]:
    """A sentence whose words are coloured by their weights."""
    words: list[Content] = []
    for word, weight in row:
        words += [element("span", word, style=f"--weight: {weight:.3f}", title=f"{weight:.2f}"), " "]
    return words
