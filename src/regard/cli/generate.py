"""`regard generate`: goes on from prompts; on a terminal without one it asks for them."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.decoding.stream import Sampling
    from regard.tasks.writing import Generated, Part, Writer

EPILOG = """\
examples:
  regard generate runs/shakespeare --prompt "ROMEO:" --length 400 --temperature 0.8
  regard generate runs/stories --prompt "Once upon a time" --samples 3 --top-p 0.9 --seed 7
  regard generate runs/stories --prompt-file prompts.jsonl --temperature 0 --stop "." --json

without --prompt and --prompt-file the prompt is read from standard input; on a terminal you are asked for one after
another, and Ctrl-D ends
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("--prompt", metavar="TEXT", action="append", help="text to go on from; may be given again")
    parser.add_argument(
        "--prompt-file", metavar="FILE", help="prompts: a .jsonl has one a line, under text; another file is one"
    )
    parser.add_argument("--length", type=int, default=256, metavar="INT", help="most pieces of a text (256)")
    parser.add_argument("--samples", type=int, default=1, metavar="INT", help="texts for each prompt (1)")
    parser.add_argument(
        "--temperature", type=float, default=1.0, metavar="FLOAT",
        help="below 1 likely pieces come more often, above 1 rare ones do; 0: always the likeliest (1)",
    )  # fmt: skip
    parser.add_argument("--top-k", type=int, default=0, metavar="INT", help="only so many likeliest pieces; 0: all (0)")
    parser.add_argument(
        "--top-p", type=float, default=1.0, metavar="FLOAT",
        help="only the likeliest pieces that together have this probability (1)",
    )  # fmt: skip
    parser.add_argument(
        "--min-p", type=float, default=0.0, metavar="FLOAT",
        help="only pieces with this share of the likeliest one's probability (0)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="INT", help="the same seed gives the same texts (1)")
    parser.add_argument("--stop", metavar="TEXT", action="append", help="end before this text; may be given again")
    parser.add_argument(
        "--draft", metavar="RUN",
        help="a smaller run of the same tokeniser that guesses ahead: the texts of --precision float32, sooner",
    )  # fmt: skip
    parser.add_argument("--ahead", type=int, metavar="INT", help="pieces that the draft guesses at a time (4)")
    parser.add_argument(
        "--precision", choices=("auto", "float32", "bf16", "int8"),
        help="of the products, where the compiled kernel runs; auto takes the fastest kind that loses next to nothing "
        "(the recipe's decoding.precision)",
    )  # fmt: skip
    parser.add_argument("--only-new", action="store_true", help="leave the prompt out of what is printed")
    parser.add_argument("--logprobs", action="store_true", help="each piece with its log-probability, by the model")
    parser.add_argument("--json", action="store_true", help="for programs: a line for each text")


def run(arguments: argparse.Namespace) -> int:
    """Write, and show it as it is written."""
    import sys

    from regard.decoding.drafted import AHEAD
    from regard.decoding.stream import Sampling
    from regard.errors import InputError
    from regard.tasks.run import load

    opened = load(arguments.run)
    writer = opened.writer_in(arguments.precision or opened.recipe.decoding.precision)
    if arguments.draft is not None:
        if arguments.precision not in (None, "float32"):
            raise InputError(f"--precision {arguments.precision}: with --draft it is float32")
        writer = opened.drafted(load(arguments.draft), ahead=AHEAD if arguments.ahead is None else arguments.ahead)
    elif arguments.ahead is not None:
        raise InputError("--ahead is of a draft: name one with --draft RUN")
    sampling = Sampling(
        temperature=arguments.temperature, top_k=arguments.top_k, top_p=arguments.top_p, min_p=arguments.min_p,
        seed=arguments.seed,
    )  # fmt: skip
    prompts = _prompts(arguments)
    if prompts is None and sys.stdin.isatty():
        print(f"regard: precision: {writer.reason}", file=sys.stderr)
        return _ask(writer, sampling, arguments)
    if prompts is None:
        prompts = [sys.stdin.read().removesuffix("\n")]
    _write(writer, prompts, sampling, arguments)
    print(f"regard: precision: {writer.reason}", file=sys.stderr)
    return 0


def _prompts(arguments: argparse.Namespace) -> list[str] | None:
    """Those that are stated, if any are."""
    from regard.errors import InputError
    from regard.text import read_texts

    if arguments.prompt_file is None:
        prompts: list[str] | None = arguments.prompt
        return prompts
    found, part = list(arguments.prompt or []), ""
    for chunk in read_texts([arguments.prompt_file]):
        part += chunk.text
        if chunk.last:
            found.append(part.removesuffix("\n"))
            part = ""
    if not found:
        raise InputError(f"{arguments.prompt_file}: holds no prompt")
    return found


def _ask(writer: "Writer", sampling: "Sampling", arguments: argparse.Namespace) -> int:
    """A prompt after another, until the user ends it."""
    print("a prompt a line; Ctrl-D ends")
    while True:
        try:
            prompt = input("> ")
        except EOFError:
            print()
            return 0
        _write(writer, [prompt], sampling, arguments)


def _write(writer: "Writer", prompts: list[str], sampling: "Sampling", arguments: argparse.Namespace) -> None:
    """Texts as they come: a single one while it is written, several each when its turn has come and it is whole."""
    single = len(prompts) * arguments.samples == 1
    waiting: dict[int, Part] = {}
    shown = 0
    streamed = single and not (arguments.json or arguments.logprobs)
    if streamed and not arguments.only_new:
        print(prompts[0], end="", flush=True)
    for part in writer.stream(
        prompts, length=arguments.length, samples=arguments.samples, sampling=sampling, stop=arguments.stop or (),
        with_logp=arguments.logprobs or arguments.json,
    ):  # fmt: skip
        if streamed:
            print(part.text, end="", flush=True)
        if part.whole is None:
            continue
        waiting[part.row] = part
        while shown in waiting:
            whole = waiting.pop(shown).whole
            assert whole is not None
            _tell_unread(whole, shown // arguments.samples, writer.context)
            if streamed:
                print()
            else:
                _show(whole, shown, arguments)
            shown += 1


def _show(whole: "Generated", number: int, arguments: argparse.Namespace) -> None:
    """A whole text."""
    import json
    from dataclasses import asdict

    if arguments.json:
        sample = {"sample": number % arguments.samples} if arguments.samples > 1 else {}
        print(json.dumps({**asdict(whole), **sample}, ensure_ascii=False), flush=True)
        return
    if number:
        print("---")
    print(whole.text if arguments.only_new else whole.prompt + whole.text, flush=True)
    if arguments.logprobs:
        print("\n".join(f"{logp:9.4f}  {piece!r}" for piece, logp in zip(whole.tokens, whole.logp or (), strict=True)))


def _tell_unread(whole: "Generated", prompt: int, context: int) -> None:
    """What of a prompt was too much."""
    import sys

    if whole.unread:
        print(
            f"prompt {prompt + 1}: the first {whole.unread:,} of its pieces are not read: the model reads {context:,} "
            "at once",
            file=sys.stderr,
        )
