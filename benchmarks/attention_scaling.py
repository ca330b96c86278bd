"""How windowed attention grows with length, beside torch's fused full attention and transformers' Longformer attention.

    python benchmarks/attention_scaling.py [--window 256] [--lengths 2048 4096 …] [--repeats 3]

One row of 8 heads of 64, float32, forward and backward. Each figure comes from a process of its own, so that its peak
of memory is its own; all sides run in turn, length by length, in one call of this script. Ours and torch's are timed on
ready queries, keys and values; Longformer's module projects them itself, so beside it stands ours with the same three
projections. Longformer's window counts both sides: 2 x ours. Ends with one line of JSON.
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise

SIDES = (
    "torch full", "sliding", "sliding causal", "dilated x4", "global + sliding", "sliding, projected", "Longformer"
)  # fmt: skip
HEADS, WIDTH = 8, 64


def main() -> None:
    """Run every side at every length and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--lengths", type=int, nargs="+", default=[2048, 4096, 8192, 16384, 32768])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "LENGTH"), help="(used by the script itself)")
    arguments = parser.parse_args()
    if arguments.one:
        side, length = arguments.one
        print(json.dumps(measure(side, int(length), arguments.window, arguments.repeats)))
        return
    import torch

    conditions = {
        "machine": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "window": arguments.window,
        "heads": HEADS,
        "head width": WIDTH,
        "repeats": arguments.repeats,
    }
    print(", ".join(f"{name} {value}" for name, value in conditions.items()))
    print("seconds for forward and backward (least of the repeats), and peak memory above the inputs' process in MiB\n")
    print(f"{'length':>7}" + "".join(f"{side:>20}" for side in SIDES))
    results: dict[str, dict[int, dict[str, float]]] = {side: {} for side in SIDES}
    for length in arguments.lengths:
        cells = []
        for side in SIDES:
            command = [sys.executable, __file__, "--one", side, str(length), "--window", str(arguments.window)]
            command += ["--repeats", str(arguments.repeats)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            result = json.loads(done.stdout.splitlines()[-1])
            results[side][length] = result
            cells.append(f"{result['seconds']:>12.3f} {result['mebibytes']:>7.0f}")
        print(f"{length:>7}" + "".join(cells), flush=True)
    print()
    summary = ratios(results)
    for line, value in summary.items():
        print(f"{line}: {value:.2f}")
    print(json.dumps({"conditions": conditions, "results": results, "summary": summary}))


def ratios(results: dict[str, dict[int, dict[str, float]]]) -> dict[str, float]:
    """What the table says: how much faster, and how the window's cost grows."""
    lengths = sorted(results["sliding"])
    at = 16384 if 16384 in lengths else lengths[-1]
    seconds = {side: {length: result["seconds"] for length, result in rows.items()} for side, rows in results.items()}
    growth = [seconds["sliding"][b] / seconds["sliding"][a] for a, b in pairwise(lengths)]
    memory = {length: result["mebibytes"] for length, result in results["sliding"].items()}
    return {
        f"torch full / sliding at {at}": seconds["torch full"][at] / seconds["sliding"][at],
        f"Longformer / sliding, projected at {at}": seconds["Longformer"][at] / seconds["sliding, projected"][at],
        "sliding: most that doubling the length costs in time": max(growth, default=1.0),
        "sliding: memory at the longest over the second longest": memory[lengths[-1]] / memory[lengths[-2]],
    }


def measure(side: str, length: int, window: int, repeats: int) -> dict[str, float]:
    """Seconds of the fastest repeat and the peak of memory over what stood before the first."""
    run = build(side, length, window)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = float("inf")
    for _ in range(repeats + 1):  # the first also warms up
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        if side == "torch full" and length > 16384:
            break  # its minute says enough
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": best, "mebibytes": (after - before) / 1024}


def build(side: str, length: int, window: int) -> Callable[[], None]:
    """One forward and backward of a side."""
    import torch
    from torch.nn import functional

    from regard.nn import attention, causal, dilated, global_sliding, sliding

    torch.manual_seed(1)
    if side in ("Longformer", "sliding, projected"):
        return build_module(side, length, window)
    q, k, v = (torch.randn(1, HEADS, length, WIDTH, requires_grad=True) for _ in range(3))
    gradient = torch.randn(1, HEADS, length, WIDTH)
    masks = {
        "sliding": sliding(window),
        "sliding causal": sliding(window) & causal(),
        "dilated x4": dilated(window, 4),
        "global + sliding": global_sliding(window, [0]),
    }

    def run() -> None:
        full = side == "torch full"
        out = functional.scaled_dot_product_attention(q, k, v) if full else attention(q, k, v, masks[side])
        out.backward(gradient)
        q.grad = k.grad = v.grad = None

    return run


def build_module(side: str, length: int, window: int) -> Callable[[], None]:
    """The same with the projections of queries, keys and values."""
    import torch

    from regard.nn import attention, sliding

    d_model = HEADS * WIDTH
    x = torch.randn(1, length, d_model, requires_grad=True)
    gradient = torch.randn(1, length, d_model)
    if side == "Longformer":
        from transformers import LongformerConfig
        from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

        config = LongformerConfig(
            hidden_size=d_model,
            num_attention_heads=HEADS,
            attention_window=[2 * window],
            attention_probs_dropout_prob=0.0,
            num_hidden_layers=1,
        )
        module = LongformerSelfAttention(config, layer_id=0)
        mask = torch.zeros(1, length)
        nothing = mask != 0

        def forward() -> torch.Tensor:
            out: torch.Tensor = module(
                x, attention_mask=mask, is_index_masked=nothing, is_index_global_attn=nothing, is_global_attn=False
            )[0]
            return out

    else:
        project = torch.nn.Linear(d_model, 3 * d_model)

        def forward() -> torch.Tensor:
            q, k, v = (part.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for part in project(x).chunk(3, dim=-1))
            return attention(q, k, v, sliding(window)).transpose(1, 2).flatten(2)

    def run() -> None:
        forward().backward(gradient)
        x.grad = None

    return run


if __name__ == "__main__":
    main()
