"""Checkpoints of llama2.c: a header of whole numbers, then every weight as float32, little-endian, in a fixed order.

Version 0 has no magic: its header is the seven sizes, with a negative vocabulary where the output has a matrix of its
own. Version 1 begins with "ak42" and its version, states the sharing in a byte, and pads the header to 256 bytes.
Matrices stand as torch's Linear has them, a row for each output. The model is a Llama: pre-norm with RMSNorm, rotary
positions on neighbouring pairs (as ours turn them), grouped heads of keys and values, SwiGLU, no biases.
"""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from regard.config import DataConfig, ModelConfig, Recipe, TokensConfig
from regard.errors import InputError
from regard.interop.imported import Imported, Table, converted
from regard.text import read_llama2c_tokenizer
from regard.text.files import check_files

Version = Literal[0, 1]

TABLE: Table = {
    "token_embedding": "pieces.weight",
    "rms_att.{}": "decoder.layers.{}.attention_norm.weight",
    "wq.{}": "decoder.layers.{}.attention.project.weight",
    "wk.{}": "decoder.layers.{}.attention.project.weight",
    "wv.{}": "decoder.layers.{}.attention.project.weight",
    "wo.{}": "decoder.layers.{}.attention.join.weight",
    "rms_ffn.{}": "decoder.layers.{}.feed_forward_norm.weight",
    "w1.{}": "decoder.layers.{}.feed_forward.inner.weight",  # the gate
    "w3.{}": "decoder.layers.{}.feed_forward.inner.weight",
    "w2.{}": "decoder.layers.{}.feed_forward.outer.weight",
    "rms_final": "decoder.norm.weight",
    "freq_cis_real": None,  # cosines of the rotation, which we compute
    "freq_cis_imag": None,  # and its sines
    "wcls": "output_pieces.weight",
}

ORDER: dict[Version, tuple[str, ...]] = {
    0: (
        "token_embedding", "rms_att.{}", "wq.{}", "wk.{}", "wv.{}", "wo.{}", "rms_ffn.{}", "w1.{}", "w2.{}", "w3.{}",
        "rms_final", "freq_cis_real", "freq_cis_imag", "wcls",
    ),
    1: (
        "rms_att.{}", "rms_ffn.{}", "rms_final", "token_embedding", "wq.{}", "wk.{}", "wv.{}", "wo.{}", "w1.{}",
        "w2.{}", "w3.{}", "wcls",
    ),
}  # fmt: skip
"""What follows the header; {} stands for every layer in turn, and `wcls` is there only if it is not shared."""

_MAGIC = 0x616B3432
_SIZES = struct.Struct("<7i")
_VERSION_1 = struct.Struct("<Ii7iB")
_VERSION_1_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Header:
    """The sizes, under the names that llama2.c gives them."""

    version: Version
    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    seq_len: int
    shared: bool
    """whether embedding and output are one matrix"""

    @property
    def start(self) -> int:
        """Bytes before the first weight."""
        return _SIZES.size if self.version == 0 else _VERSION_1_BYTES

    @property
    def plausible(self) -> bool:
        """Whether there can be such a Llama: other files' first bytes do not make one."""
        sizes = (self.dim, self.hidden_dim, self.n_layers, self.n_heads, self.n_kv_heads, self.vocab_size, self.seq_len)
        return min(sizes) > 0 and self.dim % (2 * self.n_heads) == 0 and self.n_heads % self.n_kv_heads == 0

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each row of the table, a layer's where there are layers."""
        width = self.dim // self.n_heads
        keys = self.n_kv_heads * width
        return {
            "token_embedding": (self.vocab_size, self.dim),
            "rms_att.{}": (self.dim,),
            "wq.{}": (self.dim, self.dim),
            "wk.{}": (keys, self.dim),
            "wv.{}": (keys, self.dim),
            "wo.{}": (self.dim, self.dim),
            "rms_ffn.{}": (self.dim,),
            "w1.{}": (self.hidden_dim, self.dim),
            "w3.{}": (self.hidden_dim, self.dim),
            "w2.{}": (self.dim, self.hidden_dim),
            "rms_final": (self.dim,),
            "freq_cis_real": (self.seq_len, width // 2),
            "freq_cis_imag": (self.seq_len, width // 2),
            "wcls": (self.vocab_size, self.dim),
        }

    def weights(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Name and shape of each weight, in the file's order."""
        for row in ORDER[self.version]:
            if row == "wcls" and self.shared:
                continue
            for layer in range(self.n_layers if "{}" in row else 1):
                yield row.format(layer), self.shapes[row]

    @property
    def length(self) -> int:
        """Bytes of the whole file."""
        per_row = {row: math.prod(shape) * (self.n_layers if "{}" in row else 1) for row, shape in self.shapes.items()}
        rows = [row for row in ORDER[self.version] if not (row == "wcls" and self.shared)]
        return self.start + 4 * sum(per_row[row] for row in rows)

    def __str__(self) -> str:
        return (
            f"version {self.version}, dim {self.dim}, hidden_dim {self.hidden_dim}, n_layers {self.n_layers}, "
            f"n_heads {self.n_heads}, n_kv_heads {self.n_kv_heads}, vocab_size {self.vocab_size}, "
            f"seq_len {self.seq_len}, {'shared' if self.shared else 'unshared'} output"
        )


def read_llama2c(checkpoint: Path, tokenizer: Path | None = None) -> Imported:
    """The checkpoint as a model of ours, with the tokeniser of that file, or of the one that lies beside it."""
    header = read_header(checkpoint)
    cut = read_llama2c_tokenizer(tokenizer or find_tokenizer(checkpoint, header.vocab_size), size=header.vocab_size)
    config = ModelConfig(
        family="decoder-only", vocabulary=header.vocab_size, d_model=header.dim, encoder_layers=0,
        decoder_layers=header.n_layers, heads=header.n_heads, kv_heads=header.n_kv_heads, d_ff=header.hidden_dim,
        dropout=0.0, norm="pre", norm_kind="rms", norm_epsilon=1e-5, activation="swiglu", biases=False,
        positions="rotary", max_length=header.seq_len, rotary_base=10_000.0, scale_embeddings=False,
        embeddings="tied_output" if header.shared else "separate", initial="normal",
    )  # fmt: skip
    model = converted(config, read_weights(checkpoint, header), TABLE, source=str(checkpoint))
    tokens = TokensConfig(kind="bpe", size=cut.size, joint=True, byte_fallback=True)
    data = DataConfig(max_length=header.seq_len, continuous=False)
    recipe = Recipe(task="generate", data=data, tokens=tokens, model=config)
    return Imported(source=f"llama2.c version {header.version}", recipe=recipe, tokenizer=cut, model=model)


def read_header(checkpoint: Path) -> Header:
    """The header, once it is known to be one and to fit the length of the file."""
    check_files([checkpoint])
    with checkpoint.open("rb") as file:
        first = file.read(_VERSION_1_BYTES)
    found = checkpoint.stat().st_size
    if first.startswith(b"PK\x03\x04"):
        raise InputError(f"{checkpoint}: a zip archive, as torch.save writes with a pickle in it, which is never read")
    header = _header(first, checkpoint)
    if not header.plausible:
        raise InputError(f"{checkpoint}: not a llama2.c checkpoint: its header would be {header}")
    if found != header.length:
        raise InputError(
            f"{checkpoint}: expected {header.length:,} bytes, found {found:,}: "
            f"{'cut off' if found < header.length else 'too long'}, or no llama2.c checkpoint of {header}"
        )
    return header


def _header(first: bytes, checkpoint: Path) -> Header:
    """The header that the first bytes would be."""
    versioned = first[:4] == struct.pack("<I", _MAGIC)
    needed = _VERSION_1_BYTES if versioned else _SIZES.size
    if len(first) < needed:
        raise InputError(
            f"{checkpoint}: expected {needed} bytes of header, found {len(first)}: cut off, or not llama2.c"
        )
    version: Version = 0
    if versioned:
        _, stated, *sizes, flag = _VERSION_1.unpack_from(first)
        if stated != 1 or flag > 1:
            said = f"version {stated}" if stated != 1 else f"{flag} for a shared output, not 0 or 1"
            raise InputError(
                f"{checkpoint}: its header says {said}; llama2.c's versions 0 and 1 (float32) can be imported"
            )
        version, shared = 1, flag == 1
    else:
        sizes = list(_SIZES.unpack_from(first))
        shared = sizes[5] > 0
        sizes[5] = abs(sizes[5])
    dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len = sizes
    return Header(
        version=version, dim=dim, hidden_dim=hidden_dim, n_layers=n_layers, n_heads=n_heads, n_kv_heads=n_kv_heads,
        vocab_size=vocab_size, seq_len=seq_len, shared=shared,
    )  # fmt: skip


def read_weights(checkpoint: Path, header: Header) -> dict[str, Tensor]:
    """Every weight under the name of its table row; they stay in the file until they are used."""
    # Mode c is a private copy of each page that is written: torch takes no memory that it may not write.
    values = np.memmap(checkpoint, dtype="<f4", mode="c", offset=header.start)
    weights: dict[str, Tensor] = {}
    place = 0
    for name, shape in header.weights():
        count = math.prod(shape)
        part = np.asarray(values[place : place + count]).astype(np.float32, copy=False)
        weights[name] = torch.from_numpy(part).reshape(shape)
        place += count
    return weights


def find_checkpoint(path: Path) -> Path:
    """The checkpoint that a path means: the file, or a folder's one .bin file that is no tokeniser."""
    if not path.is_dir():
        return path
    found = sorted(set(path.glob("*.bin")) - set(path.glob("tok*.bin")))
    if len(found) != 1:
        names = ", ".join(file.name for file in found)
        raise InputError(f"{path}: {f'holds {names}; name one of them' if found else 'holds no checkpoint (.bin)'}")
    return found[0]


def find_tokenizer(checkpoint: Path, vocabulary: int) -> Path:
    """The tokeniser beside a checkpoint: tokN.bin of its own size first, for tokenizer.bin is often Llama's."""
    folder = checkpoint.parent
    others = [file for file in sorted(folder.glob("tok*.bin")) if file != checkpoint]
    for name in (f"tok{vocabulary}.bin", "tokenizer.bin"):
        if folder / name in others:
            return folder / name
    if len(others) != 1:
        found = f"there are {', '.join(file.name for file in others)}" if others else "there is none"
        raise InputError(
            f"{checkpoint}: needs its tokeniser beside it, tok{vocabulary}.bin or tokenizer.bin; {found}; "
            "or name the file with --tokenizer"
        )
    return others[0]
