"""The other sides of `decode_speed.py`: CTranslate2 through `regard export`, and transformers with the same weights."""

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.interop.ctranslate2 import export_ctranslate2, names, search_arguments
from regard.models import EncoderDecoder
from regard.nn.positions import sinusoidal
from regard.tasks.run import Run

Ids = Sequence[int]
TRIAL = 200
"""sentences on which CTranslate2's settings are tried; the best translate all"""


class Setting(NamedTuple):
    """How CTranslate2 is run."""

    kind: str
    workers: int
    threads: int
    batch: int
    by: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.workers} x {self.threads} threads, batches of {self.batch:,} {self.by}"


class CTranslate2:
    """The exported run. Only `translate_batch` is timed: pieces in, pieces out, sorted and cut into batches by it."""

    def __init__(self, run: Run, folder: Path) -> None:
        import ctranslate2

        self.library = ctranslate2
        self.folder = folder / "ctranslate2"
        export_ctranslate2(run.folder, self.folder)
        self.source_names, self.names = names(run.source_tokenizer), names(run.tokenizer)
        self.ids = {name: id for id, name in enumerate(self.names)}
        self.arguments = search_arguments(run.recipe.decoding, run.tokenizer)
        self.kinds = sorted(ctranslate2.get_supported_compute_types("cpu"))
        self._opened: tuple[tuple[str, int, int], Any] | None = None

    def translate(self, sources: Sequence[Ids], beam: int, setting: Setting) -> tuple[float, list[list[int]]]:
        """Seconds and answers."""
        translator = self._translator(setting)
        named = [[self.source_names[id] for id in source] for source in sources]
        start = time.perf_counter()
        found = translator.translate_batch(
            named, **self.arguments | {"beam_size": beam, "max_decoding_length": 2 * max(map(len, sources)) + 18},
            max_batch_size=setting.batch, batch_type=setting.by, max_input_length=0,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        return seconds, [[self.ids[name] for name in each.hypotheses[0]] for each in found]

    def best(self, sources: Sequence[Ids], beam: int) -> dict[str, Setting]:
        """For each kind of numbers the setting that translates some sentences fastest."""
        some = sources[:: max(1, len(sources) // TRIAL)]
        best = {}
        for kind in self.kinds:
            settings = [
                Setting(kind, workers, threads, batch, by)
                for (workers, threads), (batch, by) in product(
                    ((1, 2), (2, 1)), ((32, "examples"), (64, "examples"), (1024, "tokens"), (2048, "tokens"))
                )
            ]
            best[kind] = min(settings, key=lambda each: self.translate(some, beam, each)[0])
        return best

    def _translator(self, setting: Setting) -> Any:
        key = setting[:3]
        if self._opened is None or self._opened[0] != key:
            made = self.library.Translator(
                str(self.folder), device="cpu", compute_type=setting.kind, inter_threads=setting.workers,
                intra_threads=setting.threads,
            )  # fmt: skip
            made.translate_batch([[self.source_names[5], self.source_names[3]]] * 4)
            self._opened = key, made
        return self._opened[1]


class Transformers:
    """Marian with the run's weights, or Pegasus where norms come first: the same code otherwise. Only `generate` is
    timed: batches of sentences sorted by length, padded.
    """  # fmt: skip

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        assert isinstance(run.model, EncoderDecoder)
        self.run = run
        self.model: Any = _peer(run.model, run).to(dtype)

    def translate(self, sources: Sequence[Ids], beam: int, batch: int = 64) -> tuple[float, list[list[int]]]:
        """Seconds and answers."""
        from transformers import GenerationConfig

        specials = self.run.tokenizer.specials
        order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
        found: list[list[int]] = [[] for _ in sources]
        start = time.perf_counter()
        for first in range(0, len(order), batch):
            rows = order[first : first + batch]
            longest = len(sources[rows[-1]])
            ids = torch.tensor([[*sources[row], *[specials.pad] * (longest - len(sources[row]))] for row in rows])
            lengths = torch.tensor([len(sources[row]) for row in rows])
            config = GenerationConfig(
                num_beams=beam, do_sample=False, length_penalty=self.run.recipe.decoding.length_penalty,
                max_new_tokens=2 * longest + 20, pad_token_id=specials.pad, eos_token_id=specials.end,
                decoder_start_token_id=specials.begin,
            )  # fmt: skip
            with torch.inference_mode():
                made = self.model.generate(
                    ids, attention_mask=(torch.arange(longest) < lengths[:, None]).long(), generation_config=config
                )
            for row, answer in zip(rows, made[:, 1:].tolist(), strict=True):
                found[row] = answer[: answer.index(specials.end)] if specials.end in answer else answer
        return time.perf_counter() - start, found


def _peer(ours: EncoderDecoder, run: Run) -> torch.nn.Module:
    """Their model with our weights; its logits are compared with ours before anything is timed."""
    from transformers import MarianConfig, MarianMTModel, PegasusConfig, PegasusForConditionalGeneration

    config, specials = ours.config, run.tokenizer.specials
    if config.positions != "sinusoidal" or config.activation != "relu" or config.embeddings != "tied_all":
        raise SystemExit(f"{run.folder}: transformers' side needs sinusoidal positions, relu and tied_all embeddings")
    sizes = {
        "vocab_size": config.vocabulary, "d_model": config.d_model, "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers, "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads, "encoder_ffn_dim": config.d_ff, "decoder_ffn_dim": config.d_ff,
        "activation_function": "relu", "scale_embedding": config.scale_embeddings, "max_position_embeddings": 1024,
        "pad_token_id": specials.pad, "eos_token_id": specials.end, "decoder_start_token_id": specials.begin,
        "forced_eos_token_id": None,
    }  # fmt: skip
    pre = config.norm == "pre"
    theirs = PegasusForConditionalGeneration(PegasusConfig(**sizes)) if pre else MarianMTModel(MarianConfig(**sizes))
    with torch.no_grad():
        weights = dict(theirs.named_parameters(remove_duplicate=False))
        _carry(ours, weights, pre=pre)
    theirs.eval()
    _compare(ours, theirs, run)
    return theirs


def _carry(ours: EncoderDecoder, theirs: dict[str, Tensor], *, pre: bool) -> None:
    """Copy each weight to where it stands there; every weight of theirs is filled."""
    table = sinusoidal(torch.arange(1024), ours.config.d_model)
    placed = {"model.shared.weight": ours.target_pieces.weight}
    for side, stack in (("encoder", ours.encoder), ("decoder", ours.decoder)):
        placed[f"model.{side}.embed_positions.weight"] = table
        if pre:
            assert stack.norm is not None
            placed |= {f"model.{side}.layer_norm.{each}": getattr(stack.norm, each) for each in ("weight", "bias")}
        for number, layer in enumerate(stack.layers):
            at = f"model.{side}.layers.{number}"
            parts: dict[str, Any] = {
                "self_attn_layer_norm": layer.attention_norm, "self_attn.out_proj": layer.attention.join,
                "fc1": layer.feed_forward.inner, "fc2": layer.feed_forward.outer,
                "final_layer_norm": layer.feed_forward_norm,
            }  # fmt: skip
            sides = [("self_attn", layer.attention)]
            if layer.cross is not None:
                parts |= {"encoder_attn_layer_norm": layer.cross_norm, "encoder_attn.out_proj": layer.cross.join}
                sides.append(("encoder_attn", layer.cross))
            placed |= {f"{at}.{name}.{each}": getattr(part, each) for name, part in parts.items()
                       for each in ("weight", "bias")}  # fmt: skip
            for name, attention in sides:
                for each in ("weight", "bias"):
                    thirds = getattr(attention.project, each).chunk(3)
                    placed |= {f"{at}.{name}.{k}_proj.{each}": t for k, t in zip("qkv", thirds, strict=True)}
    tied = {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}
    if missing := set(theirs) - set(placed) - tied:
        raise SystemExit(f"not carried: {sorted(missing)}")
    for name, weight in placed.items():
        theirs[name].copy_(weight)


@torch.no_grad()
def _compare(ours: EncoderDecoder, theirs: Any, run: Run) -> None:
    ids = torch.tensor([run.translator.source_ids("Ein kleiner Test.")])
    read = torch.tensor([[run.tokenizer.specials.begin, 5, 9, 7]])
    expected = ours.logits(ours(ids, torch.tensor([ids.shape[1]]), read))
    apart = (theirs(input_ids=ids, decoder_input_ids=read).logits - expected).abs().max()
    if not apart < 1e-3 * expected.abs().max():
        raise SystemExit(f"transformers' logits differ from ours by {float(apart):.2g}: not the same weights")
