"""Translation: pairs of texts, an encoder-decoder, smoothed cross-entropy, BLEU, beam search."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.config import DataConfig, Recipe
from regard.data import PairBatch, PairStore, Ragged, pair_batch, text_pairs
from regard.decoding import step_model
from regard.errors import InputError
from regard.models import EncoderDecoder, build_model
from regard.nn.consistency import divergence
from regard.nn.loss import cross_entropy
from regard.runs.folder import SOURCE_TOKENS, TARGET_TOKENS
from regard.tasks.translator import Asked, Translator
from regard.text import TextPair, Tokenizer, load_tokenizer, train_tokenizer, training_sets
from regard.training.checkpoint import CHECKPOINTS
from regard.training.precision import choose_precision

Say = Callable[[str], None]

VALID_SENTENCES = 1000
"""of the validation text, at most, that are translated each time"""


class TranslateJob:
    """What the training loop asks of translation."""

    goal = ("bleu", True)

    def __init__(self, recipe: Recipe, out: Path, say: Say, *, device: torch.device) -> None:
        """Learn the tokenisers and prepare the data, or find them as an earlier start left them."""
        check_recipe(recipe)
        self.tokenizer, self.source_tokenizer = _tokenizers(recipe, out, say)
        source_size = None if self.source_tokenizer is self.tokenizer else self.source_tokenizer.size
        sizes = replace(recipe.model, vocabulary=self.tokenizer.size, source_vocabulary=source_size)
        self.recipe = replace(recipe, model=sizes)
        room = recipe.model.max_length - 2  # of a source its tag and its end, of a target its begin or its end
        self.store = PairStore.open(
            replace(recipe.data, max_length=min(recipe.data.max_length, room)), self.tokenizer, folder=out / "data",
            source_tokenizer=self.source_tokenizer, sampling=recipe.tokens.sampling, report=say,
        )  # fmt: skip
        if self.store.made and any((out / CHECKPOINTS).glob("step-*")):
            say("data: prepared anew: the text is not what it was when the run began, or what was prepared was damaged")
        say(f"data: {self.store.report}")
        if not len(self.store):
            raise InputError(f"data.train = {list(recipe.data.train)}: no pair is left to learn from")
        self.weights = tuple(data_set.weight for data_set in training_sets(recipe.data))
        self.valid = self._valid_pairs(room, say)
        if not self.valid:
            self.goal = ("loss", False)
        torch.manual_seed(recipe.training.seed)
        model = build_model(self.recipe.model)
        assert isinstance(model, EncoderDecoder)
        self.model = model.to(device)
        self.device = device
        self.precision = choose_precision(recipe.training.precision, device)

    def _valid_pairs(self, room: int, say: Say) -> list[TextPair]:
        """The validation text, without the pairs that are longer than the model reads."""
        data = self.recipe.data
        pairs = list(text_pairs(data, data.valid, tag=data.tag)) if data.valid else []
        sources = self.source_tokenizer.encode_all([pair.source for pair in pairs])
        targets = self.tokenizer.encode_all([pair.target for pair in pairs])
        fit = [max(len(source), len(target)) <= room for source, target in zip(sources, targets, strict=True)]
        if not all(fit):
            say(f"data.valid: {fit.count(False):,} of {len(fit):,} pairs are longer than {room:,} pieces: not watched")
        return [pair for pair, fits in zip(pairs, fit, strict=True) if fits]

    def loss(self, batch: PairBatch) -> tuple[Tensor, Tensor]:
        """Teacher forcing: every next piece from the right ones before it; with R-Drop, twice at once."""
        r_drop = self.recipe.training.r_drop if self.model.training else 0.0
        batch = (batch.twice() if r_drop else batch).to(self.device)
        states = self.model(batch.source, batch.source_lengths, batch.target_in)
        places = torch.arange(batch.target_in.shape[1], device=self.device)
        real = (places < batch.target_lengths[:, None]).flatten().nonzero()[:, 0]
        weight, bias = self.model.output
        smoothing = self.recipe.training.label_smoothing if self.model.training else 0.0
        told = states.flatten(0, 1)[real]
        total, plain = cross_entropy(told, batch.target_out.flatten()[real], weight, bias, smoothing=smoothing)
        if not r_drop:
            return total, plain
        first, second = told.chunk(2)
        return total / 2 + r_drop / 4 * divergence(first, second, weight, bias), plain / 2

    def validate(self) -> dict[str, float]:
        """Loss a piece, and of the greedily translated text BLEU and chrF; without validation text, training's loss."""
        if not self.valid:
            batch = self.store.batch(np.arange(min(len(self.store), 256)))
            return {"loss": float(self.loss(batch)[1]) / batch.tokens}
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        total, tokens = 0.0, 0
        for batch in self._valid_batches():
            total += float(self.loss(batch)[1])
            tokens += batch.tokens
        some = self.valid[:VALID_SENTENCES]
        translator = Translator(
            self.model, self.tokenizer, self.source_tokenizer, self.recipe,
            writer=step_model(self.model, self.precision.name),
        )  # fmt: skip
        made = [
            found[0].text
            for found in translator.translate(
                [Asked(text=pair.source, tag=pair.tag) for pair in some],
                replace(self.recipe.decoding, beam=1, groups=1),
            )
        ]
        right = [[pair.target for pair in some]]
        return {
            "loss": total / tokens,
            "bleu": BLEU().corpus_score(made, right).score,
            "chrf": CHRF(word_order=2).corpus_score(made, right).score,
        }

    def _valid_batches(self) -> Iterator[PairBatch]:
        sources = encode_sources(self.source_tokenizer, [(p.source, p.tag) for p in self.valid])
        targets = self.tokenizer.encode_all([pair.target for pair in self.valid])
        order = sorted(range(len(sources)), key=lambda row: (len(targets[row]), len(sources[row])))
        for start in range(0, len(order), 128):
            rows = order[start : start + 128]
            source = Ragged.of([np.array(sources[row], dtype=np.int32) for row in rows])
            yield pair_batch(
                source, Ragged.of([targets[row] for row in rows]), np.array(rows),
                source_specials=self.source_tokenizer.specials, specials=self.tokenizer.specials,
            )  # fmt: skip


def encode_sources(tokenizer: Tokenizer, rows: Sequence[tuple[str, str | None]]) -> list[list[int]]:
    """Ids of source texts, each with its tag in front if it has one; the end comes with the batch."""
    cuts = tokenizer.encode_all([text for text, _ in rows])
    return [
        [*([] if tag is None else [tokenizer.tag_id(tag)]), *map(int, cut)]
        for (_, tag), cut in zip(rows, cuts, strict=True)
    ]


def check_recipe(recipe: Recipe) -> None:
    """Refuse what only translation minds."""
    if not recipe.data.train and not recipe.data.sets:
        raise InputError('data.train is not stated: add train = ["train.fr", "train.en"] under [data]')
    if recipe.model.max_length < 3:
        raise InputError(
            f"model.max_length = {recipe.model.max_length}: must be 3 or more, for a tag, a piece and the end"
        )
    if not recipe.tokens.joint and recipe.model.embeddings == "tied_all":
        raise InputError(
            "tokens.joint = false: source and target then share no pieces; set model.embeddings = 'tied_output'"
        )


def _tokenizers(recipe: Recipe, out: Path, say: Say) -> tuple[Tokenizer, Tokenizer]:
    """The run's tokenisers (target's, source's): those in the folder, else learned from the training text."""
    if any(out.glob(f"{TARGET_TOKENS}.*")):
        tokenizer = load_tokenizer(out, TARGET_TOKENS)
        return tokenizer, tokenizer if recipe.tokens.joint else load_tokenizer(out, SOURCE_TOKENS)
    tags = (
        sorted({pair.tag for pair in _training_pairs(recipe.data) if pair.tag is not None})
        if _has_tags(recipe.data)
        else []
    )
    if recipe.tokens.joint:
        texts = (text for pair in _training_pairs(recipe.data) for text in (pair.source, pair.target))
        tokenizer = train_tokenizer(texts, recipe.tokens, tags, say)
        source = tokenizer
    else:
        source = train_tokenizer((pair.source for pair in _training_pairs(recipe.data)), recipe.tokens, tags, say)
        source.save(out, SOURCE_TOKENS)
        tokenizer = train_tokenizer((pair.target for pair in _training_pairs(recipe.data)), recipe.tokens, [], say)
    tokenizer.save(out, TARGET_TOKENS)
    say(
        f"tokens: {tokenizer.size:,} {recipe.tokens.kind} pieces"
        + ("" if source is tokenizer else f", source {source.size:,}")
    )
    return tokenizer, source


def _has_tags(data: DataConfig) -> bool:
    return data.tag_field is not None or any(data_set.tag is not None for data_set in training_sets(data))


def _training_pairs(data: DataConfig) -> Iterator[TextPair]:
    for data_set in training_sets(data):
        yield from text_pairs(data, data_set.files, tag=data_set.tag)
