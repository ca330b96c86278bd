"""How fast translation is, beside CTranslate2 and transformers: the same trained weights on all sides, one run.

    python benchmarks/decode_speed.py [RUN ...] [--beams 1 5] [--sentences 1000] [--sides ours ctranslate2 transformers]

Without a RUN a `small` model of Multi30k French to English is trained first (`--minutes`). Data: Multi30k test2016
(`REGARD_DATA`, or ../shared/data), and the same sentences joined four at a time, as they are written. A figure is
sentences a second from ids to ids, the best of `--repeats`; `busy` are processor seconds, of all threads, which tell
more where others use the machine too; BLEU is of the text. Not timed: reading the model, and tokenising, which is the
same for all. Ours: each precision, one and two workers, and with `stopping = "full"`, which is how CTranslate2 stops:
as soon as `beam` answers have ended, whatever might still win. CTranslate2: each type of numbers that it supports here,
the best of 1 x 2 and 2 x 1 threads and of batches of 32 and 64 sentences and 1,024 and 2,048 tokens, found on some of
the sentences. transformers: float32 and bf16, two threads, batches of 64. Then the latency of sentences given one at a
time, and beside it what torch's matrix products alone would take (its floor). Ends with one line of JSON.
"""

import argparse
import gzip
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from decode_peers import CTranslate2, Setting, Transformers
from sacrebleu.metrics.bleu import BLEU

import regard
from regard.decoding import Request, Search, search, step_model
from regard.decoding.chosen import Kind
from regard.models import EncoderDecoder
from regard.tasks.run import Run

Ids = Sequence[int]
Answers = list[list[int]]
KINDS: tuple[Kind, ...] = ("float32", "bf16", "int8")
LONG = 4
"""sentences of the short set that make one of the long"""
Sets = dict[str, tuple[list[str], list[str]]]


def main() -> None:
    """Run all sides on all models and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="folders of trained models, whose data.test is used")
    parser.add_argument("--sides", nargs="+", default=["ours", "ctranslate2", "transformers"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), help="precisions of ours")
    parser.add_argument("--data", nargs="+", default=["test2016", "long"])
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 5])
    parser.add_argument("--sentences", type=int, default=1000, help="of each set, at most")
    parser.add_argument("--repeats", type=int, default=3, help="of which the best counts; transformers runs once")
    parser.add_argument("--latency", type=int, default=200, help="sentences that are given one at a time; 0: none")
    parser.add_argument("--minutes", type=float, default=6, help="of training, without a RUN")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    conditions = {
        "processor": _processor(), "processors": os.cpu_count(), "torch": torch.__version__,
        "sentences": arguments.sentences, "repeats": arguments.repeats,
    }  # fmt: skip
    print(", ".join(f"{name} {value}" for name, value in conditions.items()))
    results = {}
    with tempfile.TemporaryDirectory() as work:
        for folder in arguments.runs or [str(_trained(Path(work), arguments.minutes))]:
            results[Path(folder).name] = _compare(regard.load(folder), Path(work) / Path(folder).name, arguments)
    print(json.dumps({"conditions": conditions, "results": results}))


def _compare(run: Run, work: Path, arguments: argparse.Namespace) -> dict[str, object]:
    """One model on all sets: its table, then its latencies."""
    work.mkdir(parents=True, exist_ok=True)
    peer = CTranslate2(run, work) if "ctranslate2" in arguments.sides else None
    theirs = {}
    if "transformers" in arguments.sides:
        theirs = {"float32": Transformers(run, torch.float32), "bf16": Transformers(run, torch.bfloat16)}
    results: dict[str, object] = {}
    sets = _sets(run, arguments.sentences)
    weights = sum(weight.numel() for weight in run.model.parameters())
    for name in arguments.data:
        texts, right = sets[name]
        sources = [run.translator.source_ids(text) for text in texts]
        pieces = sum(map(len, sources)) / len(sources)
        for beam in arguments.beams:
            print(
                f"\n{run.folder.name} ({weights:,} weights), {name}: {len(texts)} of {pieces:.1f} pieces, beam {beam}"
            )
            found: dict[str, dict[str, float]] = {}
            for side, once, repeats in _sides(run, arguments, peer, theirs, sources, beam):
                before = time.process_time()
                timed = [once() for _ in range(repeats)]
                busy = (time.process_time() - before) / repeats
                seconds = min(each for each, _ in timed)
                made = [run.tokenizer.decode(ids) for ids in timed[0][1]]
                bleu = BLEU().corpus_score(made, [right]).score
                speed = len(texts) / seconds
                found[side] = {"sentences/s": round(speed, 1), "busy": round(busy, 2), "BLEU": round(bleu, 2)}
                print(f"  {side:<64}{speed:9.1f}/s   busy {busy:6.2f} s   BLEU {bleu:.2f}", flush=True)
            results[f"{name}, beam {beam}"] = found
    if arguments.latency:
        texts = sets["test2016"][0][: arguments.latency]
        sources = [run.translator.source_ids(text) for text in texts]
        for beam in arguments.beams:
            results[f"latency, beam {beam}"] = _latency(run, arguments, peer, theirs, sources, beam)
    return results


Once = Callable[[], tuple[float, Answers]]


def _sides(
    run: Run, arguments: argparse.Namespace, peer: CTranslate2 | None, theirs: dict[str, Transformers],
    sources: Sequence[Ids], beam: int,
) -> Iterator[tuple[str, Once, int]]:  # fmt: skip
    """Each side's name, how it translates all sources once, and how often it does."""
    if "ours" in arguments.sides:
        for kind in arguments.kinds:
            for workers, stopping in ((1, "safe"), (2, "safe"), (2, "full")):
                once = ours(run, kind, beam, workers, stopping)
                once(sources[:32])
                name = f"regard {kind}, {workers} workers, stopping {stopping}"
                yield name, lambda once=once: once(sources), arguments.repeats
    if peer is not None:
        for setting in peer.best(sources, beam).values():
            yield (
                f"CTranslate2 {setting}",
                lambda setting=setting: peer.translate(sources, beam, setting),
                arguments.repeats,
            )
    for kind, side in theirs.items():
        side.translate(sources[:4], beam)
        yield f"transformers {kind}", lambda side=side: side.translate(sources, beam), 1


def ours(
    run: Run, kind: Kind, beam: int, workers: int, stopping: str = "safe"
) -> Callable[[Sequence[Ids]], tuple[float, Answers]]:
    """Our search: seconds and answers."""
    assert isinstance(run.model, EncoderDecoder)
    steps, specials = step_model(run.model, kind), run.tokenizer.specials
    options = Search(end=specials.end, options=replace(run.recipe.decoding, beam=beam, groups=1, stopping=stopping))

    def once(sources: Sequence[Ids]) -> tuple[float, Answers]:
        start = time.perf_counter()
        requests = [Request(source=source, read=(specials.begin,), limit=2 * len(source) + 18) for source in sources]
        found = search(steps, requests, options, workers=workers)
        return time.perf_counter() - start, [each.answers[0].ids for each in found]

    return once


def _latency(
    run: Run, arguments: argparse.Namespace, peer: CTranslate2 | None, theirs: dict[str, Transformers],
    sources: Sequence[Ids], beam: int,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Milliseconds of sentences given one at a time, median and 99th of a hundred."""
    sides: dict[str, Callable[[Sequence[Ids]], tuple[float, Answers]]] = {}
    if "ours" in arguments.sides:
        sides |= {f"regard {kind}": ours(run, kind, beam, 1) for kind in arguments.kinds}
        sides |= {
            f"torch's products alone, {name}": _floor(run, dtype, beam)
            for name, dtype in (("float32", torch.float32), ("bf16", torch.bfloat16))
        }
    if peer is not None:
        for kind in peer.kinds:
            for threads in (1, 2):
                setting = Setting(kind, 1, threads, 1, "examples")
                sides[f"CTranslate2 {kind}, {threads} threads"] = lambda some, setting=setting: peer.translate(
                    some, beam, setting
                )
    sides |= {
        f"transformers {kind}": lambda some, side=side: side.translate(some, beam) for kind, side in theirs.items()
    }
    print(f"\n{run.folder.name}, one sentence at a time, beam {beam}: milliseconds")
    found = {}
    for name, once in sides.items():
        some = sources[: len(sources) // 4] if name.startswith("transformers") else sources
        for source in some[:5]:
            once([source])
        times = sorted(1e3 * once([source])[0] for source in some)
        late = times[min(len(times) - 1, round(0.99 * len(times)))]
        found[name] = {"median": round(statistics.median(times), 2), "p99": round(late, 2)}
        print(f"  {name:<64}median {statistics.median(times):7.2f}   p99 {late:7.2f}", flush=True)
    return found


def _floor(run: Run, dtype: torch.dtype, beam: int) -> Callable[[Sequence[Ids]], tuple[float, Answers]]:
    """Torch's matrix products alone, one call each, as many steps as our search takes: no attention, norm or choice.

    What decodes with torch's operations one by one is never sooner done than that.
    """
    model, search_once = run.model, ours(run, "float32", beam, 1)
    assert isinstance(model, EncoderDecoder)
    once_a_source, each_step = [], []
    for layer in model.encoder.layers:
        once_a_source += [each.weight for each in layer.modules() if isinstance(each, torch.nn.Linear)]
    for layer in model.decoder.layers:
        queries = layer.cross.queries
        once_a_source.append(layer.cross.project.weight[queries:])
        each_step += [layer.attention.project.weight, layer.attention.join.weight, layer.cross.project.weight[:queries]]
        each_step += [layer.cross.join.weight, layer.feed_forward.inner.weight, layer.feed_forward.outer.weight]
    each_step.append(model.output[0])
    once_a_source, each_step = (
        [weight.detach().to(dtype).contiguous() for weight in weights] for weights in (once_a_source, each_step)
    )

    @torch.inference_mode()
    def once(sources: Sequence[Ids]) -> tuple[float, Answers]:
        answers = search_once(sources)[1]
        rows = {weight.shape[1]: torch.zeros(beam, weight.shape[1], dtype=dtype) for weight in each_step}
        torch.set_num_threads(1)  # two only wait for each other over so few rows
        start = time.perf_counter()
        for source, answer in zip(sources, answers, strict=True):
            for weight in once_a_source:
                torch.nn.functional.linear(torch.zeros(len(source), weight.shape[1], dtype=dtype), weight)
            for _ in range(len(answer) + 1):
                for weight in each_step:
                    torch.nn.functional.linear(rows[weight.shape[1]], weight)
        seconds = time.perf_counter() - start
        torch.set_num_threads(2)
        return seconds, answers

    return once


def _sets(run: Run, sentences: int) -> Sets:
    """The test text, and the same joined."""
    source, target = (_lines(file)[: LONG * sentences] for file in run.recipe.data.test)
    joined = [
        [" ".join(side[first : first + LONG]) for first in range(0, len(side), LONG)] for side in (source, target)
    ]
    return {
        "test2016": (source[:sentences], target[:sentences]),
        "long": (joined[0][:sentences], joined[1][:sentences]),
    }


def _lines(file: str) -> list[str]:
    path = Path(file)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return text.decode().splitlines()


def _trained(work: Path, minutes: float) -> Path:
    """A `small` model of the recipe for Multi30k, trained for some minutes."""
    from regard.config import read_recipe
    from regard.tasks.start import train

    data = Path(os.environ.get("REGARD_DATA", "../shared/data")) / "multi30k"
    recipe = read_recipe(Path(__file__).parents[1] / "recipes" / "multi30k-fr-en.toml")
    files = {name: tuple(str(data / Path(file).name) for file in getattr(recipe.data, name)) for name in
             ("train", "valid", "test")}  # fmt: skip
    recipe = replace(
        recipe, data=replace(recipe.data, **files), training=replace(recipe.training, minutes=minutes)
    )  # fmt: skip
    train(recipe, work / "small")
    return work / "small"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
