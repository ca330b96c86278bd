"""`regard score`: how likely a run finds given translations."""

import argparse
import json

EPILOG = """
examples:
  regard score runs/fr-en --source test.fr --target test.en
  regard score runs/fr-en --source test.fr --target test.en --format jsonl

a line of text holds the log-probability of the target, its end included, a tab, and its mean over the pieces
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("--source", metavar="FILE", required=True, help="text that was translated")
    parser.add_argument("--target", metavar="FILE", required=True, help="its translations, a line for a line")
    parser.add_argument("--tag", metavar="TAG", help="for a model of several directions, such as <2tr>")
    parser.add_argument(
        "--format", choices=("text", "jsonl"), default="text", help="numbers, or an object a line with every piece's"
    )


def run(arguments: argparse.Namespace) -> int:
    """Score block by block."""
    from itertools import islice

    from regard.tasks.run import load
    from regard.text import read_pairs

    opened = load(arguments.run)
    pairs = read_pairs([arguments.source, arguments.target])
    while block := list(islice(pairs, 512)):
        scores = opened.score([(pair.source, pair.target) for pair in block], tag=arguments.tag)
        for pair, logps in zip(block, scores, strict=True):
            total = sum(logps)
            if arguments.format == "text":
                print(f"{total:.4f}\t{total / len(logps):.4f}")
                continue
            ids = [*opened.tokenizer.encode(pair.target), opened.tokenizer.specials.end]
            tokens = [opened.tokenizer.piece(id) for id in ids]
            plain = {"line": pair.line, "logp": total, "mean": total / len(logps), "tokens": tokens, "logps": logps}
            print(json.dumps(plain, ensure_ascii=False))
    return 0
