"""Writes docs/commands/NAME.md for every command, from what the command itself takes.

With --check it writes nothing, names the pages that are out of date, and leaves with 1 if there are any.
"""

import argparse
import sys
from pathlib import Path

from regard.cli.commands import COMMANDS, parser_of
from regard.cli.layout import markdown

PAGES = Path(__file__).resolve().parent.parent / "docs" / "commands"


def stale(folder: Path) -> dict[Path, str | None]:
    """The pages that differ from what they should be, with that; None where there should be no page."""
    right: dict[Path, str | None] = {folder / f"{name}.md": markdown(parser_of(name)) for name in COMMANDS}
    found = {path: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return {path: right.get(path) for path in sorted({*right, *found}) if right.get(path) != found.get(path)}


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say which pages are out of date")
    parser.add_argument("--folder", type=Path, default=PAGES, help="where the pages are")
    arguments = parser.parse_args()
    pages = stale(arguments.folder)
    for path, text in pages.items():
        if arguments.check:
            print(f"{path}: out of date; run tools/help_pages.py", file=sys.stderr)
        elif text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if arguments.check and pages else 0


if __name__ == "__main__":
    sys.exit(main())
