"""`regard demo`: in a few minutes, without any download, a translator of one's own and the head that reads "it"."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.demo.course import Outcome
    from regard.explorer.looks import Question

PAGE = "explorer.html"
"""the explorer's file in the run's folder"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.add_argument("--out", metavar="DIR", default="runs/demo", help="folder of the run (default: runs/demo)")
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="NUMBER",
        default=3.2,
        help="longest training (default: 3.2); all else takes half a minute",
    )
    parser.add_argument("--no-browser", action="store_true", help="only write the pages, do not open them")


def run(arguments: argparse.Namespace) -> int:
    """Do all of it, print what came of it, and open the page where there is somebody to see it."""
    import os
    import sys
    from pathlib import Path

    from regard.cli.progress import Screen
    from regard.errors import InputError

    if arguments.minutes <= 0:
        raise InputError(f"--minutes = {arguments.minutes}: must be above 0")
    from regard.demo.course import run_demo
    from regard.demo.page import outcome_section
    from regard.explorer.live import serve
    from regard.explorer.pages import write_page
    from regard.explorer.report import write_report
    from regard.tasks.run import load

    folder = Path(arguments.out)
    with Screen() as screen:
        outcome = run_demo(folder, minutes=arguments.minutes, watcher=screen)
    if outcome is None:
        screen.say("stopped and saved; the same command goes on")
        return 130
    print(described(outcome))
    print(f"\nThe report of this run: {write_report(folder, outcome_section(outcome)).resolve()}")
    run, questions, state = load(folder), lecture_questions(outcome.found.place[0]), place_of(outcome)
    print(f"What its heads look at:  {write_page(run, questions, folder / PAGE, state=state).resolve()}")
    seen = sys.stdout.isatty() and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.name == "nt"
                                    or sys.platform == "darwin")  # fmt: skip
    if arguments.no_browser or not seen:
        print(f"The same live:           regard look {folder}")
        return 0
    try:
        serve([run], questions, state=state)
    except KeyboardInterrupt:
        print()  # behind the terminal's ^C; this is how it ends
    return 0


def lecture_questions(tag: str) -> "list[Question]":
    """The sentences that the explorer begins with, two of them with this tag, and a beam that has something to show."""
    from regard.demo.course import TIRED, WIDE, tag_of
    from regard.demo.grammar import LECTURE_SENTENCES
    from regard.explorer.looks import Question

    student = next(pair for pair in LECTURE_SENTENCES if pair.source.startswith("Je suis"))
    asked = [(TIRED, tag), (WIDE, tag), (student.source, tag_of(student.direction))]
    return [Question(text=text, tag=its, beam=4) for text, its in asked]


def place_of(outcome: "Outcome") -> dict[str, str]:
    """Where the explorer begins: at "it" in the head that looks at what it stands for."""
    _, (part, layer, number) = outcome.found.place
    head = {"layer": str(layer), "heads": str(number), "head": str(number), "row": str(outcome.step)}
    return {"view": "heads", "part": part, **head}


def described(outcome: "Outcome") -> str:
    """The outcome as text for a terminal."""
    from regard.demo.course import DIRECTIONS_NAMED, where_of

    lines = ["", "Held-out combinations translated word for word:"]
    lines += [
        f"  {DIRECTIONS_NAMED[direction]:<19} {share:6.1%} of {outcome.tested[direction]:,}"
        for direction, share in outcome.exact.items()
    ]
    lines += ["", "The lectures' sentences:"]
    for direction in dict.fromkeys(pair.direction for pair, _ in outcome.lectures):
        lines.append(f"  {DIRECTIONS_NAMED[direction]}")
        for pair, made in outcome.lectures:
            if pair.direction == direction:
                wrong = "" if made == pair.target else f"   (should be: {pair.target})"
                lines += [f"    {pair.source}", f"      {made}{wrong}"]
    found = outcome.found
    as_animal, as_place = found.means
    lines += [
        "",
        f"The head in which “it” looks most at what it stands for: {where_of(found.place)}.",
        f"In {found.right:.0%} of {found.sentences} held-out sentences that noun outweighs the other. Mean weights:",
        "                             the animal  the place  the adjective",
        f"  where “it” is the animal  {as_animal[0]:11.2f} {as_animal[1]:10.2f} {as_animal[2]:14.2f}",
        f"  where “it” is the place   {as_place[0]:11.2f} {as_place[1]:10.2f} {as_place[2]:14.2f}",
    ]
    for text, row in outcome.rows:
        lines += ["", f"  {text}"]
        lines += [f"    {word:>10} {weight:5.2f} {'█' * round(40 * weight)}" for word, weight in row if weight >= 0.005]
    return "\n".join([*lines, "", f"All of it took {outcome.seconds / 60:.1f} minutes."])
