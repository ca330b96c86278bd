"""What `regard translate` holds while lines come through a pipe: its memory must not grow with them.

    python benchmarks/translate_memory.py RUN [--lines 100000] [--source FILE]

Lines are the run's test text (or `--source`), again and again. The process has answered one line before its memory is
first looked at, so that figure is Python, torch and the model; then it is looked at four times a second. Ends with one
line of JSON. Linux only: it reads /proc.
"""

import argparse
import gzip
import json
import subprocess
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from threading import Thread

from regard.config import read_recipe


def main() -> None:
    """Translate, and look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--source", help="text to repeat; without it the run's data.test")
    parser.add_argument("--beam", default="5")
    arguments = parser.parse_args()
    file = Path(arguments.source or read_recipe(Path(arguments.run) / "recipe.toml").data.test[0])
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    texts = data.splitlines(keepends=True)
    command = [sys.executable, "-m", "regard", "translate", arguments.run, "--beam", arguments.beam]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(texts[0])
    process.stdin.flush()
    process.stdout.readline()
    loaded = _held(process.pid)
    start = time.perf_counter()
    writer = Thread(target=_feed, args=(process.stdin, texts, arguments.lines - 1), daemon=True)
    writer.start()
    looks: list[tuple[int, float]] = []
    answered, due = 1, 0.0
    for _ in process.stdout:
        answered += 1
        if time.perf_counter() >= due:
            due = time.perf_counter() + 0.25
            looks.append((answered, _held(process.pid)))
    seconds = time.perf_counter() - start
    if process.wait() or answered != arguments.lines:
        raise SystemExit(f"{answered:,} of {arguments.lines:,} lines came back, exit code {process.returncode}")
    quarters = [
        max((held for line, held in looks if k * arguments.lines < 4 * line <= (k + 1) * arguments.lines), default=0.0)
        for k in range(4)
    ]
    found = {
        "lines": arguments.lines, "lines/s": round(arguments.lines / seconds), "MiB with the model": round(loaded),
        "most MiB in each quarter": [round(each) for each in quarters],
        "most MiB above the model": round(max(quarters) - loaded),
    }  # fmt: skip
    for name, value in found.items():
        print(f"{name:<28}{value}")
    print(json.dumps(found))


def _feed(target: object, texts: list[bytes], count: int) -> None:
    """The texts again and again."""
    for text in islice(cycle(texts), count):
        target.write(text)  # type: ignore[attr-defined]
    target.close()  # type: ignore[attr-defined]


def _held(process: int) -> float:
    """MiB that a process holds in memory."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    main()
