"""`regard embed`: lines in, their vectors out, in order."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EPILOG = """\
examples:
  regard import all-MiniLM-L6-v2 --out runs/minilm
  regard embed runs/minilm sentences.txt --format npy -o sentences.npy

an empty line's vector is all zeros
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State what the command takes."""
    parser.epilog = EPILOG
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("file", metavar="FILE", nargs="?", help="texts, a line each; without it standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the vectors go; without it standard output")
    parser.add_argument(
        "--pooling", choices=("mean", "first"),
        help="of the pieces' states: their mean, or the first one (default: the model's own)",
    )  # fmt: skip
    parser.add_argument("--raw", action="store_true", help="leave the vectors' lengths as they are, instead of 1")
    parser.add_argument(
        "--format", choices=("jsonl", "npy"), default="jsonl",
        help="a line with text and vector for each, or one array of float32 (to a file)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Embed block by block, so that long input streams."""
    import sys
    from contextlib import ExitStack
    from itertools import islice

    from regard.cli.classify import tell_faults
    from regard.errors import InputError
    from regard.tasks.run import load
    from regard.text import lines, lines_of

    if arguments.format == "npy" and not arguments.output:
        raise InputError("--format npy: an array is no text; say -o FILE")
    embedder = load(arguments.run).embedder
    blank, blocks = 0, []
    with ExitStack() as stack:
        source = lines(arguments.file) if arguments.file else lines_of(sys.stdin.buffer, "standard input")
        written = arguments.format == "jsonl"
        target = (
            stack.enter_context(open(arguments.output, "w", encoding="utf-8"))
            if arguments.output and written else sys.stdout
        )  # fmt: skip
        while block := list(islice(source, 512 if arguments.file else 64)):
            blank += sum(not line.strip() for line in block)
            vectors = embedder.embed(block, pooling=arguments.pooling, normalise=not arguments.raw).numpy()
            if not written:
                blocks.append(vectors)
                continue
            for line, vector in zip(block, vectors.tolist(), strict=True):
                values = [float(f"{value:.8g}") for value in vector]
                print(json.dumps({"text": line, "vector": values}, ensure_ascii=False), file=target)
            target.flush()
    if not written:
        _write_array(Path(arguments.output), blocks, embedder.reader.model.config.d_model)
    tell_faults(blank, embedder.reader.cut, embedder.reader.room, "have vectors of zeros")
    return 0


def _write_array(path: Path, blocks: list["NDArray[np.float32]"], width: int) -> None:
    """One array of all vectors, whole or not at all."""
    import io

    import numpy as np

    from regard.text.files import write_whole

    buffer = io.BytesIO()
    np.save(buffer, np.concatenate(blocks) if blocks else np.zeros((0, width), np.float32), allow_pickle=False)
    write_whole(path, buffer.getvalue())
