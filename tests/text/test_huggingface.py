"""Tokenisers of imported models: transformers' ids, from every form that it saves, and back from a run."""

import json

import numpy as np
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, trainers
from transformers import BertTokenizerFast, GPT2TokenizerFast

from regard.errors import InputError
from regard.text import load_tokenizer, read_huggingface_tokenizer

TEXTS = [
    "Hello, unbelievably large wörld!", "", "don't  look\tnow\n", "日本語 text", "a" * 120,
    "[SEP] [MASK] <|endoftext|>", "naïve café 🙂",
]  # fmt: skip
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", ",", "un", "##bel", "##ie", "##va", "##bly", "large",
          "world", "!", "don", "'", "t", "look", "now", "naive", "cafe", "[", "]", "sep", "mask"]  # fmt: skip


@pytest.fixture
def bert(tmp_path_factory):
    """A folder with a tiny WordPiece tokeniser as transformers saves it, and that tokeniser."""
    tmp_path = tmp_path_factory.mktemp("bert")
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES), encoding="utf-8")
    theirs = BertTokenizerFast.from_pretrained(str(tmp_path))
    theirs.save_pretrained(str(tmp_path))
    return tmp_path, theirs


@pytest.fixture
def gpt2(tmp_path_factory):
    """The same of byte-level BPE."""
    tmp_path = tmp_path_factory.mktemp("gpt2")
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet,
                                  show_progress=False)  # fmt: skip
    inner.train_from_iterator(["hello world, hello there"] * 3, trainer)
    inner.model.save(str(tmp_path))
    theirs = GPT2TokenizerFast.from_pretrained(str(tmp_path))
    theirs.save_pretrained(str(tmp_path))
    return tmp_path, theirs


def test_wordpiece_gives_transformers_ids(bert):
    folder, theirs = bert
    ours = read_huggingface_tokenizer(folder)
    for text in TEXTS:
        right = theirs(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        assert ours.encode(text) == right
    assert [row.tolist() for row in ours.encode_all(TEXTS)] == [ours.encode(text) for text in TEXTS]
    names = ours.specials
    assert [names.pad, names.unknown, names.begin, names.end, names.mask] == [0, 1, 2, 3, 4]
    ids = ours.encode("Unbelievably large")
    assert [ours.piece(id) for id in ids] == ["un", "##bel", "##ie", "##va", "##bly", "large"]
    assert ours.decode([2, *ids, 1, 3]) == "unbelievably large ⁇"
    assert ours.words(ids) == [0, 0, 0, 0, 0, 1]


def test_byte_level_bpe_gives_transformers_ids_and_any_text_back(gpt2):
    folder, theirs = gpt2
    ours = read_huggingface_tokenizer(folder)
    for text in TEXTS[:5] + TEXTS[6:]:
        assert ours.encode(text) == theirs(text)["input_ids"]
    for text in TEXTS:
        assert ours.decode(ours.encode(text)) == text
    end = theirs.eos_token_id
    assert {ours.specials.pad, ours.specials.unknown, ours.specials.begin, ours.specials.end} == {end}
    assert end not in ours.encode("<|endoftext|>")
    assert ours.decode([end]) == ""
    assert ours.piece(ours.encode(" hello")[0]).startswith("▁")


def test_older_forms_give_the_same(bert, gpt2):
    for folder, _ in (bert, gpt2):
        whole = read_huggingface_tokenizer(folder)
        (folder / "tokenizer.json").unlink()
        older = read_huggingface_tokenizer(folder)
        assert [older.encode(text) for text in TEXTS] == [whole.encode(text) for text in TEXTS]
        assert older.specials == whole.specials


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_what_is_saved_is_loaded_with_the_models_size(kind, request, tmp_path):
    folder, _ = request.getfixturevalue(kind)
    ours = read_huggingface_tokenizer(folder, size=512)
    out = tmp_path / "run"
    out.mkdir()
    assert ours.save(out).name == "tokens.json"
    loaded = load_tokenizer(out)
    assert (loaded.size, loaded.specials) == (512, ours.specials)
    assert [loaded.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]
    assert [loaded.piece(id) for id in range(512)] == [ours.piece(id) for id in range(512)]
    assert loaded.piece(511) == "<511>"
    assert loaded.decode([511]) == ""
    sampled = loaded.sample_all(["hello"], 0.5, np.random.default_rng(1))
    assert sampled[0].tolist() == loaded.encode("hello")


def test_filling_up_and_cutting_off_in_the_file_are_set_aside(bert):
    folder, _ = bert
    plain = read_huggingface_tokenizer(folder)
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["truncation"] = {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    content["padding"] = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                          "pad_type_id": 0, "pad_token": "[PAD]"}  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    cut = read_huggingface_tokenizer(folder)
    assert [cut.encode(text) for text in TEXTS] == [plain.encode(text) for text in TEXTS]


def test_what_is_wrong_is_told(bert, tmp_path):
    folder, _ = bert
    with pytest.raises(InputError, match="has 26 ids, but the model 20"):
        read_huggingface_tokenizer(folder, size=20)
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    with pytest.raises(InputError, match="has no tokeniser: neither tokenizer"):
        read_huggingface_tokenizer(nothing)
    (nothing / "tokenizer.json").write_text('{"model": {"type": "Unigram", "vocab": []}}', encoding="utf-8")
    with pytest.raises(InputError, match="its model is 'Unigram'"):
        read_huggingface_tokenizer(nothing)
    (nothing / "tokenizer.json").write_text("[1", encoding="utf-8")
    with pytest.raises(InputError, match="not JSON"):
        read_huggingface_tokenizer(nothing)
