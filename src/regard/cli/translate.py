"""`regard translate`: lines in, lines out, in order."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("file", metavar="FILE", nargs="?", help="text, a line for a line; without it standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the translations go; without it standard output")
    parser.add_argument("--beam", type=int, metavar="INT", help="hypotheses kept at each step (default: the recipe's)")
    parser.add_argument("--tag", metavar="TAG", help="for a model of several directions, such as <2tr>")


def run(arguments: argparse.Namespace) -> int:
    """Translate block by block, so that long input streams."""
    import sys
    from contextlib import ExitStack
    from itertools import islice

    from regard.errors import InputError
    from regard.tasks.run import load
    from regard.text import lines, lines_of

    opened = load(arguments.run)
    if arguments.beam is not None and arguments.beam < 1:
        raise InputError(f"--beam = {arguments.beam}: must be 1 or more")
    with ExitStack() as stack:
        source = lines(arguments.file) if arguments.file else lines_of(sys.stdin.buffer, "standard input")
        target = stack.enter_context(open(arguments.output, "w", encoding="utf-8")) if arguments.output else sys.stdout
        while block := list(islice(source, 512 if arguments.file else 64)):
            for translation in opened.translate(block, beam=arguments.beam, tag=arguments.tag):
                print(translation.text.replace("\n", " "), file=target)
            target.flush()
    return 0
