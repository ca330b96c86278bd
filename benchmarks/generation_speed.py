"""How fast text is written, beside transformers' `generate`: the same weights, the same prompts, one run.

    python benchmarks/generation_speed.py [--batches 1 32] [--new 128] [--layers 12]

Random weights in the shape of GPT-2 (12 layers, 768 wide, 50,257 pieces), the same for transformers' model; prompts of
128 random pieces, 128 new ones each, greedy. Both sides take all processors. transformers runs in float32 and in bf16
(dynamic cache, torch's fused attention, inference mode), regard in float32, bf16 and int8 by its compiled kernel. Each
way writes 8 pieces to warm up and is then timed `--repeats` times; the best counts, reading the prompt included,
loading and packing not. The float32 texts of both sides must be equal, or the benchmark fails. Ends with one line of
JSON.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence

import torch
from language_models import gpt2

from regard.config import ModelConfig, model_preset
from regard.decoding import step_model
from regard.decoding.stream import Sampling, write_on
from regard.models import DecoderOnly, build_model

PROMPT = 128
END = -1
"""no piece: nobody stops early"""

Write = Callable[[Sequence[Sequence[int]], int], list[list[int]]]


def main() -> None:
    """Time every way at every batch and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    config = model_preset("gpt2", decoder_layers=arguments.layers, dropout=0.0)
    model = build_model(config).eval()
    assert isinstance(model, DecoderOnly)
    ways = {**regard_ways(model), **transformers_ways(model, config)}
    print(
        f"threads {torch.get_num_threads()}, torch {torch.__version__}, {arguments.layers} layers, {arguments.new} new"
    )
    results: dict[int, dict[str, float]] = {}
    for batch in arguments.batches:
        prompts = torch.randint(50_257, (batch, PROMPT)).tolist()
        results[batch] = timed(ways, prompts, arguments.new, arguments.repeats)
        told(batch, results[batch], arguments.new)
    print(json.dumps({"layers": arguments.layers, "prompt": PROMPT, "new": arguments.new, "seconds": results}))


def timed(ways: dict[str, Write], prompts: Sequence[Sequence[int]], new: int, repeats: int) -> dict[str, float]:
    """Seconds of each way; the float32 texts are compared."""
    seconds = dict.fromkeys(ways, float("inf"))
    texts: dict[str, list[list[int]]] = {}
    for name, write in ways.items():
        write(prompts, min(8, new))
        for _ in range(repeats):
            start = time.perf_counter()
            texts[name] = write(prompts, new)
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    if texts["regard float32"] != texts["transformers float32"]:
        raise SystemExit("the float32 texts of regard and transformers differ")
    return seconds


def told(batch: int, seconds: dict[str, float], new: int) -> None:
    """A table for people."""
    fastest = {
        side: min((time, name) for name, time in seconds.items() if name.startswith(side))
        for side in ("regard", "transformers")
    }
    print(f"\nbatch {batch}: pieces a second; float32 texts are equal")
    for name, time_taken in seconds.items():
        print(f"  {name:<24}{batch * new / time_taken:>9,.1f}")
    ratio = fastest["transformers"][0] / fastest["regard"][0]
    print(f"  {fastest['regard'][1]} is {ratio:.2f} times as fast as {fastest['transformers'][1]}")


def regard_ways(model: DecoderOnly) -> dict[str, Write]:
    """Ours, as `regard generate --precision` runs it."""

    def way(kind: str) -> Write:
        steps = step_model(model, kind, threads=torch.get_num_threads())  # type: ignore[arg-type]

        def write(prompts: Sequence[Sequence[int]], new: int) -> list[list[int]]:
            texts: list[list[int]] = [[] for _ in prompts]
            for written in write_on(
                steps, prompts, sampling=Sampling(temperature=0), limits=[new] * len(prompts), end=END,
                context=model.config.max_length,
            ):  # fmt: skip
                for row, id, _ in written:
                    texts[row].append(id)
            return texts

        return write

    return {f"regard {kind}": way(kind) for kind in ("float32", "bf16", "int8")}


def transformers_ways(model: DecoderOnly, config: ModelConfig) -> dict[str, Write]:
    """transformers' GPT-2 with the same weights."""

    def way(dtype: torch.dtype) -> Write:
        peer = gpt2(config)
        peer.load_state_dict(carried(model), strict=False)
        peer = peer.eval().to(dtype)

        def write(prompts: Sequence[Sequence[int]], new: int) -> list[list[int]]:
            ids = torch.tensor(prompts)
            with torch.inference_mode():
                found = peer.generate(  # type: ignore[operator]
                    ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, pad_token_id=0,
                )  # fmt: skip
            texts: list[list[int]] = found[:, ids.shape[1] :].tolist()
            return texts

        return write

    return {"transformers float32": way(torch.float32), "transformers bf16": way(torch.bfloat16)}


def carried(model: DecoderOnly) -> dict[str, torch.Tensor]:
    """The weights under transformers' names, by the table that imports read."""
    from regard.interop.gpt2 import TABLE

    own = model.state_dict()
    weights: dict[str, torch.Tensor] = {}
    for theirs, ours in TABLE.items():
        for layer in range(model.config.decoder_layers if "{}" in theirs else 1):
            if ours is None:
                continue
            weight = own[ours.format(layer)]
            turned = weight.dim() == 2 and theirs.startswith("h.")
            weights[f"transformer.{theirs.format(layer)}"] = weight.t().contiguous() if turned else weight
    return {**weights, "lm_head.weight": own["pieces.weight"]}


if __name__ == "__main__":
    main()
