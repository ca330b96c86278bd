"""`regard translate`: lines in, lines out, in order."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from regard.cli.options import add_decoding_options, overrides

if TYPE_CHECKING:
    from regard.config import DecodingConfig
    from regard.tasks.run import Run
    from regard.tasks.translation import Translation
    from regard.tasks.translator import Asked, Translator, Wanted

EPILOG = """
examples:
  echo "Je suis étudiant." | regard translate runs/fr-en
  regard translate runs/fr-en news.fr -o news.en --nbest 3 --alignments --format jsonl
  regard translate runs/fr-en --samples 32 --mbr true --top-p 0.9 < news.fr
  regard translate runs/fr-en page.fr --keep-markup --keep Regard --glossary terms.tsv

in text, a line is a line; with --nbest it is LINE, SCORE and TEXT between tabs; --alignments adds 0-0 1-2 behind a tab
with --input jsonl each line is an object: text, and as wanted tag, prefix and phrases
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("file", metavar="FILE", nargs="?", help="text, a line for a line; without it standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the translations go; without it standard output")
    parser.add_argument("--tag", metavar="TAG", help="for a model of several directions, such as <2tr>")
    parser.add_argument("--ensemble", metavar="RUN", nargs="+", default=[], help="runs that write together with it")
    parser.add_argument(
        "--workers", type=int, metavar="INT", help="threads that translate side by side; without it one a processor"
    )
    told = parser.add_argument_group("what is told")
    told.add_argument("--nbest", type=int, metavar="INT", default=1, help="translations of each line")
    told.add_argument("--alignments", action="store_true", help="which words of the source each word comes from")
    told.add_argument("--confidence", action="store_true", help="how sure the model is, calibrated (in jsonl)")
    told.add_argument("--tree", action="store_true", help="every candidate of the search (in jsonl)")
    told.add_argument("--format", choices=("text", "jsonl"), default="text", help="lines, or an object a line")
    read = parser.add_argument_group("how lines are read")
    read.add_argument("--input", choices=("text", "jsonl"), default="text", help="lines, or an object a line")
    read.add_argument(
        "--errors", choices=("replace", "strict"), default="strict",
        help="what becomes of a line that is not UTF-8: U+FFFD for what cannot be read, or an end with an error",
    )  # fmt: skip
    read.add_argument("--split", action="store_true", help="translate each sentence of a line by itself")
    read.add_argument("--keep", metavar="TERM", nargs="+", default=[], help="terms that are not translated")
    read.add_argument("--keep-markup", action="store_true", help="keep tags and addresses as they are")
    read.add_argument(
        "--glossary", metavar="FILE", help="a term, a tab, and what has to be written where it stands, a line each"
    )
    add_decoding_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Translate block by block, so that long input streams."""
    from regard.cli.feed import blocks
    from regard.errors import InputError
    from regard.tasks.run import load

    if arguments.format == "text" and (arguments.tree or arguments.confidence):
        raise InputError("--tree and --confidence need --format jsonl")
    wanted = _wanted(arguments)
    opened = load(arguments.run)
    decoding = _decoding(opened, arguments)
    translator = opened.ensemble([load(other) for other in arguments.ensemble], workers=_workers(arguments))
    where = arguments.file or "standard input"
    notes = _Notes()
    notes.say(f"regard: precision: {translator.writer(decoding)[1]}")
    with ExitStack() as stack:
        target = stack.enter_context(open(arguments.output, "w", encoding="utf-8")) if arguments.output else sys.stdout
        done = 0
        for held, wrong in blocks(arguments.file, replace_errors=arguments.errors == "replace"):
            for error in wrong:
                notes.say(f"regard: {error}")
            asked: list[Asked] = []
            failed: InputError | None = None
            for row, line in enumerate(held, done + 1):
                try:
                    asked.append(_asked(line, arguments, f"{where}, line {row}"))
                except InputError as error:
                    failed = error
                    break
            _translate(translator, asked, decoding, wanted, arguments, done, where, target, notes)
            if failed:
                raise failed
            done += len(held)
            notes.progress(done)
    notes.close()
    return 0


def _translate(
    translator: "Translator", asked: Sequence["Asked"], decoding: "DecodingConfig", wanted: "Wanted",
    arguments: argparse.Namespace, done: int, where: str, target: IO[str], notes: "_Notes",
) -> None:  # fmt: skip
    """One block, written as it is wanted; a line that cannot be translated is an error behind those before it."""
    from regard.tasks.translator import TextError

    try:
        found = translator.translate(asked, decoding, wanted, place=lambda row: f"{where}, line {done + row + 1}")
        wrong = None
    except TextError as error:
        found, wrong = translator.translate(asked[: error.row], decoding, wanted), error
    for row, (each, answers) in enumerate(zip(asked, found, strict=False), done + 1):
        notes.see(row, answers[0])
        for line in _written(row, each.text, answers, arguments):
            print(line, file=target)
    target.flush()
    if wrong:
        raise wrong


def _written(
    number: int, source: str, answers: Sequence["Translation"], arguments: argparse.Namespace
) -> Iterator[str]:
    if arguments.format == "jsonl":
        nbest = [_plain(answer) for answer in answers]
        more = {"nbest": nbest} if arguments.nbest > 1 else {}
        yield json.dumps({"line": number, "source": source, **nbest[0], **more}, ensure_ascii=False)
        return
    for answer in answers:
        text = answer.text.replace("\n", " ")
        if arguments.nbest > 1:
            text = f"{number}\t{answer.score:.4f}\t{text}"
        if arguments.alignments:
            text += f"\t{answer.alignment.pharaoh() if answer.alignment else ''}"
        yield text


def _plain(answer: "Translation") -> dict[str, object]:
    """A translation as an object: what was not asked for is left out."""
    plain: dict[str, object] = {
        "text": answer.text, "score": answer.score, "logp": answer.logp, "tokens": answer.tokens,
        "ended": answer.ended, "guarded": answer.guarded,
    }  # fmt: skip
    if answer.confidence is not None:
        plain["confidence"] = answer.confidence
    if answer.alignment is not None:
        aligned = answer.alignment
        plain["alignment"] = {
            "words": aligned.words, "source_words": aligned.source_words, "target_words": aligned.target_words,
            "pieces": aligned.pieces, "source": aligned.source,
            "weights": [[round(weight, 4) for weight in row] for row in aligned.weights],
        }  # fmt: skip
    if answer.tree is not None:
        plain["tree"] = answer.tree.to_plain()
    return plain


def _wanted(arguments: argparse.Namespace) -> "Wanted":
    from regard.errors import InputError
    from regard.tasks.translator import Wanted

    if arguments.nbest < 1:
        raise InputError(f"--nbest = {arguments.nbest}: must be 1 or more")
    return Wanted(
        nbest=arguments.nbest, alignments=arguments.alignments, confidence=arguments.confidence, tree=arguments.tree,
        keep=tuple(arguments.keep), markup=arguments.keep_markup, split=arguments.split,
        glossary=_glossary(arguments.glossary) if arguments.glossary else {},
    )  # fmt: skip


def _workers(arguments: argparse.Namespace) -> int | None:
    from regard.errors import InputError

    if arguments.workers is not None and arguments.workers < 1:
        raise InputError(f"--workers = {arguments.workers}: must be 1 or more")
    workers: int | None = arguments.workers
    return workers


def _decoding(opened: "Run", arguments: argparse.Namespace) -> "DecodingConfig":
    """The recipe's options with those stated."""
    from dataclasses import replace

    from regard.errors import InputError

    stated = overrides(arguments).get("decoding", {})
    if "beam" in stated and "groups" not in stated and int(str(stated["beam"])) % opened.recipe.decoding.groups:
        stated["groups"] = 1
    try:
        return replace(opened.recipe.decoding, **stated)  # type: ignore[arg-type]  # each was read as its key's type
    except InputError as error:
        raise InputError(str(error).replace("decoding.", "--", 1)) from None


def _asked(line: str, arguments: argparse.Namespace, place: str) -> "Asked":
    from regard.errors import InputError
    from regard.tasks.translator import Asked

    if arguments.input == "text" or not line.strip():
        return Asked(text=line, tag=arguments.tag)
    try:
        values = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place}: not JSON: {error}") from None
    known = {"text": str, "tag": str, "prefix": str, "phrases": list}
    if not isinstance(values, Mapping) or "text" not in values:
        raise InputError(f'{place}: must be an object with a "text"')
    for name, value in values.items():
        if name not in known or not isinstance(value, known[name]):
            raise InputError(
                f"{place}: {name} = {value!r}: must be one of text, tag, prefix (strings), phrases (a list)"
            )
    return Asked(
        text=values["text"], tag=values.get("tag", arguments.tag), prefix=values.get("prefix", ""),
        phrases=tuple(map(str, values.get("phrases", ()))),
    )  # fmt: skip


def _glossary(file: str) -> dict[str, str]:
    from regard.errors import InputError
    from regard.text import lines

    found = {}
    for number, line in enumerate(lines(Path(file)), 1):
        term, tab, target = line.partition("\t")
        if line.strip() and not (tab and term.strip() and target.strip()):
            raise InputError(f"{file}, line {number}: {line!r}: must be a term, a tab, and its translation")
        if line.strip():
            found[term.strip()] = target.strip()
    return found


class _Notes:
    """What is said on standard error: progress on a terminal, and at the end what deserves a look."""

    def __init__(self) -> None:
        from time import monotonic

        self.guarded: list[int] = []
        self.cut: list[int] = []
        self.started, self.now = monotonic(), monotonic
        self.shown = sys.stderr.isatty() and not sys.stdout.isatty()

    def say(self, line: str) -> None:
        """A line."""
        print(f"\r\033[K{line}" if self.shown else line, file=sys.stderr)

    def see(self, line: int, answer: "Translation") -> None:
        """Remember what was done to a line; a few will do."""
        if answer.guarded:
            self.guarded.append(line)
        if not answer.ended:
            self.cut.append(line)

    def progress(self, done: int) -> None:
        """How far it is."""
        if self.shown:
            speed = done / max(1e-9, self.now() - self.started)
            print(f"\r\033[K{done:,} lines, {speed:,.0f} a second", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Say what deserves a look."""
        if self.shown:
            print(file=sys.stderr)
        for places, what in (
            (self.guarded, "runaway repetition was stopped"), (self.cut, "the limit of length was reached"),
        ):  # fmt: skip
            if places:
                shown = ", ".join(map(str, places[:10])) + (", …" if len(places) > 10 else "")
                print(f"regard: {what} in {len(places):,} lines: {shown}", file=sys.stderr)
