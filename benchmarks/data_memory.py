"""How much memory a large corpus takes: millions of generated pairs are prepared, and a model learns from a batch.

    python benchmarks/data_memory.py [--pairs 5000000] [--tokens 4096]

The text is written by a process of its own. The other learns a tokeniser (8,000 pieces of BPE), prepares the pairs,
plans an epoch, and trains the preset `small` for one step; after each stage it prints the time and the peak of resident
memory above what a process with torch imported has. Pages of mapped files count as resident. One thread of torch's;
sentencepiece takes one for each processor it may use. Ends with one line of JSON.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LIMIT_MB = 1500
SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in ("a", "e", "i", "o", "u", "an", "er", "il")]
BLOCK = 100_000


def main() -> None:
    """Write the text, and measure in a process that has seen none of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--tokens", type=int, default=4096, help="tokens of a batch")
    parser.add_argument("--measure", metavar="DIR", help="(used by the script itself)")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(Path(arguments.measure), arguments.pairs, arguments.tokens)
        return
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        size = generate(Path(folder), arguments.pairs)
        print(f"{arguments.pairs:,} pairs, {size / 1e6:,.0f} MB of text written in {time.perf_counter() - start:.0f} s")
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--measure", folder], check=True)


def generate(folder: Path, pairs: int) -> int:
    """Sentences of 3 to 30 words from 50,000, a few of them frequent; the target says the source's words otherwise."""
    random = np.random.default_rng(0)
    lexicons = [[_word(random) for _ in range(50_000)] for _ in range(2)]
    files = [folder / "train.a", folder / "train.b"]
    with files[0].open("w") as source, files[1].open("w") as target:
        for start in range(0, pairs, BLOCK):
            lengths = 3 + np.minimum(random.poisson(9, min(BLOCK, pairs - start)), 27)
            words = np.minimum(random.zipf(1.3, int(lengths.sum())), 50_000) - 1
            ends = np.cumsum(lengths).tolist()
            for file, lexicon in zip((source, target), lexicons, strict=True):
                spelt = [lexicon[word] for word in words.tolist()]
                rows = (" ".join(spelt[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True))
                file.write("\n".join(rows) + "\n")
    return sum(file.stat().st_size for file in files)


def _word(random: np.random.Generator) -> str:
    return "".join(SYLLABLES[i] for i in random.integers(len(SYLLABLES), size=random.integers(1, 5)))


def measure(folder: Path, pairs: int, tokens: int) -> None:
    """Prepare and train one step, and print each stage."""
    import torch

    torch.set_num_threads(1)
    torch.ones(8, 8).matmul(torch.ones(8, 8)).sum().item()
    torch_mb = peak_mb()
    print(f"torch {torch.__version__} alone: {torch_mb:,.0f} MB")

    from regard.config import DataConfig, TokensConfig, model_preset
    from regard.data import BatchStream, PairStore, text_pairs
    from regard.models import EncoderDecoder
    from regard.nn.loss import cross_entropy
    from regard.text import train_tokenizer

    stages: dict[str, dict[str, float]] = {}
    start = time.perf_counter()

    def stage(name: str) -> None:
        nonlocal start
        now = time.perf_counter()
        stages[name] = {"seconds": round(now - start, 1), "peak_mb_above_torch": round(peak_mb() - torch_mb)}
        print(f"{name:>12}: {now - start:6.1f} s, peak {peak_mb() - torch_mb:6,.0f} MB above torch", flush=True)
        start = time.perf_counter()

    files = (str(folder / "train.a"), str(folder / "train.b"))
    config = DataConfig(train=files)
    texts = (text for pair in text_pairs(config, files) for text in (pair.source, pair.target))
    tokenizer = train_tokenizer(texts, TokensConfig(size=8000))
    stage("tokeniser")
    store = PairStore.open(config, tokenizer, folder=folder / "data")
    assert store.made
    stage("pairs")
    assert not PairStore.open(config, tokenizer, folder=folder / "data").made
    stage("reopened")
    with BatchStream(store, tokens_per_batch=tokens, seed=1) as stream:
        update = next(stream)
        stage("first batch")
        model = EncoderDecoder(model_preset("small", vocabulary=tokenizer.size))
        optimizer = torch.optim.AdamW(model.parameters())
        (batch,) = update.parts
        states = model(batch.source, batch.source_lengths, batch.target_in)
        real = torch.arange(states.shape[1]) < batch.target_lengths[:, None]
        loss, _ = cross_entropy(states[real], batch.target_out[real], model.target_pieces.weight)
        (loss / update.tokens).backward()
        optimizer.step()
        stage("first step")
        print(f"{update.batches:,} batches, padding", " and ".join(f"{share:.2%}" for share in update.padding))
    stored = sum(path.stat().st_size for path in (folder / "data").rglob("*") if path.is_file())
    above = stages["first step"]["peak_mb_above_torch"]
    print(f"{store.report}; {stored / 1e6:,.0f} MB stored")
    print(f"{above:,.0f} MB above torch, {'within' if above < LIMIT_MB else 'OVER'} {LIMIT_MB:,} MB")
    conditions = {"machine": platform.machine(), "cpus": len(os.sched_getaffinity(0)), "torch": torch.__version__}
    print(json.dumps({"pairs": pairs, "tokens": tokens, "torch_mb": round(torch_mb), "stages": stages, **conditions}))


def peak_mb() -> float:
    """The most memory that was ever resident here."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


if __name__ == "__main__":
    main()
