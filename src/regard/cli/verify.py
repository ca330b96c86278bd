"""`regard verify`: the equality certificate, as a table or as JSON."""

import argparse
import json

EXAMPLE = """
examples:
  regard verify
  regard verify runs/fr-en --json

leaves with 0 if every equality holds, and with 1 if one does not
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.add_argument(
        "run", metavar="RUN", nargs="?", help="run folder whose model is verified; none: tiny models of every family"
    )
    parser.add_argument("--json", action="store_true", help="print the certificate as JSON")
    parser.add_argument("--seed", metavar="INT", type=int, default=1, help="of the random inputs and tiny models")
    parser.epilog = EXAMPLE


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, and answer whether all holds."""
    import torch

    from regard.verify import EQUALITIES, Result, built_in_subject, certify, run_subject
    from regard.verify.certificate import ending, heading, row

    def told(result: Result) -> None:
        if not arguments.json:
            print(row(result, EQUALITIES), flush=True)

    threads = torch.get_num_threads()
    try:
        if arguments.run is None:
            torch.set_num_threads(1)  # in tiny models two threads mostly wait for each other
            subject = built_in_subject(seed=arguments.seed)
        else:
            subject = run_subject(arguments.run, seed=arguments.seed)
        if not arguments.json:
            print(heading(subject, EQUALITIES), flush=True)
        certificate = certify(subject, EQUALITIES, told=told)
    finally:
        torch.set_num_threads(threads)
    print(json.dumps(certificate.to_plain(), indent=2, allow_nan=False) if arguments.json else ending(certificate))
    return 0 if certificate.held else 1
