"""Writes the tables of the docs that are measured or read from the code, between the marks that their pages hold.

With --check it writes nothing, names the pages that are out of date, and leaves with 1 if there are any.
"""

import argparse
import io
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

from regard.cli import main as main_command
from regard.cli.layout import default_text
from regard.config import DecodingConfig
from regard.config.plain import field_docs
from regard.nn.requirements import KINDS, measure_positions, requirement_table, table
from regard.verify import EQUALITIES

DOCS = Path(__file__).resolve().parent.parent / "docs"


def equality_table() -> str:
    """What `regard verify` measures."""
    lines = ["| equality | says | bound |", "|---|---|---|"]
    lines += [f"| {each.name} | {each.says} | {each.bound:g} |" for each in EQUALITIES]
    return "\n".join(lines)


def option_table() -> str:
    """The options of decoding."""
    docs, plain = field_docs(DecodingConfig), DecodingConfig()
    lines = ["| option | says | default |", "|---|---|---|"]
    lines += [f"| `{name}` | {docs[name]} | {default_text(value)} |" for name, value in vars(plain).items()]
    return "\n".join(lines)


def position_table() -> str:
    """All kinds of positions, measured now."""
    return table([measure_positions(kind) for kind in KINDS])


def transcript(words: str) -> str:
    """A command and what it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        main_command(words.split())
    return f"```text\n$ regard {words}\n{printed.getvalue()}```"


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "cost.md": {
        "base": partial(transcript, "cost base"),
        "check": partial(transcript, "cost small --check --length 100 200"),
        "table3": partial(transcript, "cost --table3"),
        "problem": partial(transcript, "cost --problem-size"),
    },
    "decoding.md": {"options": option_table},
    "positions.md": {"requirements": requirement_table, "kinds": position_table},
    "verify.md": {"equalities": equality_table},
}
"""Of each page, its marks and what stands there."""


def filled(text: str, tables: dict[str, Callable[[], str]]) -> str:
    """A page with its tables as they should be."""
    for mark, make in tables.items():
        begin, end = f"<!-- begin {mark} -->\n", f"<!-- end {mark} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"the page must have one {begin.strip()} and one {end}")
        before, rest = text.split(begin)
        text = f"{before}{begin}{make()}\n{end}{rest.split(end)[1]}"
    return text


def main() -> int:
    """Write the tables, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"of {', '.join(TABLES)}; none: all")
    parser.add_argument("--check", action="store_true", help="only say which pages are out of date")
    parser.add_argument("--folder", type=Path, default=DOCS, help="where the pages are")
    arguments = parser.parse_args()
    for name in set(arguments.pages) - set(TABLES):
        parser.error(f"no tables for {name}")
    stale = False
    for name in arguments.pages or TABLES:
        page = arguments.folder / name
        old = page.read_text(encoding="utf-8")
        new = filled(old, TABLES[name])
        if old != new and arguments.check:
            print(f"{page}: out of date; run tools/tables.py", file=sys.stderr)
            stale = True
        elif old != new:
            page.write_text(new, encoding="utf-8")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
