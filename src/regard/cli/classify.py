"""`regard classify`: lines in, their labels out, in order."""

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.tasks.classify import Classification
    from regard.tasks.reading import Text

EPILOG = """\
examples:
  echo "a gripping film" | regard classify runs/sst2
  regard classify runs/sst2 reviews.txt --format jsonl

in text, each line has the label, a tab and its probability, with --top more of both; several labels are parted by
commas; an empty line stays empty. A classifier of two texts reads them with a tab between.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("file", metavar="FILE", nargs="?", help="texts, a line each; without it standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the labels go; without it standard output")
    parser.add_argument("--top", type=int, metavar="INT", default=1, help="labels shown in text, the best first")
    parser.add_argument("--format", choices=("text", "jsonl"), default="text", help="jsonl has all probabilities")


def run(arguments: argparse.Namespace) -> int:
    """Classify block by block, so that long input streams."""
    import sys
    from contextlib import ExitStack
    from itertools import islice

    from regard.errors import InputError
    from regard.tasks.run import load
    from regard.text import lines, lines_of

    if arguments.top < 1:
        raise InputError(f"--top = {arguments.top}: must be 1 or more")
    classifier = load(arguments.run).classifier
    blank = number = 0
    with ExitStack() as stack:
        source = lines(arguments.file) if arguments.file else lines_of(sys.stdin.buffer, "standard input")
        target = stack.enter_context(open(arguments.output, "w", encoding="utf-8")) if arguments.output else sys.stdout
        while block := list(islice(source, 512 if arguments.file else 64)):
            texts = [_read(line, number + row, two=classifier.two) for row, line in enumerate(block, 1)]
            number += len(block)
            for line, found in zip(block, classifier.classify(texts), strict=True):
                blank += not found.probabilities
                print(_told(line, found, arguments.format, arguments.top), file=target)
            target.flush()
    tell_faults(blank, classifier.reader.cut, classifier.reader.room, "have no label")
    return 0


def tell_faults(blank: int, cut: int, room: int, without: str) -> None:
    """Say on standard error what could not be read whole."""
    import sys

    if blank:
        print(f"regard: empty lines, which {without}: {blank:,}", file=sys.stderr)
    if cut:
        print(f"regard: texts longer than {room:,} pieces, cut off there: {cut:,}", file=sys.stderr)


def _read(line: str, number: int, *, two: bool) -> "Text":
    """A line's text, or its two."""
    from regard.errors import InputError

    if not two:
        return line
    first, tab, second = line.partition("\t")
    if line.strip() and not tab:
        raise InputError(f"line {number}: this classifier reads two texts; put a tab between them")
    return first, second


def _told(line: str, found: "Classification", form: str, top: int) -> str:
    """What is printed of a text."""
    if form == "jsonl":
        chances = {name: round(chance, 6) for name, chance in found.probabilities.items()}
        labels = list(found.labels)
        return json.dumps({"text": line, "labels": labels, "probabilities": chances}, ensure_ascii=False)
    shown = list(found.probabilities.items())[: max(top, len(found.labels))]
    if top == 1:
        shown = [pair for pair in shown if pair[0] in found.labels]
        told = [f"{chance:.4f}" for _, chance in shown]
        return f"{found.label}\t{', '.join(told)}" if shown else ""
    return "\t".join(f"{name}\t{chance:.4f}" for name, chance in shown)
