"""`regard export`: a run becomes a model of another program, and both are compared."""

import argparse

EPILOG = """
examples:
  regard export runs/fr-en --to ctranslate2 --out fr-en.ct2
  regard export runs/fr-en --to ctranslate2 --out fr-en.ct2 --precision int8

ends by running both sides on sample inputs: certificate.json says how far apart they came out, and nothing is left if
they disagree; decoding.json holds the arguments of CTranslate2's translate_batch that search as the recipe says, and
what of the recipe's search is not the same there is said
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("--to", choices=("ctranslate2",), required=True, help="the format")
    parser.add_argument("--out", metavar="DIR", required=True, help="the folder to make")
    parser.add_argument(
        "--precision", choices=("float32", "int8"), default="float32", help="of the weights; default float32"
    )


def run(arguments: argparse.Namespace) -> int:
    """Export, and say how near the two are."""
    from pathlib import Path

    from regard.interop.ctranslate2 import export_ctranslate2
    from regard.tasks.known import known_pairs
    from regard.tasks.run import load

    opened = load(arguments.run)
    samples = known_pairs(Path(arguments.run), opened.recipe, opened.tokenizer, opened.source_tokenizer)
    certificate = export_ctranslate2(
        arguments.run, arguments.out, precision=arguments.precision, samples=samples
    )  # fmt: skip
    print(
        f"exported {arguments.run} into {arguments.out} (CTranslate2 {certificate.version}, {certificate.precision}); "
        f"on {certificate.samples} {'pairs' if samples else 'random sources'} log-probabilities differ by at most "
        f"{certificate.logp_largest:.2g}, greedy answers are the same for {certificate.greedy_equal:.0%}, "
        f"those of a beam of 4 for {certificate.beam_equal:.0%}"
    )
    for each in certificate.not_carried:
        print(f"not the same there: {each}")
    return 0
