"""What the compiled passes of a bf16 step save: with them and without, in turns within one process.

    python benchmarks/fused_passes.py [--presets tiny small base] [--turns 4]

First causal attention alone, on one thread, beside torch's fused kernel: the least of several calls, in microseconds.
Then whole updates on the batches of `train_speed.py`: of each batch the least time of all turns. Ends with one line of
JSON.
"""

import argparse
import json
import time
from collections.abc import Callable
from itertools import islice

import torch
import torch.nn.functional as F
from train_speed import batches, prepare, regard_side

from regard.config import model_preset
from regard.nn import blocks, dropout, fused, loss
from regard.training.precision import keep_memory

SHAPES = ((12, 4, 64, 32), (270, 8, 15, 64), (8, 4, 256, 64), (4, 8, 512, 64))
"""rows, heads, tokens, width"""
BATCHES = {"tiny": 10, "small": 6, "base": 3}


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=list(BATCHES))
    parser.add_argument("--turns", type=int, default=4)
    arguments = parser.parse_args()
    if fused.library() is None:
        raise SystemExit("no compiled passes here: a C compiler and a processor with bf16 instructions are needed")
    keep_memory()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    attention = {str(shape): alone(*shape) for shape in SHAPES}
    torch.set_num_threads(threads)
    job, source = prepare()
    found = {}
    for preset in arguments.presets:
        step = regard_side(torch.bfloat16)(model_preset(preset, vocabulary=job.tokenizer.size))
        given = list(islice(batches(job), BATCHES.get(preset, 3)))
        step(given[0], given[0].tokens)
        least: dict[bool, list[float]] = {True: [9e9] * len(given), False: [9e9] * len(given)}
        for _ in range(arguments.turns):
            for with_passes in (True, False):
                switch(with_passes)
                for number, batch in enumerate(given):
                    start = time.perf_counter()
                    step(batch, batch.tokens)
                    least[with_passes][number] = min(least[with_passes][number], time.perf_counter() - start)
        switch(True)
        found[preset] = round(sum(least[False]) / sum(least[True]), 3)
        print(f"{preset}: {found[preset]:.2f} times as fast with the passes", flush=True)
    print(json.dumps({"data": source, "threads": threads, "attention": attention, "updates": found}))


FITS = fused.fits


def switch(with_passes: bool) -> None:
    """Let the model take the passes, or the plain ways."""
    answer = FITS if with_passes else lambda x, **_: False
    for module in (fused, blocks, loss, dropout):
        module.fits = answer


def alone(rows: int, heads: int, tokens: int, width: int) -> dict[str, int]:
    """Microseconds of both, forward and then forward and backward."""
    projected = torch.randn(rows, tokens, 3 * heads * width).bfloat16().requires_grad_()
    q, k, v = fused.apart(projected, 3, heads)
    found = {}
    for name, attend in (
        ("compiled", lambda: fused.fused_attention(q, k, v, None, None, width**-0.5, causal=True)),
        ("torch", lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    ):
        gradient = torch.randn_like(attend())
        found[name] = least_of(attend, 10)
        found[f"{name}, both ways"] = least_of(
            lambda attend=attend, gradient=gradient: torch.autograd.grad(attend(), projected, gradient), 4
        )
    print(f"{rows} rows, {heads} heads, {tokens} tokens, {width} wide: {found}", flush=True)
    return found


def least_of(call: Callable[[], object], times: int) -> int:
    """Microseconds of the quickest call, after one that is not counted."""
    call()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return round(1e6 * min(taken))


if __name__ == "__main__":
    main()
