"""How fast JoeyNMT and eole train, by their own trainers and their own account; `train_speed.py` calls this.

Neither starts as installed, each for want of a module, so each gets an environment of its own (CPU builds of torch):

    python -m venv JOEY && JOEY/bin/pip install torch==2.13.0 joeynmt==2.3.0 importlib_metadata sentencepiece==0.1.99
    python -m venv EOLE && EOLE/bin/pip install torch==2.13.0 eole==0.6.4 aiohttp
    python benchmarks/train_speed.py --joeynmt JOEY/bin/python --eole EOLE/bin/eole

The pieces, sizes, dropout, smoothing and the budget of a batch are those of the other sides, as each counts them: both
take the longer side of a pair, and JoeyNMT puts pairs of any lengths together. JoeyNMT has float32 only on a processor;
eole's bf16 is `use_amp`. A figure is the mean of the target pieces a second that the trainer reports, padding left out,
without its first report.
"""

import json
import re
import statistics
import subprocess
from itertools import islice
from pathlib import Path

from regard.config import ModelConfig
from regard.tasks.translate import TranslateJob

BUDGET = 4096
"""pieces of a batch, padding included"""
REPORTS = 4
"""the first is not counted"""
UPDATES = {"small": 5, "base": 2}
"""of each report"""


def peer_speeds(
    job: TranslateJob, config: ModelConfig, preset: str, folder: Path, *, joeynmt: str | None, eole: str | None
) -> dict[str, float]:
    """What each that is given reports at this size; `joeynmt` is a Python that has it, `eole` its command."""
    write_pieces(job, folder)
    every = UPDATES[preset]
    speeds = {}
    if joeynmt:
        path = written(joeynmt_settings(config, folder, every), folder)
        speeds["JoeyNMT float32"] = reported([joeynmt, "-m", "joeynmt", "train", path, "-t"], r"per Sec:\s+(\d+)")
    for name, dtype in (("bf16", "bf16"), ("float32", "fp32")) if eole else ():
        path = written(eole_settings(config, folder, every, dtype), folder)
        speeds[f"eole {name}"] = reported([str(eole), "train", "-config", path], r"/\s*(\d+) tok/s")
    return speeds


def write_pieces(job: TranslateJob, folder: Path) -> None:
    """The training text, a word for each piece, a little of it to watch, and the vocabulary of both sides."""
    for side, rows in (("source", job.store.source), ("target", job.store.target)):
        lines = [" ".join(f"p{piece}" for piece in rows[row]) + "\n" for row in range(len(rows))]
        (folder / f"train.{side}").write_text("".join(lines))
        (folder / f"valid.{side}").write_text("".join(islice(lines, 100)))
    (folder / "vocabulary").write_text("".join(f"p{piece}\n" for piece in range(job.tokenizer.size)))


def joeynmt_settings(config: ModelConfig, folder: Path, every: int) -> dict[str, object]:
    """A recipe of JoeyNMT 2.3 for our model."""
    side = {
        "type": "transformer", "num_heads": config.heads, "hidden_size": config.d_model, "ff_size": config.d_ff,
        "dropout": config.dropout, "layer_norm": config.norm,
        "embeddings": {"embedding_dim": config.d_model, "scale": True, "dropout": config.dropout},
    }  # fmt: skip
    text = {"level": "word", "lowercase": False, "max_length": 500, "voc_file": str(folder / "vocabulary")}
    return {
        "name": "speed", "joeynmt_version": "2.3.0", "model_dir": str(folder / f"joeynmt-{config.d_model}"),
        "use_cuda": False, "random_seed": 1,
        "data": {
            "train": str(folder / "train"), "dev": str(folder / "valid"), "dataset_type": "plain",
            "src": {"lang": "source", **text}, "trg": {"lang": "target", **text},
        },
        "testing": {"n_best": 1, "beam_size": 1, "batch_size": BUDGET, "batch_type": "token", "eval_metrics": []},
        "training": {
            "scheduling": "noam", "optimizer": "adam", "adam_betas": [0.9, 0.98], "learning_rate": 1e-4,
            "learning_rate_min": 0.0, "clip_grad_norm": 1.0, "label_smoothing": 0.1, "normalization": "tokens",
            "batch_size": BUDGET, "batch_type": "token",
            "updates": REPORTS * every, "epochs": 1, "logging_freq": every, "validation_freq": 1000 * every,
            "overwrite": True, "shuffle": True,
        },
        "model": {
            "initializer": "xavier_uniform", "tied_embeddings": True, "tied_softmax": True,
            "encoder": {**side, "num_layers": config.encoder_layers},
            "decoder": {**side, "num_layers": config.decoder_layers},
        },
    }  # fmt: skip


def eole_settings(config: ModelConfig, folder: Path, every: int, dtype: str) -> dict[str, object]:
    """A recipe of eole 0.6 for our model."""
    vocabulary = str(folder / "vocabulary")
    return {
        "src_vocab": vocabulary, "tgt_vocab": vocabulary, "share_vocab": True, "seed": 1, "report_every": every,
        "save_data": str(folder / "eole-data"), "n_sample": 0, "overwrite": True, "transforms": [],
        "src_vocab_size": config.vocabulary, "tgt_vocab_size": config.vocabulary,
        "data": {"corpus_1": {"path_src": str(folder / "train.source"), "path_tgt": str(folder / "train.target")}},
        "training": {
            "world_size": 0, "gpu_ranks": [], "num_workers": 0, "compute_dtype": dtype, "use_amp": True,
            "batch_type": "tokens", "batch_size": BUDGET, "accum_count": [1], "bucket_size": 29_000,
            "train_steps": REPORTS * every, "valid_steps": 10_000, "save_checkpoint_steps": 10_000,
            "model_path": str(folder / f"eole-{config.d_model}-{dtype}"), "optim": "adam", "adam_beta2": 0.98,
            "learning_rate": 1e-4, "max_grad_norm": 1.0, "label_smoothing": 0.1, "dropout": [config.dropout],
            "attention_dropout": [0.0],
        },
        "model": {
            "architecture": "transformer", "hidden_size": config.d_model, "transformer_ff": config.d_ff,
            "heads": config.heads, "encoder": {"layers": config.encoder_layers},
            "decoder": {"layers": config.decoder_layers}, "share_decoder_embeddings": True, "share_embeddings": True,
            "embeddings": {"position_encoding_type": "SinusoidalInterleaved", "word_vec_size": config.d_model},
        },
    }  # fmt: skip


def written(settings: dict[str, object], folder: Path) -> str:
    """The settings as a file that a YAML reader takes."""
    path = folder / "settings.yaml"
    path.write_text(json.dumps(settings, indent=1))
    return str(path)


def reported(command: list[str], pattern: str) -> float:
    """The mean of the speeds that a trainer reports, without the first; if it reports none, its last words."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    speeds = [float(speed) for speed in re.findall(pattern, done.stdout)][1:]
    if not speeds:
        raise SystemExit(f"{' '.join(command)} reported no speed:\n{done.stdout[-2000:]}")
    return statistics.mean(speeds)
