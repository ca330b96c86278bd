"""Training a language model beside an equal plain GPT and transformers' GPT-2: `train_speed.py --task generate`.

Characters of tiny Shakespeare, nanoGPT's setting for a processor: 4 layers, 4 heads, 128 wide, 12 windows of 64 an
update, 2,000 updates, no dropout, AdamW at 1e-3 with a cosine after 100 updates, decay of 0.1, clipping at 1, the last
tenth of the text held out. The peers train in a plain loop, in float32 and in bf16 autocast; ours is `regard train`,
journal, checkpoint and its validation at the end included in its time. All are then scored by one function: nats a
character over the whole held out text, in windows of 64 side by side.
"""

import gzip
import json
import os
import tempfile
import time
from collections.abc import Callable
from math import cos, pi
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig


class PlainBlock(nn.Module):
    """Pre-norm: attention, then a feed-forward network, each added to the stream."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The stream after the block."""
        rows, length, width = x.shape
        q, k, v = self.qkv(self.norm_1(x)).split(width, dim=2)
        q, k, v = (side.view(rows, length, self.heads, width // self.heads).transpose(1, 2) for side in (q, k, v))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).reshape(rows, length, width))
        summed: Tensor = x + self.down(F.gelu(self.up(self.norm_2(x))))
        return summed


class PlainGPT(nn.Module):
    """A GPT as a tutorial would write it: learned positions, tied head, torch's fused attention."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.vocabulary is not None
        self.pieces = nn.Embedding(config.vocabulary, config.d_model)
        self.positions = nn.Embedding(config.max_length, config.d_model)
        self.blocks = nn.ModuleList(
            PlainBlock(config.d_model, config.heads, config.d_ff) for _ in range(config.decoder_layers)
        )
        self.norm = nn.LayerNorm(config.d_model)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                near_end = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * config.decoder_layers) ** 0.5 if near_end else 0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits."""
        x = self.pieces(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.pieces.weight)


def gpt2(config: ModelConfig) -> nn.Module:
    """transformers' GPT-2 of the same size, without dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    assert config.vocabulary is not None
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.vocabulary, n_positions=config.max_length, n_embd=config.d_model,
            n_layer=config.decoder_layers, n_head=config.heads, n_inner=config.d_ff,
            activation_function="gelu_new", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None,
            eos_token_id=None,
        )
    )  # fmt: skip


UPDATES, ROWS, WINDOW = 2000, 12, 64


def compare_language_models(*, updates: int = UPDATES) -> None:
    """Train all sides, one after another, and print the table and a line of JSON."""
    ids, source, folder = characters()
    config = ModelConfig(
        family="decoder-only", vocabulary=int(ids.max()) + 1, d_model=128, heads=4, decoder_layers=4, d_ff=512,
        dropout=0.0, norm="pre", activation="gelu", positions="learned", max_length=WINDOW, embeddings="tied_output",
        scale_embeddings=False, biases=False, initial="normal",
    )  # fmt: skip
    print(f"data {source}, threads {torch.get_num_threads()}, torch {torch.__version__}, {updates:,} updates")
    results: dict[str, dict[str, float]] = {}
    for precision in ("bf16", "float32"):
        results[f"regard {precision}"] = ours(folder, precision, ids, updates)
    for name, build in (("plain GPT", PlainGPT), ("transformers GPT-2", gpt2)):
        for autocast in (False, True):
            torch.manual_seed(1)
            results[f"{name} {'bf16 autocast' if autocast else 'float32'}"] = peer(
                build(config), ids, updates, autocast=autocast
            )
    best = results["regard bf16"]["seconds"]
    for name, found in results.items():
        ratio = found["seconds"] / best
        print(f"  {name:<32}{found['seconds']:7.1f} s   loss {found['loss']:.3f}   regard bf16 takes 1/{ratio:.2f}")
    print(json.dumps({"task": "generate", "data": source, "updates": updates, "results": results}))


def characters() -> tuple[np.ndarray, str, Path]:
    """The text as ids of characters, what it is, and a folder with it as a file."""
    folder = Path(tempfile.mkdtemp())
    data = Path(os.environ.get("REGARD_DATA", "../shared/data")) / "shakespeare" / "input.txt.gz"
    if data.exists():
        text, source = gzip.decompress(data.read_bytes()).decode(), "tiny Shakespeare"
    else:
        from regard.demo.grammar import corpus

        text = "".join(f"{pair.source}\n" for pair in corpus(size=60_000).train)
        source = "the demonstration's grammar, for Shakespeare is not there"
    (folder / "input.txt").write_text(text, encoding="utf-8")
    return np.unique(np.array(list(text)), return_inverse=True)[1], source, folder


def ours(folder: Path, precision: str, ids: np.ndarray, updates: int) -> dict[str, float]:
    """Seconds of `regard train`, and the loss on the held out text."""
    from regard.config import recipe_from
    from regard.runs import open_run
    from regard.tasks.start import train

    recipe = recipe_from(
        {
            "task": "generate",
            "data": {"train": [str(folder / "input.txt")], "valid_share": 0.1, "max_length": WINDOW},
            "tokens": {"kind": "char", "byte_fallback": False},
            "model": {
                "d_model": 128, "heads": 4, "decoder_layers": 4, "d_ff": 512, "dropout": 0.0, "norm": "pre",
                "activation": "gelu", "positions": "learned", "max_length": WINDOW, "embeddings": "tied_output",
                "scale_embeddings": False, "biases": False, "initial": "normal",
            },
            "training": {
                "steps": updates, "valid_every": updates, "tokens_per_batch": ROWS * WINDOW, "warmup": 100,
                "final_rate": 0.1, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0.1, "precision": precision,
            },
        }
    )  # fmt: skip
    start = time.perf_counter()
    train(recipe, folder / precision)
    seconds = time.perf_counter() - start
    stored = open_run(folder / precision)
    text = (folder / "input.txt").read_text(encoding="utf-8")
    own = np.array(stored.tokenizer.encode(text))
    assert len(own) == len(ids)
    model = stored.model
    return {"seconds": seconds, "loss": held_out_loss(lambda x: model.logits(model(x)), own)}


def peer(model: nn.Module, ids: np.ndarray, updates: int, *, autocast: bool) -> dict[str, float]:
    """Seconds of a plain loop, and the loss on the held out text."""

    def logits(tokens: Tensor) -> Tensor:
        found = model(tokens)
        result: Tensor = found if isinstance(found, Tensor) else found.logits
        return result

    learned = torch.from_numpy(ids[: round(len(ids) * 0.9)])
    groups = [[p for p in model.parameters() if (p.dim() >= 2) is decays] for decays in (True, False)]
    optimizer = torch.optim.AdamW(
        [{"params": groups[0], "weight_decay": 0.1}, {"params": groups[1], "weight_decay": 0.0}],
        lr=1e-3, betas=(0.9, 0.99), fused=True,
    )  # fmt: skip
    model.train()
    start = time.perf_counter()
    for step in range(1, updates + 1):
        places = torch.randint(len(learned) - WINDOW, (ROWS,)).tolist()
        x = torch.stack([learned[place : place + WINDOW] for place in places])
        y = torch.stack([learned[place + 1 : place + WINDOW + 1] for place in places])
        fallen = 0.5 * (1 + cos(pi * max(0, step - 100) / max(1, updates - 100)))
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * step / 100 if step < 100 else 1e-4 + 9e-4 * fallen
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(logits(x).flatten(0, 1).float(), y.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    seconds = time.perf_counter() - start
    model.eval()
    return {"seconds": seconds, "loss": held_out_loss(logits, ids)}


@torch.no_grad()
def held_out_loss(logits: Callable[[Tensor], Tensor], ids: np.ndarray) -> float:
    """Nats a character over the last tenth of the text, in windows side by side."""
    held = torch.from_numpy(ids[round(len(ids) * 0.9) :])
    windows = (len(held) - 1) // WINDOW
    x = held[: windows * WINDOW].view(windows, WINDOW)
    y = held[1 : windows * WINDOW + 1].view(windows, WINDOW)
    total = 0.0
    for start in range(0, windows, 128):
        found = logits(x[start : start + 128]).flatten(0, 1)
        total += float(F.cross_entropy(found, y[start : start + 128].flatten(), reduction="sum"))
    return total / (windows * WINDOW)
