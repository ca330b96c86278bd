"""`regard demo`: in a few minutes, without any download, a translator of one's own and the head that reads "it"."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.demo.course import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.add_argument("--out", metavar="DIR", default="runs/demo", help="folder of the run (default: runs/demo)")
    parser.add_argument(
        "--minutes", type=float, metavar="NUMBER", default=3.0, help="longest training; it needs 2 to 3 (default: 3)"
    )
    parser.add_argument("--no-browser", action="store_true", help="only write the page, do not open it")


def run(arguments: argparse.Namespace) -> int:
    """Do all of it, print what came of it, and open the page where there is somebody to see it."""
    import os
    import sys
    import webbrowser
    from pathlib import Path

    from regard.cli.progress import Screen
    from regard.errors import InputError

    if arguments.minutes <= 0:
        raise InputError(f"--minutes = {arguments.minutes}: must be above 0")
    from regard.demo.course import run_demo
    from regard.explorer.report import write_report

    folder = Path(arguments.out)
    with Screen() as screen:
        outcome = run_demo(folder, minutes=arguments.minutes, watcher=screen)
    if outcome is None:
        screen.say("stopped and saved; the same command goes on")
        return 130
    print(described(outcome))
    page = write_report(folder).resolve()
    print(f"\nThe page of this run: {page}")
    seen = sys.stdout.isatty() and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.name == "nt"
                                    or sys.platform == "darwin")  # fmt: skip
    if seen and not arguments.no_browser:
        webbrowser.open(page.as_uri())
    return 0


def described(outcome: "Outcome") -> str:
    """The outcome as text for a terminal."""
    names = {"en-fr": "English to French", "fr-en": "French to English", "en-tr": "English to Turkish", "all": "all"}
    lines = ["", "Held-out combinations translated word for word:"]
    lines += [f"  {names[direction]:<19} {share:6.1%}" for direction, share in outcome.exact.items()]
    lines += ["", "The lectures' sentences:"]
    for pair, made in outcome.lectures:
        lines += [f"  {pair.source}", f"    {made}" + ("" if made == pair.target else f"   (should be: {pair.target})")]
    found = outcome.found
    part, layer, head = found.head
    place = (
        "the encoder, where it is read" if part == "encoder.self" else "the decoder, where il or elle is chosen for it"
    )
    as_animal, as_place = found.means
    lines += [
        "",
        f'The head in which "it" looks most at what it stands for: head {head} of layer {layer} (counted from 0)',
        f"in {place}. Mean weights in held-out sentences:",
        "                             the animal  the place  the adjective",
        f'  where "it" is the animal  {as_animal[0]:11.2f} {as_animal[1]:10.2f} {as_animal[2]:14.2f}',
        f'  where "it" is the place   {as_place[0]:11.2f} {as_place[1]:10.2f} {as_place[2]:14.2f}',
    ]
    for text, row in outcome.rows:
        lines += ["", f"  {text}"]
        lines += [f"    {word:>10} {weight:5.2f} {'█' * round(40 * weight)}" for word, weight in row if weight >= 0.005]
    return "\n".join(lines)
