"""How fast training is, beside transformers' Marian and torch's own nn.Transformer: same data, same batches, one run.

    python benchmarks/train_speed.py [--presets small base] [--seconds 30] [--joeynmt PYTHON] [--eole COMMAND]
    python benchmarks/train_speed.py --task generate [--updates 2000]

Multi30k French to English if it is there (`REGARD_DATA`, or ../shared/data), else sentences of the demonstration's
grammar. Batches are regard's own: 4,096 target pieces, padding included. Each side trains for `--seconds` after a
warm-up of a few updates, in turns, twice; the better turn counts. A figure is non-padding target pieces a second, all
of an update included: forward, loss smoothed by 0.1, backward, clipping, Adam. The peers run as their users would run
them: float32, and bf16 autocast. eole and JoeyNMT train by their own trainers, where `train_peers.py` says how they are
installed. Ends with one line of JSON.
"""

import argparse
import gzip
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from language_models import compare_language_models
from train_peers import BUDGET, peer_speeds

from regard.config import ModelConfig, TrainingConfig, model_preset, recipe_from
from regard.data import BatchStream, PairBatch
from regard.models import EncoderDecoder, build_model
from regard.tasks.translate import TranslateJob
from regard.training.optimizer import FlatAdam
from regard.training.precision import keep_memory, product_rate

Step = Callable[[PairBatch, int], None]


def main() -> None:
    """Run all sides at each size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["translate", "generate"], default="translate")
    parser.add_argument("--updates", type=int, default=2000, help="of --task generate")
    parser.add_argument("--presets", nargs="+", default=["small", "base"])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--joeynmt", metavar="PYTHON", help="of an environment that has JoeyNMT")
    parser.add_argument("--eole", metavar="COMMAND", help="eole, in an environment of its own")
    arguments = parser.parse_args()
    keep_memory()
    if arguments.task == "generate":
        return compare_language_models(updates=arguments.updates)
    rate = product_rate(torch.bfloat16, torch.device("cpu"), rows=4096)
    job, source = prepare()
    conditions = {
        "data": source, "threads": torch.get_num_threads(), "torch": torch.__version__,
        "bf16 GFLOP/s": round(rate / 1e9), "seconds": arguments.seconds, "target pieces a batch": BUDGET,
    }  # fmt: skip
    print(", ".join(f"{name} {value}" for name, value in conditions.items()))
    results: dict[str, dict[str, float]] = {}
    for preset in arguments.presets:
        config = model_preset(preset, vocabulary=job.tokenizer.size)
        speeds: dict[str, float] = {}
        for _ in range(2):
            for name, build in SIDES.items():
                torch.manual_seed(1)
                speed = measure(build(config), batches(job), arguments.seconds)
                speeds[name] = max(speed, speeds.get(name, 0.0))
        with tempfile.TemporaryDirectory() as folder:
            speeds |= peer_speeds(job, config, preset, Path(folder), joeynmt=arguments.joeynmt, eole=arguments.eole)
        results[preset] = speeds
        flops = step_flops(config)
        print(f"\n{preset}: non-padding target pieces a second")
        for name, speed in speeds.items():
            ratio = speeds["regard bf16"] / speed
            print(f"  {name:<28}{speed:>8,.0f}   regard bf16 is {ratio:4.2f} times as fast")
        share = speeds["regard bf16"] * flops / rate
        print(f"  share of the processor's bf16 products that regard bf16 reaches: {share:.0%}")
        speeds["share of bf16 products"] = share
    print(json.dumps({"conditions": conditions, "results": results}))


def prepare() -> tuple[TranslateJob, str]:
    """The data as regard prepares it, and where it is from."""
    folder = Path(tempfile.mkdtemp())
    data = Path(os.environ.get("REGARD_DATA", "../shared/data")) / "multi30k"
    names = {side: folder / f"train.{side}" for side in ("fr", "en")}
    if data.exists():
        for side, path in names.items():
            path.write_bytes(gzip.decompress((data / f"train.{side}.gz").read_bytes()))
        source = "Multi30k fr-en"
    else:
        from regard.demo.grammar import corpus

        pairs = [pair for pair in corpus(size=87_000).train if pair.direction == "fr-en"]
        names["fr"].write_text("".join(f"{pair.source}\n" for pair in pairs), encoding="utf-8")
        names["en"].write_text("".join(f"{pair.target}\n" for pair in pairs), encoding="utf-8")
        source = "the demonstration's grammar, for Multi30k is not there"
    recipe = recipe_from({"task": "translate", "data": {"train": [str(names["fr"]), str(names["en"])]}})
    return TranslateJob(recipe, folder, print, device=torch.device("cpu")), source


def batches(job: TranslateJob) -> Iterator[PairBatch]:
    """The same batches in the same order for every side."""
    with BatchStream(job.store, tokens_per_batch=BUDGET, seed=1) as stream:
        for update in stream:
            yield update.parts[0]


def measure(step: Step, stream: Iterator[PairBatch], seconds: float) -> float:
    """Real target pieces a second, after three updates that warm up."""
    for batch in islice(stream, 3):
        step(batch, batch.tokens)
    tokens, start = 0, time.perf_counter()
    for batch in stream:
        step(batch, batch.tokens)
        tokens += batch.tokens
        if time.perf_counter() - start > seconds:
            break
    return tokens / (time.perf_counter() - start)


def regard_side(dtype: torch.dtype) -> Callable[[ModelConfig], Step]:
    """Ours, as the training loop runs it."""

    def build(config: ModelConfig) -> Step:
        from regard.nn.loss import cross_entropy

        model = build_model(config)
        assert isinstance(model, EncoderDecoder)
        optimizer = FlatAdam(model, TrainingConfig(), dtype)
        model.train()

        def step(batch: PairBatch, tokens: int) -> None:
            states = model(batch.source, batch.source_lengths, batch.target_in)
            real = (torch.arange(batch.target_in.shape[1]) < batch.target_lengths[:, None]).flatten().nonzero()[:, 0]
            weight, bias = model.output
            loss, _ = cross_entropy(
                states.flatten(0, 1)[real], batch.target_out.flatten()[real], weight, bias, smoothing=0.1
            )
            (loss / tokens).backward()
            optimizer.step(1e-4, optimizer.collect())

        return step

    return build


def peer_side(kind: str, *, autocast: bool) -> Callable[[ModelConfig], Step]:
    """A peer in a plain loop, with its own modules."""

    def build(config: ModelConfig) -> Step:
        model = marian(config) if kind == "marian" else TorchTransformer(config)
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

        def step(batch: PairBatch, tokens: int) -> None:
            seen = torch.arange(batch.source.shape[1]) < batch.source_lengths[:, None]
            targets = batch.target_out.masked_fill(
                torch.arange(batch.target_out.shape[1]) >= batch.target_lengths[:, None], -100
            )
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                if kind == "marian":
                    logits = model(
                        input_ids=batch.source, attention_mask=seen.long(), decoder_input_ids=batch.target_in,
                        use_cache=False,
                    ).logits  # fmt: skip
                else:
                    logits = model(batch.source, ~seen, batch.target_in)
                loss = F.cross_entropy(
                    logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-100, label_smoothing=0.1
                )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return step

    return build


def marian(config: ModelConfig) -> torch.nn.Module:
    """transformers' Marian of the same size."""
    from transformers import MarianConfig, MarianMTModel

    assert config.vocabulary is not None
    return MarianMTModel(
        MarianConfig(
            vocab_size=config.vocabulary, d_model=config.d_model, encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers, encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads, encoder_ffn_dim=config.d_ff, decoder_ffn_dim=config.d_ff,
            dropout=config.dropout, attention_dropout=0.0, activation_dropout=0.0, activation_function="relu",
            scale_embedding=True, max_position_embeddings=512, pad_token_id=0, eos_token_id=3,
            decoder_start_token_id=2, forced_eos_token_id=None,
        )
    )  # fmt: skip


class TorchTransformer(torch.nn.Module):
    """torch's nn.Transformer with one matrix of pieces, as its tutorial would build it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.vocabulary is not None
        self.pieces = torch.nn.Embedding(config.vocabulary, config.d_model)
        torch.nn.init.normal_(self.pieces.weight, std=config.d_model**-0.5)
        self.positions = torch.nn.Embedding(512, config.d_model)
        self.core = torch.nn.Transformer(
            config.d_model, config.heads, config.encoder_layers, config.decoder_layers, config.d_ff,
            dropout=config.dropout, batch_first=True, norm_first=config.norm == "pre",
        )  # fmt: skip

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Pieces and positions."""
        vectors: torch.Tensor = self.pieces(tokens) * self.pieces.weight.shape[1] ** 0.5
        added: torch.Tensor = vectors + self.positions.weight[: tokens.shape[1]]
        return added

    def forward(self, source: torch.Tensor, hidden: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Logits."""
        causal = torch.nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        states = self.core(
            self.embed(source), self.embed(target), tgt_mask=causal, src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden, tgt_is_causal=True,
        )  # fmt: skip
        return F.linear(states, self.pieces.weight)


def step_flops(config: ModelConfig) -> float:
    """Floating-point operations of an update for each target piece: 6 for each weight that multiplies it.

    A source piece comes with each target piece, about; attention's own products are small at these lengths.
    """
    meta = build_model(config)
    vectors = sum(p.numel() for name, p in meta.named_parameters() if p.dim() < 2 or "pieces" in name)
    weights = sum(p.numel() for p in meta.parameters()) - vectors
    assert config.vocabulary is not None
    return 6.0 * (weights + config.vocabulary * config.d_model)


SIDES: dict[str, Callable[[ModelConfig], Step]] = {
    "regard bf16": regard_side(torch.bfloat16),
    "regard float32": regard_side(torch.float32),
    "Marian bf16": peer_side("marian", autocast=True),
    "Marian float32": peer_side("marian", autocast=False),
    "nn.Transformer bf16": peer_side("torch", autocast=True),
    "nn.Transformer float32": peer_side("torch", autocast=False),
}


if __name__ == "__main__":
    main()
