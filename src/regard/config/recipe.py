"""A recipe: all that a training run needs to know, read from TOML and from the command line.

Every key has one default, here or in the preset it names; only `task` and `data.train` must be stated.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from regard.config.decoding import DecodingConfig
from regard.config.model import Family, ModelConfig, Values, preset_values
from regard.config.plain import build, to_plain, to_toml
from regard.config.start import started
from regard.errors import InputError, nearest

Task = Literal["translate", "generate", "classify"]

FAMILY_OF_TASK: dict[str, Family] = {
    "translate": "encoder-decoder",
    "generate": "decoder-only",
    "classify": "encoder-only",
}


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """One more set of training text."""

    files: tuple[str, ...]
    """parallel files, or one .tsv or .jsonl (.gz too)"""
    weight: float = 1.0
    """how often its lines come, beside the first set's 1"""
    tag: str | None = None
    """put before each source text, such as <2tr>: the language to translate into"""

    def __post_init__(self) -> None:
        """Refuse a set that is never drawn from."""
        if self.weight <= 0:
            raise InputError(f"data.sets weight = {self.weight}: must be above 0")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Where the text is and which of it is used."""

    train: tuple[str, ...] = ()
    """parallel files, or one .tsv or .jsonl (.gz too)"""
    valid: tuple[str, ...] = ()
    """like train: watched while training"""
    test: tuple[str, ...] = ()
    """like train: scored once at the end"""
    valid_share: float = 0.0
    """generate: share at the end of each training set that is held out and watched, where valid is not stated"""
    continuous: bool | None = None
    """generate: prompts go on from any place of a text, and have no begin before them; none: if most text is long"""
    sets: tuple[DataSet, ...] = ()
    """more training sets, each a [[data.sets]] table with files, weight and tag"""
    tag: str | None = None
    """put before each source text, such as <2tr>: the language to translate into"""
    tag_field: str | None = None
    """column number or JSON key that holds each line's tag"""
    source_field: str = "1"
    """column number (of a .tsv) or JSON key of the source text; in .jsonl a number stands for the key source"""
    target_field: str = "2"
    """column number (of a .tsv) or JSON key of the target text; in .jsonl a number stands for the key target;
    classify: of the label"""
    second_field: str | None = None
    """classify: column number or JSON key of a second text, where two texts have one label"""
    labels: tuple[str, ...] = ()
    """classify: all labels in their order; none: those of the training text, sorted"""
    several_labels: bool | None = None
    """classify: a text may have any number of labels; none: as the training text shows"""
    max_length: int = 256
    """longest text in pieces; longer ones are counted and left out of training (generate: read in windows so long)"""
    max_ratio: float | None = None
    """leave out pairs one side of which has this many times the other's pieces"""
    drop_duplicates: bool = False
    """leave out pairs that stood before"""
    drop_copies: bool = False
    """leave out pairs whose two sides are the same"""
    lowercase: bool = False
    """read all text in lower case"""

    def __post_init__(self) -> None:
        """Refuse limits that leave nothing."""
        if self.max_length < 1:
            raise InputError(f"data.max_length = {self.max_length}: must be 1 or more")
        if self.max_ratio is not None and self.max_ratio < 1:
            raise InputError(f"data.max_ratio = {self.max_ratio}: must be 1 or more")
        if not 0 <= self.valid_share < 1:
            raise InputError(f"data.valid_share = {self.valid_share}: must be at least 0 and below 1")
        if self.tag is not None and self.tag_field is not None:
            raise InputError(
                f"data.tag = {self.tag!r} and data.tag_field = {self.tag_field!r}: state one of them; "
                "each of data.sets may have a tag of its own"
            )
        if len(set(self.labels)) < len(self.labels):
            twice = next(label for label in self.labels if self.labels.count(label) > 1)
            raise InputError(f"data.labels: {twice!r} stands twice")


@dataclass(frozen=True, kw_only=True)
class TokensConfig:
    """How text is cut into pieces."""

    kind: Literal["bpe", "unigram", "word", "char", "byte", "wordpiece"] = "bpe"
    """bpe and unigram learn pieces from the training text; word, char and byte take what they are called; wordpiece
    comes with an imported model"""
    size: int = 8000
    """pieces to learn (bpe, unigram, word); a small text may give fewer"""
    joint: bool = True
    """one vocabulary for source and target"""
    byte_fallback: bool = True
    """spell characters that were never seen in bytes, so that any text comes back exactly"""
    sampling: float = 0.0
    """cut training text anew each time; bpe: share of merges left out; unigram: s, for probability to the (1/s - 1)"""

    def __post_init__(self) -> None:
        """Refuse sizes and shares out of range."""
        if self.size < 8:
            raise InputError(f"tokens.size = {self.size}: must be 8 or more")
        if not 0 <= self.sampling < 1:
            raise InputError(f"tokens.sampling = {self.sampling}: must be at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """What to start from, what to learn, how long, how fast and how carefully."""

    start_from: str | None = None
    """run folder (imported ones too) whose model, weights and pieces are gone on with; none: first values"""
    freeze: tuple[str, ...] = ()
    """weights that do not learn: their names or beginnings of them, such as pieces, embedding, encoder.layers.0"""
    objective: Literal["task", "masked", "contrastive"] = "task"
    """classify: the labels; or, before them, hidden pieces of plain text (BERT), or the two texts of each pair"""
    hidden_share: float = 0.15
    """masked: share of the pieces that are to be told; of these 80 % are hidden, 10 % are others, 10 % stay"""
    whole_words: bool = False
    """masked: hide all pieces of a word together"""
    temperature: float = 0.05
    """contrastive: what cosines are divided by"""
    class_weights: Literal["equal", "balanced"] = "equal"
    """classify: whether every text counts the same, or every label"""
    minutes: float | None = None
    """stop after this time; the first limit reached counts, and without any it is 10 epochs"""
    steps: int | None = None
    """stop after this many updates"""
    epochs: float | None = None
    """stop after this many passes over the data"""
    tokens_per_batch: int = 4096
    """target pieces of an update, padding included"""
    accumulate: int = 1
    """parts that each update's batch is computed in, to save memory"""
    learning_rate: float = 1e-3
    """the schedule's peak; the paper schedule computes its own and multiplies it by this"""
    schedule: Literal["paper", "inverse_sqrt", "cosine", "linear", "constant"] = "cosine"
    """how the learning rate falls after the warm-up"""
    final_rate: float = 0.0
    """share of the peak at which cosine and linear end, which fall from the end of the warm-up"""
    warmup: int = 500
    """updates over which the learning rate rises"""
    beta1: float = 0.9
    """Adam: decay of the mean gradient"""
    beta2: float = 0.98
    """Adam: decay of the mean square"""
    epsilon: float = 1e-9
    """Adam: added to the root of the mean square"""
    weight_decay: float = 0.0
    """AdamW's: share of each matrix taken away an update, times the learning rate"""
    clip: float | None = 1.0
    """longest gradient; a longer one is shortened"""
    ema: float = 0.0
    """decay of a mean of the weights over time, which is then what is kept; 0: none"""
    label_smoothing: float = 0.1
    """share of the target's probability spread over all pieces"""
    r_drop: float = 0.0
    """R-Drop's α: how much two passes with different dropout must agree; doubles an update's time; 0: one pass"""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """of the products: auto measures whether bf16 is faster here"""
    shard: bool = False
    """with several processes, each keeps a share of the weights and of the optimizer (FSDP2) instead of all (DDP)"""
    valid_every: int | None = None
    """updates between validations; none: some fifteen over the run"""
    patience: int | None = None
    """stop after this many validations without a better score"""
    checkpoint_minutes: float = 5.0
    """longest time between checkpoints"""
    snapshots: int = 5
    """of so many of the newest validations the weights are kept, for regard average"""
    tensorboard: bool = False
    """write losses, rates and scores into RUN/tensorboard too (needs regard[tensorboard])"""
    seed: int = 1
    """of first weights, order of data and dropout"""

    def __post_init__(self) -> None:
        """Refuse values that cannot train."""
        for name in ("minutes", "steps", "epochs", "clip", "valid_every", "patience"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InputError(f"training.{name} = {value}: must be above 0")
        for name in (
            "tokens_per_batch", "accumulate", "learning_rate", "epsilon", "checkpoint_minutes", "temperature"
        ):  # fmt: skip
            if getattr(self, name) <= 0:
                raise InputError(f"training.{name} = {getattr(self, name)}: must be above 0")
        if not 0 < self.hidden_share < 1:
            raise InputError(f"training.hidden_share = {self.hidden_share}: must be above 0 and below 1")
        for name in ("final_rate", "label_smoothing", "beta1", "beta2", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"training.{name} = {getattr(self, name)}: must be at least 0 and below 1")
        for name in ("warmup", "weight_decay", "r_drop", "snapshots"):
            if getattr(self, name) < 0:
                raise InputError(f"training.{name} = {getattr(self, name)}: must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All of it."""

    task: Task
    """what the model is for"""
    data: DataConfig = field(default_factory=DataConfig)
    tokens: TokensConfig = field(default_factory=TokensConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def to_toml(self) -> str:
        """The resolved recipe: every value stated, so that reading it needs no preset."""
        return to_toml(to_plain(self))


DEFAULT_PRESET = "small"
PAPER_TRAINING: Values = {"schedule": "paper", "learning_rate": 1.0, "warmup": 4000, "clip": None}
"""How "Attention Is All You Need" trained its base and big models."""
TASK_TRAINING: dict[str, Values] = {"generate": {"label_smoothing": 0.0}, "classify": {"label_smoothing": 0.0}}
"""What a task trains with unless the recipe says otherwise: perplexity and calibration are of the text as it is."""


def recipe_from(values: Mapping[str, object]) -> Recipe:
    """A recipe from nested plain values; `model.preset` fills what is not stated."""
    table = {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}
    if "task" not in table:
        raise InputError('task is not stated: add task = "translate" at the top of the recipe')
    task = str(table["task"])
    if task not in FAMILY_OF_TASK:
        raise InputError(f"task = {task!r}: {nearest(task, FAMILY_OF_TASK)}")
    model = table.get("model", {})
    if not isinstance(model, dict):
        raise InputError(f"model = {model!r}: must be a table")
    preset = str(model.get("preset", DEFAULT_PRESET))
    training = table.get("training", {})
    start = training.get("start_from", "none") if isinstance(training, dict) else "none"
    if start == "none":
        table["model"] = {"family": FAMILY_OF_TASK[task], **model_values(model)}
    else:
        table = started({**table, "model": {"family": FAMILY_OF_TASK[task], **model}}, str(start))
    if preset in ("base", "big") and isinstance(training, dict):
        training = {**PAPER_TRAINING, **training}
    if isinstance(training, dict):
        table["training"] = {**TASK_TRAINING.get(task, {}), **training}
    return build(Recipe, table)


def model_values(stated: Mapping[str, object]) -> Values:
    """The model's values: its preset's, then those stated."""
    rest = dict(stated)
    preset = str(rest.pop("preset", DEFAULT_PRESET))
    return {**preset_values(preset), **rest}


def model_preset(name: str, **changes: object) -> ModelConfig:
    """The model that a preset describes, with any field changed."""
    return build(ModelConfig, {**preset_values(name), **changes}, where="model.")


def read_recipe(path: str | Path, overrides: Mapping[str, object] | None = None) -> Recipe:
    """The recipe in a TOML file; `overrides` are nested like it and win."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such recipe") from None
    except (IsADirectoryError, PermissionError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a recipe: {error}") from None
    try:
        values = tomllib.loads(text)
    except ValueError as error:  # beside what is not TOML, numbers of more than 4,300 digits
        raise InputError(f"{path}: not TOML: {error}") from None
    try:
        return _located(recipe_from(merge(values, overrides or {})))
    except InputError as error:
        raise InputError(f"{path}{' with the options given' if overrides else ''}: {error}") from None


def _located(recipe: Recipe) -> Recipe:
    """With what the recipe calls data/NAME/… found where REGARD_DATA says, unless it is here."""
    folder = os.environ.get("REGARD_DATA")
    if not folder:
        return recipe

    def found(names: tuple[str, ...]) -> tuple[str, ...]:
        there = (Path(folder, *Path(name).parts[1:]) if name.startswith("data/") else Path(name) for name in names)
        return tuple(
            str(path) if not Path(name).exists() and path.exists() else name
            for name, path in zip(names, there, strict=True)
        )

    data = recipe.data
    sets = tuple(replace(data_set, files=found(data_set.files)) for data_set in data.sets)
    return replace(
        recipe, data=replace(data, train=found(data.train), valid=found(data.valid), test=found(data.test), sets=sets)
    )


def merge(values: Mapping[str, object], overrides: Mapping[str, object]) -> dict[str, object]:
    """`values` with the leaves of `overrides` put over theirs."""
    merged = dict(values)
    for name, value in overrides.items():
        below = merged.get(name)
        merged[name] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged
