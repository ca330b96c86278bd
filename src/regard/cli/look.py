"""`regard look`: the explorer, live in the browser or as one HTML file."""

import argparse

EPILOG = """
examples:
  regard look runs/fr-en
  regard look runs/fr-en "Je suis étudiant." "Elle est fatiguée."
  regard look runs/fr-en "Je suis étudiant." --target "I am a student."
  regard look runs/fr-en "Je suis étudiant." --html page.html
  regard look runs/fr-en "Je suis étudiant." --against runs/other --at "view=matrix&layer=1&heads=0"

the live page is answered on this machine only; the file needs neither regard nor a network
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="what is read; without one the page asks for it")
    parser.add_argument("--target", metavar="TEXT", help="what is written; without it what the model writes itself")
    parser.add_argument("--tag", metavar="TAG", help="for a model of several directions, such as <2tr>")
    parser.add_argument("--beam", type=int, metavar="NUMBER", help="of the search; without it as the recipe says")
    parser.add_argument("--against", metavar="RUN", help="another run, to be looked at beside it")
    parser.add_argument("--html", metavar="FILE", help="write one file that works from disk, instead of serving")
    parser.add_argument(
        "--at", metavar="PLACE", default="", help="where the page begins: what its address has behind #"
    )
    parser.add_argument("--port", type=int, metavar="NUMBER", default=0, help="of the live page (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(arguments: argparse.Namespace) -> int:
    """Write the file, or serve until interrupted."""
    from regard.errors import InputError
    from regard.explorer.looks import Question
    from regard.explorer.pages import state_at, write_page
    from regard.tasks.run import load

    texts, html = arguments.texts, arguments.html
    if arguments.target is not None and len(texts) != 1:
        raise InputError(f"--target: belongs to one TEXT, {len(texts)} are given")
    if html and not texts:
        raise InputError("--html: a file holds what was looked at; name at least one TEXT")
    runs = [load(folder) for folder in (arguments.run, arguments.against) if folder is not None]
    questions = [Question(text=text, target=arguments.target, tag=arguments.tag, beam=arguments.beam) for text in texts]
    state = state_at(arguments.at)
    if html:
        print(write_page(runs[0], questions, html, state=state, against=runs[1] if len(runs) > 1 else None))
        return 0
    from regard.explorer.live import serve

    try:
        serve(runs, questions, state=state, port=arguments.port, browser=not arguments.no_browser)
    except KeyboardInterrupt:
        print()  # behind the terminal's ^C; this is how it ends
    return 0
