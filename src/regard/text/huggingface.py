"""Tokenisers of imported models: a tokenizer.json as Hugging Face's `tokenizers` writes it, carried along and run.

Two kinds are known, by their pieces: WordPiece (BERT), where a piece without ## begins a word, and byte-level BPE
(GPT-2), where each character of a piece stands for a byte. What the file says of filling up and cutting off is set
aside, and special pieces never come from text. A normaliser may change text (BERT's lower case), so that it does not
come back exactly. Needs the extra [huggingface].
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import InputError
from regard.text.files import write_sealed
from regard.text.tokenizer import UNKNOWN_TEXT, Ids, Specials, Tokenizer, check_unicode, unknown_tag

KIND, FORMAT = "huggingface", 1
_NAMES = {"pad": "pad_token", "unknown": "unk_token", "begin": "cls_token", "end": "sep_token", "mask": "mask_token"}
"""specials of ours, and what BERT's files call them; GPT-2's begin and end are bos_token and eos_token"""


class HuggingFaceTokenizer(Tokenizer):
    """A tokenizer.json with the ids of its specials; `size` is the model's, where it has more ids than pieces."""

    def __init__(self, content: Mapping[str, Any], specials: Specials, *, size: int | None = None) -> None:
        self._content = {**content, "padding": None, "truncation": None}
        self._inner = _inner(self._content)
        self._inner.encode_special_tokens = True  # what looks like a special piece in a text is text
        named: dict[str, int] = self._inner.get_vocab(with_added_tokens=True)
        own = max(named.values(), default=-1) + 1
        if size is not None and size < own:
            raise InputError(f"the tokeniser has {own:,} ids, but the model {size:,}")
        self._pieces = [""] * max(own, size or 0)
        for piece, id in named.items():
            self._pieces[id] = piece
        self._bytes = _byte_level(content)
        added = {int(row["id"]) for row in content.get("added_tokens") or [] if row.get("special")}
        silent = added | {specials.pad, specials.begin, specials.end}
        surfaces = [
            None if id in silent or not piece else self._bytes_of(piece) for id, piece in enumerate(self._pieces)
        ]  # fmt: skip
        prefix = "" if self._bytes else " "
        if specials.unknown not in (specials.pad, specials.begin, specials.end):
            surfaces[specials.unknown] = (prefix + UNKNOWN_TEXT).encode()
        super().__init__(specials=specials, tags=(), surfaces=surfaces, prefix=prefix)

    def encode(self, text: str, *, continued: bool = False) -> list[int]:
        """The text's ids."""
        check_unicode(text)
        ids: list[int] = self._inner.encode(text, add_special_tokens=False).ids
        return ids

    def encode_all(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of many texts, on several threads."""
        for text in texts:
            check_unicode(text)
        found = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(one.ids, dtype=np.int32) for one in found]

    def sample_all(self, texts: Sequence[str], strength: float, rng: np.random.Generator) -> list[Ids]:
        """There is one way to cut only: the same as `encode_all`."""
        return self.encode_all(texts)

    def piece(self, id: int) -> str:
        """The piece: WordPiece's as it is named, of bytes their text with ▁ for a space."""
        surface = self._surface(id)
        if not self._bytes or surface is None:
            return self._pieces[id] or f"<{id}>"
        try:
            return surface.decode().replace(" ", "▁")
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in surface)

    def tag_id(self, tag: str) -> int:
        """There are no tags."""
        raise unknown_tag(tag, self.tags)

    def save(self, folder: str | Path, name: str = "tokens") -> Path:
        """Write NAME.json, in which the tokenizer.json stands under its own key."""
        path = Path(folder) / f"{name}.json"
        content = {
            "format": FORMAT, "kind": KIND, "size": self.size, "specials": asdict(self.specials),
            "tokenizer": self._content,
        }  # fmt: skip
        write_sealed(path, (json.dumps(content, ensure_ascii=False) + "\n").encode())
        return path

    def _bytes_of(self, piece: str) -> bytes:
        if self._bytes:
            return bytes(self._bytes[character] for character in piece) if set(piece) <= set(self._bytes) else b""
        return piece[2:].encode() if piece.startswith("##") else f" {piece}".encode()


def huggingface_tokenizer(content: Mapping[str, Any]) -> HuggingFaceTokenizer:
    """The tokeniser in a file that `save` wrote."""
    if content["format"] > FORMAT:
        raise InputError(f"format {content['format']} is newer than this program's, {FORMAT}; update it")
    return HuggingFaceTokenizer(content["tokenizer"], Specials(**content["specials"]), size=int(content["size"]))


def read_huggingface_tokenizer(folder: str | Path, *, size: int | None = None) -> HuggingFaceTokenizer:
    """The tokeniser of a folder as transformers saves it: tokenizer.json, or BERT's vocab.txt, or GPT-2's two files.

    `size` is the number of ids that the model has.
    """
    place = Path(folder)
    settings = {**_json(place / "special_tokens_map.json"), **_json(place / "tokenizer_config.json")}
    content = _json(place / "tokenizer.json")
    if not content and (place / "vocab.txt").is_file():
        content = _from_vocabulary(place / "vocab.txt", settings)
    if not content and (place / "vocab.json").is_file() and (place / "merges.txt").is_file():
        content = _from_merges(place)
    if not content:
        raise InputError(
            f"{place}: has no tokeniser: neither tokenizer.json, nor vocab.txt, nor vocab.json, merges.txt"
        )
    try:
        _check_kind(content)
        return HuggingFaceTokenizer(content, _specials(content, settings), size=size)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _inner(content: Mapping[str, Any]) -> Any:
    """The tokeniser of `tokenizers`."""
    _check_kind(content)
    try:
        import tokenizers
    except ImportError:
        raise InputError("this tokeniser is run by the package tokenizers: pip install 'regard[huggingface]'") from None
    try:
        return tokenizers.Tokenizer.from_str(json.dumps(content))
    except Exception as error:  # what the library raises has no type of its own
        raise InputError(f"tokenizer.json: cannot be read: {error}") from None


def _check_kind(content: Mapping[str, Any]) -> None:
    """Refuse kinds whose pieces we cannot read."""
    kind = content.get("model", {}).get("type")
    if kind != "WordPiece" and not (kind == "BPE" and _byte_level(content)):
        raise InputError(
            f"tokenizer.json: its model is {kind!r}; WordPiece (BERT) and byte-level BPE (GPT-2) are known"
        )
    if kind == "WordPiece" and content["model"].get("continuing_subword_prefix", "##") != "##":
        raise InputError("tokenizer.json: WordPiece with another sign than ## for what goes on is not known")


def _byte_level(content: Mapping[str, Any]) -> dict[str, int]:
    """What byte each character stands for, where pieces are made of bytes; else nothing.

    Printable characters stand for themselves, and the other bytes in turn for those from U+0100 on (GPT-2).
    """
    if content.get("model", {}).get("type") != "BPE" or "ByteLevel" not in json.dumps(content.get("decoder")):
        return {}
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + place): byte for place, byte in enumerate(others)}


def _specials(content: Mapping[str, Any], settings: Mapping[str, Any]) -> Specials:
    """The ids of the specials; GPT-2 has one piece that does all of it."""
    ids: dict[str, int] = {row["content"]: int(row["id"]) for row in content.get("added_tokens") or []}
    ids |= {piece: int(id) for piece, id in content["model"]["vocab"].items()}

    def id_of(*names: str) -> int | None:
        for name in names:
            stated = settings.get(name)
            piece = stated.get("content") if isinstance(stated, dict) else stated
            if isinstance(piece, str) and piece in ids:
                return ids[piece]
        return None

    usual = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    if content["model"]["type"] == "WordPiece":
        settings = {**usual, "mask_token": "[MASK]", **settings}
        found = {ours: id_of(theirs) for ours, theirs in _NAMES.items()}
        missing = [_NAMES[ours] for ours, id in found.items() if id is None and ours != "mask"]
        if missing:
            raise InputError(f"the tokeniser has no {', '.join(missing)}")
        return Specials(**{ours: id for ours, id in found.items() if id is not None})
    settings = {"eos_token": "<|endoftext|>", **settings}
    end = id_of("eos_token")
    if end is None:
        raise InputError("the tokeniser has no eos_token")
    one = {"pad": id_of("pad_token"), "unknown": id_of("unk_token"), "begin": id_of("bos_token")}
    return Specials(end=end, mask=id_of("mask_token"), **{ours: end if id is None else id for ours, id in one.items()})


def _from_vocabulary(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """BERT's older form: a piece a line, and a few settings."""
    pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    usual = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    vocabulary = {piece: id for id, piece in enumerate(pieces)}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": vocabulary[piece], "special": True, "content": piece, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False}
            for piece in usual if piece in vocabulary
        ],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "lowercase": bool(settings.get("do_lower_case", True)),
            "handle_chinese_chars": bool(settings.get("tokenize_chinese_chars", True)),
            "strip_accents": settings.get("strip_accents"),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary,
        },
    }  # fmt: skip


def _from_merges(folder: Path) -> dict[str, Any]:
    """GPT-2's older form: the pieces' ids and the merges, best first."""
    vocabulary = _json(folder / "vocab.json")
    lines = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()
    end = "<|endoftext|>"
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": vocabulary[end], "special": True, "content": end, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False}
        ] if end in vocabulary else [],
        "normalizer": None,
        "pre_tokenizer": bytes_,
        "post_processor": None,
        "decoder": bytes_,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [line.split(" ") for line in lines if line.strip() and not line.startswith("#version")],
        },
    }  # fmt: skip


def _json(path: Path) -> dict[str, Any]:
    """A file's object; empty if there is no such file."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object")
    return content
