"""The command line: finds the command, calls it, and turns what comes of it into an exit code.

0 done; 2 the input is wrong (one line on standard error); 130 interrupted; 1 anything else. Nothing here imports torch:
a command's module is imported when it is called or its help is asked for, and imports what is heavy in its `run`.
"""

import errno
import os
import sys
from collections.abc import Sequence

from regard.cli.commands import COMMANDS, module_of, overview, parser_of
from regard.errors import InputError, WorkError, nearest

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and answer with its exit code."""
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        print(end="", flush=True)  # here and not at exit, where a broken pipe could no longer be caught
        return code
    except InputError as error:
        print("regard:", " ".join(str(error).splitlines()), file=sys.stderr)
        return 2
    except WorkError as error:
        print("regard:", " ".join(str(error).splitlines()), file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader has left, as head does. The interpreter flushes once more at exit: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        place = f" ({error.filename})" if error.filename else ""
        print(f"regard: the disk is full{place}: make room, and run the same command again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("regard: interrupted", file=sys.stderr)
        return 130


def _run(words: list[str]) -> int:
    match words:
        case [] | ["-h" | "--help", *_]:
            print(overview())
            return 0
        case ["--version", *_]:
            from importlib.metadata import version  # 20 ms that no other command needs

            print("regard", version("regard"))
            return 0
    name, rest = words[0], words[1:]
    if name.startswith("-"):
        raise InputError(f"unknown option {name}: {nearest(name, ['--help', '--version'])}")
    if name not in COMMANDS:
        raise InputError(f"unknown command {name!r}: {nearest(name, COMMANDS)}")
    parser = parser_of(name)
    try:
        arguments = parser.parse_args(rest)
    except SystemExit:  # argparse's way out after --help; what is wrong comes as an InputError
        return 0
    return module_of(name).run(arguments)
