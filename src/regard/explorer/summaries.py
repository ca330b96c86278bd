"""The tables of a report: what was learned from, what the model costs, and where this was."""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.config import DataConfig, Recipe
from regard.data.prepared import MANIFEST
from regard.data.ragged import id_type
from regard.errors import InputError
from regard.evaluation.cost import Work, cost
from regard.explorer.history import History
from regard.explorer.markup import Content, Html, element, facts, large, section, table
from regard.explorer.told import words
from regard.text import training_sets

FAULTS = {
    "kept": "kept", "empty": "left out: blank, or one side is", "copies": "left out: both sides are the same",
    "duplicates": "left out: stood before", "too_long": "left out: too long", "ratio": "left out: sides too uneven",
}  # fmt: skip
"""the names of the store's counts, for people"""
TEXT_LENGTH = 32
"""pieces of a text whose cost is told, where the data does not say how long they are"""

Manifest = Mapping[str, Any]


def read_manifest(folder: Path) -> Manifest | None:
    """What the newest of the run's prepared data says of itself."""
    found = sorted((folder / "data").glob(f"*/{MANIFEST}"), key=lambda path: path.stat().st_mtime)
    try:
        manifest: Manifest = json.loads(found[-1].read_bytes())
        return manifest if isinstance(manifest.get("notes"), dict) else None
    except (IndexError, OSError, ValueError, AttributeError):
        return None


def data_section(recipe: Recipe, manifest: Manifest | None, padding: Sequence[float] = ()) -> Html:
    """The text: files, how many pairs of each, what was left out and why; and the tokenisers."""
    data = recipe.data
    notes = manifest["notes"] if manifest else {}
    named = words(recipe).rows
    parts: list[Content] = [_files_table(data, list(notes.get("sets", ())), named)]
    if report := notes.get("report"):
        whole = sum(report.values()) or 1
        rows = [(FAULTS.get(name, name), f"{count:,}", f"{count / whole:.1%}") for name, count in report.items()]
        parts.append(table(f"Training {named}", (named, "count", "share"), [row for row in rows if row[1] != "0"]))
    else:
        parts.append(element("p", "The prepared data is not in the folder, so nothing is counted.", class_="note"))
    model, tokens = recipe.model, recipe.tokens
    lengths = mean_lengths(recipe, manifest)
    joint = "one vocabulary for both sides" if tokens.joint else "a vocabulary for each side"
    translates = recipe.task == "translate"
    pieces = [
        ("Tokens", f"{tokens.kind}, {joint}" if translates else tokens.kind),
        ("Pieces", f"{model.vocabulary:,}" if model.vocabulary else "not known yet"),
        ("Source pieces", f"{model.source_vocabulary:,}" if model.source_vocabulary else None),
        ("Mean source" if translates else "Mean text", f"{lengths[0]:.1f} pieces" if lengths else None),
        ("Mean target", f"{lengths[1]:.1f} pieces" if lengths and translates else None),
        ("Padding of batches", " and ".join(f"{share:.1%}" for share in padding) or None),
        ("Labels", f"{model.labels:,}" if model.labels else None),
    ]
    first, *rest = parts
    counted = element("div", *rest), facts((name, value) for name, value in pieces if value)
    return section("data", "Data", first, element("div", *counted, class_="columns"))


def mean_lengths(recipe: Recipe, manifest: Manifest | None) -> tuple[float, float] | None:
    """Mean pieces of a source and a target, from the sizes of the prepared files."""
    model = recipe.model
    if manifest is None or model.vocabulary is None:
        return None
    try:
        rows = manifest["notes"]["report"]["kept"]
        if single := next((name for name in ("texts", "documents") if f"{name}.bin" in manifest["files"]), None):
            pieces = manifest["files"][f"{single}.bin"] / np.dtype(id_type(model.vocabulary)).itemsize
            return pieces / rows, pieces / rows
        size = {name: manifest["files"][f"{name}.bin"] for name in ("source", "target")}
        source = size["source"] / np.dtype(id_type(model.source_vocabulary or model.vocabulary)).itemsize
        return source / rows, size["target"] / np.dtype(id_type(model.vocabulary)).itemsize / rows
    except (KeyError, TypeError, ZeroDivisionError):
        return None


def _files_table(data: DataConfig, counts: list[int], named: str) -> Html:
    sets = training_sets(data) if data.train or data.sets else ()
    known = counts if len(counts) == len(sets) else [None] * len(sets)
    rows: list[tuple[Content, ...]] = [
        ("training", ", ".join(one.files), one.tag, f"{one.weight:g}", None if count is None else f"{count:,}")
        for one, count in zip(sets, known, strict=True)
    ]
    for name, files in (("validation", data.valid), ("test", data.test)):
        rows.append((name, ", ".join(files) or "none", data.tag if files else None, None, None))
    return table("Files", ("used for", "files", "tag", "weight", f"{named} kept"), rows, words=(0, 1, 2))


def cost_section(recipe: Recipe, history: History, lengths: tuple[float, float] | None) -> Html:
    """Parameters, operations and memory, in closed form; and what this run has spent of them."""
    try:
        return _costs(recipe, history, lengths)
    except InputError as error:
        return section("cost", "Cost", element("p", f"Not known: {error}", class_="note"))


def _costs(recipe: Recipe, history: History, lengths: tuple[float, float] | None) -> Html:
    model = recipe.model
    source, target = (min(model.max_length, max(1, round(length))) for length in lengths or (TEXT_LENGTH, TEXT_LENGTH))
    written = target if model.family == "encoder-decoder" else None
    found = cost(model, Work(batch=1, length=source, target_length=written))
    whole = sum(found.parameters.values())
    rows = [(name, f"{count:,}", f"{count / whole:.1%}") for name, count in found.parameters.items()]
    rows.append(("all", f"{whole:,}", "100.0%"))
    one = words(recipe).told
    each = found.training if one == "text" else 2 * found.training if one == "pair" else found.training / found.tokens
    about = f"texts of {source} pieces" if written is None else f"a source of {source} and a target of {target} pieces"
    spent: list[tuple[str, Content]] = [
        (f"Learning, a {one}" if one != "hidden piece" else "Learning, a piece", f"{large(each)} FLOP"),
        (
            "Learning, this run",
            f"{large(each * history.tokens)} FLOP" if history.tokens and one != "hidden piece" else None,
        ),
    ]
    translates = recipe.task == "translate"
    if found.decoding:
        once = found.decoding.source
        spent += [
            (
                "A translation, greedy" if translates else "A text as long, greedy",
                f"{large(once + found.decoding.all_cached)} FLOP",
            ),
            ("The same without the cache", f"{large(once + found.decoding.all_again)} FLOP"),
        ]
    held = found.bytes
    spent += [
        ("Weights, float32", f"{held.decoding_weights / 1e6:,.1f} MB"),
        ("In training, with gradients and Adam", f"{(held.weights + held.gradients + held.moments) / 1e6:,.1f} MB"),
    ]
    note = f"Operations are counted for {about}{', the means of the data' if lengths else ''}, padding aside."
    beside = element("div", facts((name, value) for name, value in spent if value), element("p", note, class_="note"))
    sizes = table("Parameters", ("part", "count", "share"), rows)
    return section("cost", "Cost", element("div", sizes, beside, class_="columns"))


def environment_section(history: History) -> Html:
    """Where the report was written, and what the run said of where it trained."""
    last = history.sessions[-1] if history.sessions else {}
    rows: list[tuple[str, Content]] = [
        ("regard", version("regard")),
        ("Python", platform.python_version()),
        ("torch", torch.__version__),
        ("numpy", np.__version__),
        ("System", platform.platform(terse=True)),
        ("Processor", f"{_processor()}, {os.cpu_count()} cores seen"),
        ("Threads", torch.get_num_threads()),
        ("Device", torch.cuda.get_device_name() if torch.cuda.is_available() else "no accelerator"),
        ("Precision in training", str(last["precision"]) if "precision" in last else None),
        ("Processes in training", str(last["processes"]) if "processes" in last else None),
        ("Starts", f"{len(history.sessions):,}" if history.sessions else None),
    ]
    return section("environment", "Environment", facts((name, value) for name, value in rows if value is not None))


def _processor() -> str:
    """What the machine calls its processor."""
    if sys.platform == "linux":
        try:
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
        except OSError:
            pass
    return platform.processor() or platform.machine()
