"""How much sooner a text is written when a draft guesses ahead.

    python benchmarks/drafted_speed.py RUN DRAFT [--prompt TEXT] [--length 200] [--ahead 2 4 8]

Two runs of one tokeniser. One text at a time, as somebody who waits for it has it; greedy, and drawn at temperature
0.8. The model alone by its own steps, with the draft, and alone by the compiled kernel in each precision; all in one
run, each way once to warm up and then the best of `--repeats`. Texts with and without the draft have to be the same, or
the benchmark fails. It prints how many pieces came of each forward of the model, and ends with one line of JSON.
"""

import argparse
import json
import time
from collections.abc import Callable

import torch

from regard.decoding import PlainModel, step_model
from regard.decoding.drafted import Draft, write_drafted
from regard.decoding.stream import Sampling, Written, write_on
from regard.models import DecoderOnly
from regard.tasks.run import load

Way = Callable[[Sampling], list[int]]


def main() -> None:
    """Time every way and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("draft")
    parser.add_argument("--prompt", default="\n")
    parser.add_argument("--length", type=int, default=200)
    parser.add_argument("--ahead", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    opened, guesser = load(arguments.run), load(arguments.draft)
    opened.drafted(guesser)  # refuses other tokenisers
    sizes = {run.folder.name: sum(weight.numel() for weight in run.model.parameters()) for run in (opened, guesser)}
    print(f"weights {sizes}, threads {torch.get_num_threads()}, torch {torch.__version__}")
    counted = _Counted(opened.writer.model)
    prompt = opened.tokenizer.encode(arguments.prompt)
    ways = _ways(counted, Draft(guesser.writer.model, guesser.writer.context), prompt, arguments)
    seconds: dict[str, dict[str, float]] = {}
    for named, sampling in (("greedy", Sampling(temperature=0)), ("drawn", Sampling(temperature=0.8, seed=3))):
        seconds[named] = _timed(named, ways, sampling, counted, arguments)
    print(json.dumps({"weights": sizes, "length": arguments.length, "seconds": seconds}))


class _Counted:
    """A model whose forwards are counted."""

    def __init__(self, model: DecoderOnly) -> None:
        self.model, self.forwards = model, 0
        kept = model.step

        def step(*given: object, **more: object) -> object:
            self.forwards += 1
            return kept(*given, **more)  # type: ignore[arg-type]

        model.step = step  # type: ignore[method-assign, assignment]


def _ways(counted: _Counted, draft: Draft, prompt: list[int], arguments: argparse.Namespace) -> dict[str, Way]:
    model = counted.model
    settings = {"limits": [arguments.length], "end": -1, "context": len(prompt) + arguments.length}

    def collected(steps: "list[list[Written]]") -> list[int]:
        return [one.id for step in steps for one in step]

    ways: dict[str, Way] = {
        "alone, own steps": lambda sampling: collected(
            list(write_on(PlainModel(model), [prompt], sampling=sampling, **settings))  # type: ignore[arg-type]
        )
    }
    for ahead in arguments.ahead:
        ways[f"{ahead} ahead"] = lambda sampling, ahead=ahead: collected(  # type: ignore[misc]
            list(write_drafted(model, draft._replace(ahead=ahead), [prompt], sampling=sampling, **settings))
        )
    for kind in ("float32", "bf16", "int8"):
        steps = step_model(model, kind, threads=torch.get_num_threads())  # type: ignore[arg-type]
        ways[f"alone, compiled {kind}"] = lambda sampling, steps=steps: collected(  # type: ignore[misc]
            list(write_on(steps, [prompt], sampling=sampling, **settings))
        )
    return ways


def _timed(
    named: str, ways: dict[str, Way], sampling: Sampling, counted: _Counted, arguments: argparse.Namespace
) -> dict[str, float]:
    """Seconds of each way."""
    seconds, right = {}, ways["alone, own steps"](sampling)
    print(f"\n{named}, one text of {arguments.length} pieces")
    for name, write in ways.items():
        counted.forwards = 0
        same = write(sampling) == right
        forwards = counted.forwards
        if "ahead" in name and not same:
            raise SystemExit(f"{name}: another text is written")
        best = float("inf")
        for _ in range(arguments.repeats):
            start = time.perf_counter()
            write(sampling)
            best = min(best, time.perf_counter() - start)
        seconds[name] = best
        each = f", {arguments.length / forwards:.2f} pieces a forward" if forwards else ""
        print(f"  {name:<24}{arguments.length / best:>8,.1f} pieces/s{each}")
    return seconds


if __name__ == "__main__":
    main()
