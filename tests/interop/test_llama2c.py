"""Checkpoints of llama2.c against its forward, written out here in plain NumPy from the formulas of run.c.

The files are tiny random ones, written here; and where the data is, the real one that writes English.
"""

import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.decoding.stream import Sampling
from regard.errors import InputError
from regard.interop import import_run
from regard.interop.llama2c import ORDER, TABLE
from regard.runs import open_run
from regard.tasks.run import load

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[3] / "shared" / "data"))
REAL = DATA / "stories260K"

SIZES = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")
PRINTED = "beeb5cb46785efee81a8545300b31e396b595e5ce6f3b77db201545501981d14"
"""SHA-256 of what llama2.c's own program prints of this model: 200 steps, temperature 0, no prompt"""

TINY = dict(zip(SIZES, (24, 20, 3, 6, 2, 300, 32), strict=True))
"""heads of width 4, three to a group of keys"""


@pytest.fixture(autouse=True)
def one_thread():
    """Steps of one row are too small to share: beside other work two threads take 26 seconds, where one takes 0.5."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def shapes(sizes):
    """Every weight of the file, all layers of it in one array."""
    dim, hidden, layers, heads, kv_heads, vocabulary, length = (sizes[name] for name in SIZES)
    width = dim // heads
    return {
        "token_embedding": (vocabulary, dim), "rms_att": (layers, dim), "wq": (layers, dim, dim),
        "wk": (layers, kv_heads * width, dim), "wv": (layers, kv_heads * width, dim), "wo": (layers, dim, dim),
        "rms_ffn": (layers, dim), "w1": (layers, hidden, dim), "w2": (layers, dim, hidden),
        "w3": (layers, hidden, dim), "rms_final": (dim,), "freq_cis_real": (length, width // 2),
        "freq_cis_imag": (length, width // 2), "wcls": (vocabulary, dim),
    }  # fmt: skip


LEGACY = [
    "token_embedding", "rms_att", "wq", "wk", "wv", "wo", "rms_ffn", "w1", "w2", "w3", "rms_final", "freq_cis_real",
    "freq_cis_imag", "wcls",
]  # fmt: skip
NEWER = [
    "rms_att", "rms_ffn", "rms_final", "token_embedding", "wq", "wk", "wv", "wo", "w1", "w2", "w3", "wcls",
]  # fmt: skip


def random_weights(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape).astype(np.float32) * 0.5 for name, shape in shapes(sizes).items()}


def write_checkpoint(path, sizes, weights, *, version=0, shared=True):
    order = LEGACY if version == 0 else NEWER
    numbers = [sizes[name] for name in SIZES]
    if version == 0:
        numbers[5] *= 1 if shared else -1
        header = struct.pack("<7i", *numbers)
    else:
        header = struct.pack("<Ii7iB", 0x616B3432, version, *numbers, shared).ljust(256, b"\0")
    kept = [name for name in order if not (name == "wcls" and shared)]
    path.write_bytes(header + b"".join(weights[name].astype("<f4").tobytes() for name in kept))
    return path


def write_tokenizer(path, vocabulary):
    pieces = ["<unk>", "\n<s>\n", "\n</s>\n", *(f"<0x{byte:02X}>" for byte in range(256)), " "]
    pieces += [f"{chr(97 + i % 26)}{i // 26 or ''}" for i in range(vocabulary - len(pieces))]
    rows = [text.encode() for text in pieces]
    body = b"".join(struct.pack("<fi", -float(i), len(row)) + row for i, row in enumerate(rows))
    path.write_bytes(struct.pack("<i", max(map(len, rows))) + body)
    return path


def read_checkpoint(path):
    """Sizes and weights of a version 0 file with a shared output."""
    content = path.read_bytes()
    sizes = dict(zip(SIZES, struct.unpack_from("<7i", content), strict=True))
    weights, place = {}, 28
    for name in LEGACY[:-1]:
        shape = shapes(sizes)[name]
        weights[name] = np.frombuffer(content, "<f4", count=int(np.prod(shape)), offset=place).reshape(shape)
        place += weights[name].nbytes
    assert place == len(content)
    return sizes, {**weights, "wcls": weights["token_embedding"]}


def rmsnorm(x, weight):
    return weight * x / np.sqrt((x * x).mean() + 1e-5)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def turned(vector, position, width):
    """Every head's neighbouring pairs as complex numbers, each turned by its own angle."""
    pairs = vector.reshape(-1, width // 2, 2)
    angles = position / 10_000.0 ** (np.arange(0, width, 2) / width)
    numbers = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)
    return np.stack([numbers.real, numbers.imag], axis=-1).reshape(-1, width)


class PlainLlama:
    """One token at a time, in float64."""

    def __init__(self, sizes, weights):
        self.sizes = sizes
        self.weights = {name: weight.astype(np.float64) for name, weight in weights.items()}
        self.seen = [([], []) for _ in range(sizes["n_layers"])]
        self.position = 0

    def logits(self, token):
        w, heads = self.weights, self.sizes["n_heads"]
        width, shared = self.sizes["dim"] // heads, heads // self.sizes["n_kv_heads"]
        x = w["token_embedding"][token]
        for layer, (keys, values) in enumerate(self.seen):
            h = rmsnorm(x, w["rms_att"][layer])
            queries = turned(w["wq"][layer] @ h, self.position, width)
            keys.append(turned(w["wk"][layer] @ h, self.position, width))
            values.append((w["wv"][layer] @ h).reshape(-1, width))
            found = []
            for head in range(heads):
                scores = np.array([queries[head] @ key[head // shared] for key in keys]) / np.sqrt(width)
                found.append(sum(a * value[head // shared] for a, value in zip(softmax(scores), values, strict=True)))
            x = x + w["wo"][layer] @ np.concatenate(found)
            h = rmsnorm(x, w["rms_ffn"][layer])
            gate = w["w1"][layer] @ h
            x = x + w["w2"][layer] @ (gate / (1 + np.exp(-gate)) * (w["w3"][layer] @ h))
        self.position += 1
        return w["wcls"] @ rmsnorm(x, w["rms_final"])


def plain_greedy(plain, prompt, count):
    """The ids, and each step's logits."""
    ids, logits = list(prompt), []
    for place in range(len(prompt) + count - 1):
        logits.append(plain.logits(ids[place]))
        if place >= len(prompt) - 1:
            ids.append(int(logits[-1].argmax()))
    return ids, np.array(logits)


@torch.no_grad()
def cached_greedy(model, prompt, count):
    cache = model.start(rows=1, capacity=len(prompt) + count)
    states = model.step(torch.tensor([prompt]), cache)[0]
    ids, logits = list(prompt), [model.logits(states).numpy()]
    while len(ids) < len(prompt) + count - 1:
        ids.append(int(logits[-1][-1].argmax()))
        logits.append(model.logits(model.step(torch.tensor([ids[-1:]]), cache)[0]).numpy())
    return [*ids, int(logits[-1][-1].argmax())], np.concatenate(logits)


@torch.no_grad()
def uncached_greedy(model, prompt, count):
    """Each step reads all of the text again; the last one's logits are those of every place."""
    ids = list(prompt)
    for _ in range(count):
        logits = model.logits(model(torch.tensor([ids])))[0].numpy()
        ids.append(int(logits[-1].argmax()))
    return ids, logits


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_a_random_checkpoint_gives_the_plain_forwards_logits(tmp_path, version, shared, kv_heads):
    sizes = {**TINY, "n_kv_heads": kv_heads}
    weights = random_weights(sizes)
    write_checkpoint(tmp_path / "tiny.bin", sizes, weights, version=version, shared=shared)
    write_tokenizer(tmp_path / "tok300.bin", 300)
    imported = import_run(tmp_path, tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert imported.source == f"llama2.c version {version}"
    assert run.recipe == imported.recipe
    if shared:
        weights["wcls"] = weights["token_embedding"]
    prompt = [run.tokenizer.specials.begin, *run.tokenizer.encode("abc")]
    right, logits = plain_greedy(PlainLlama(sizes, weights), prompt, 26)
    assert len(set(right)) > 5, "a text that goes on"
    for model in (imported.model, run.model):
        for greedy in (cached_greedy, uncached_greedy):
            ids, ours = greedy(model, prompt, 26)
            assert ids == right
            np.testing.assert_allclose(ours, logits, rtol=0, atol=5e-5)


def test_the_run_folder_says_what_was_imported(tmp_path):
    write_checkpoint(tmp_path / "tiny.bin", TINY, random_weights(TINY), shared=False)
    write_tokenizer(tmp_path / "tokenizer.bin", 300)
    import_run(tmp_path / "tiny.bin", tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "recipe.toml", "tokens.model", ".tokens.model.sha256", "model.safetensors",
    }  # fmt: skip
    assert (run.recipe.task, run.recipe.tokens.kind, run.recipe.tokens.size) == ("generate", "bpe", 300)
    model = run.recipe.model
    assert (model.family, model.vocabulary, model.d_model, model.d_ff) == ("decoder-only", 300, 24, 20)
    assert (model.decoder_layers, model.heads, model.kv_heads, model.max_length) == (3, 6, 2, 32)
    assert (model.norm, model.norm_kind, model.positions, model.activation) == ("pre", "rms", "rotary", "swiglu")
    assert (model.embeddings, model.scale_embeddings, model.biases) == ("separate", False, False)


def test_the_table_has_a_row_for_all_that_is_in_a_file():
    assert set(ORDER[0]) == set(TABLE)
    assert set(ORDER[1]) == {row for row, ours in TABLE.items() if ours is not None}


@pytest.fixture
def tiny(tmp_path):
    """A folder with a checkpoint and its tokeniser."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    write_checkpoint(folder / "tiny.bin", TINY, random_weights(TINY))
    write_tokenizer(folder / "tok300.bin", 300)
    return folder


def refused(path, out, said, *, tokenizer=None):
    with pytest.raises(InputError) as error:
        import_run(path, out, tokenizer=tokenizer)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert not (out.is_dir() and any(path.name == "recipe.toml" for path in out.iterdir()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file[:-4], "tiny.bin: expected 65,724 bytes, found 65,720: cut off, or no llama2.c checkpoint"),
        (lambda file: file + b"\0", "expected 65,724 bytes, found 65,725: too long, or no llama2.c checkpoint of"),
        (lambda file: file[:20], "expected 28 bytes of header, found 20: cut off"),
        (lambda file: b"", "expected 28 bytes of header, found 0: cut off"),
        (lambda file: struct.pack("<Ii", 0x616B3432, 1) + file[:100], "expected 256 bytes of header, found 108"),
        (lambda file: struct.pack("<Ii", 0x616B3432, 2) + file, "its header says version 2; llama2.c's versions 0 and"),
        (lambda file: struct.pack("<Ii", 0x616B3432, 1) + file[:28] + b"\7" + file, "says 7 for a shared output"),
        (lambda file: b"GGUF" + file[4:], "not a llama2.c checkpoint: its header would be version 0, dim 1179993927"),
        (lambda file: b"PK\3\4" + file[4:], "a zip archive, as torch.save writes with a pickle in it"),
        (lambda file: struct.pack("<7i", 24, 20, 3, 6, 4, 300, 32) + file[28:], "n_heads 6, n_kv_heads 4"),
        (lambda file: struct.pack("<7i", 24, 20, 3, 8, 2, 300, 32) + file[28:], "not a llama2.c checkpoint"),
        (lambda file: struct.pack("<7i", 24, 20, 0, 6, 2, 300, 32) + file[28:], "not a llama2.c checkpoint"),
        (lambda file: struct.pack("<7i", *[2**30] * 3, 1, 1, 300, 32) + file[28:], "bytes, found 65,724: cut off"),
        (lambda file: file[:28] + struct.pack("<f", np.nan) + file[32:], "pieces.weight: 1 of 7200 values are not fin"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_what_it_should_be_is_refused(tiny, tmp_path, change, said):
    file = tiny / "tiny.bin"
    file.write_bytes(change(file.read_bytes()))
    refused(file, tmp_path / "run", said)


def test_the_tokeniser_is_found_beside_the_model_or_named(tiny, tmp_path):
    write_tokenizer(tiny / "tokenizer.bin", 400)
    import_run(tiny, tmp_path / "own_size_first")
    (tiny / "tok300.bin").rename(tmp_path / "mine.bin")
    refused(tiny, tmp_path / "run", "tokenizer.bin: has 400 pieces, but the model has 300")
    import_run(tiny, tmp_path / "named", tokenizer=tmp_path / "mine.bin")
    refused(tiny, tmp_path / "run", "none.bin: no such file", tokenizer=tmp_path / "none.bin")
    (tiny / "tokenizer.bin").unlink()
    refused(tiny, tmp_path / "run", "tok300.bin or tokenizer.bin; there is none; or name the file with --tokenizer")
    write_tokenizer(tiny / "tok_a.bin", 300)
    import_run(tiny, tmp_path / "the_only_one")
    write_tokenizer(tiny / "tok_b.bin", 300)
    refused(tiny, tmp_path / "run", "there are tok_a.bin, tok_b.bin; or name the file")


def test_places_where_nothing_can_be_read_or_made_are_refused(tiny, tmp_path):
    refused(tmp_path / "none", tmp_path / "run", "none: no such file or folder")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", tmp_path / "run", "empty: no model that can be imported lies there")
    refused(tiny / "tok300.bin", tmp_path / "run", "not a llama2.c checkpoint")
    (tmp_path / "pieces").mkdir()
    write_tokenizer(tmp_path / "pieces" / "tokenizer.bin", 300)
    refused(tmp_path / "pieces", tmp_path / "run", "pieces: holds no checkpoint (.bin)")
    (tiny / "other.bin").write_bytes(b"")
    refused(tiny, tmp_path / "run", "tiny: holds other.bin, tiny.bin; name one of them")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "journal.jsonl").touch()
    refused(tiny / "tiny.bin", tmp_path / "full", "full: is not empty; name a folder that does not exist yet")
    refused(tiny / "tiny.bin", tiny / "other.bin", "other.bin: is a file; name a folder")
    import_run(tiny / "tiny.bin", tmp_path / "empty")


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there: set REGARD_DATA to the folder that holds it")
@pytest.mark.parametrize("prompt", ["Once upon a time", ""])
def test_the_real_checkpoint_continues_as_the_plain_forward(tmp_path, prompt):
    import_run(REAL, tmp_path / "run")
    run = open_run(tmp_path / "run")
    ids = [run.tokenizer.specials.begin, *run.tokenizer.encode(prompt)]
    right, logits = plain_greedy(PlainLlama(*read_checkpoint(REAL / "stories260K.bin")), ids, 200)
    for greedy in (cached_greedy, uncached_greedy):
        written, ours = greedy(run.model, ids, 200)
        assert written == right
        np.testing.assert_allclose(ours, logits, rtol=0, atol=5e-5)
    text = run.tokenizer.decode(right)
    assert text.startswith(
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
    )
    if not prompt:
        assert hashlib.sha256(text.encode()).hexdigest() == PRINTED
    writer = load(tmp_path / "run").writer_in("float32")
    continued = writer.write([prompt], length=200, sampling=Sampling(temperature=0))
    assert prompt + continued[0].text == text
