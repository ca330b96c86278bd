"""How a trained model is asked for its answers: the options of `regard.decoding`, defined in docs/decoding.md."""

from dataclasses import dataclass
from typing import Literal

from regard.errors import InputError


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How the trained model is asked for its answer."""

    beam: int = 5
    """hypotheses kept at each step; 1: greedy"""
    length_penalty: float = 1.0
    """exponent of the length that scores are divided by: 0 favours short answers, 1 is the mean over pieces"""
    length_norm: Literal["average", "gnmt"] = "average"
    """the length that is meant: its pieces, or (5 + pieces) / 6 as Google's translator had it"""
    stopping: Literal["safe", "likely", "full"] = "safe"
    """when a sentence is over: nothing unfinished can win; nothing does at its present length; `beam` answers ended"""
    coverage_penalty: float = 0.0
    """weight of Google's penalty for source pieces that no attention went to; 0: none"""
    groups: int = 1
    """of a diverse beam: each is searched by itself, and shuns what those before it chose; must divide the beam"""
    diversity: float = 0.5
    """what a piece loses for each earlier group that chose it at the same step"""
    repetition_penalty: float = 1.0
    """scores of pieces that were written already are divided by this, or multiplied if negative; 1: none"""
    no_repeat_ngram: int = 0
    """no run of so many pieces is written twice; 0: none"""
    guard: bool = True
    """stop runaway repetition: 16 pieces and four times the same, where the source does nothing like it"""
    min_length: int = 0
    """fewest pieces of an answer"""
    min_ratio: float = 0.0
    """fewest pieces for each piece of the source"""
    max_length: int | None = None
    """most pieces of an answer, its end included; none: max_ratio says it"""
    max_ratio: float = 2.0
    """most pieces for each piece of the source, and 20 more"""
    samples: int = 0
    """draw so many answers at random instead of searching the best; 0: search"""
    temperature: float = 1.0
    """of sampling: scores are divided by it; below 1 it is bolder"""
    top_k: int = 0
    """sample among so many likeliest pieces; 0: all"""
    top_p: float = 1.0
    """sample among the likeliest pieces that together have this probability"""
    min_p: float = 0.0
    """sample among pieces that have this share of the likeliest one's probability"""
    seed: int = 1
    """of sampling"""
    mbr: bool = False
    """of the samples, answer with the one most like all others by chrF (minimum Bayes risk); 32 if none are stated"""
    forbid: tuple[str, ...] = ()
    """words or phrases that are not written"""
    unknown: Literal["keep", "forbid", "replace"] = "keep"
    """the unknown piece: written as it is, never written, or replaced by the source word that it looks at"""
    alignment_heads: tuple[str, ...] = ()
    """heads of cross-attention that align, each LAYER.HEAD; none: those that tell most about the training text"""
    precision: Literal["auto", "float32", "bf16", "int8"] = "auto"
    """what products are computed in on a processor: auto is bf16 where it has instructions for it, else int8, else
    float32; a GPU and what the compiled kernel does not know take the model's own"""
    batch_rows: int = 320
    """most hypotheses that are written together"""
    batch_tokens: int = 8192
    """most source pieces, padding included, that are read together"""

    def __post_init__(self) -> None:
        """Refuse what nothing can be written with."""
        for name, least in (
            ("beam", 1), ("length_penalty", 0), ("coverage_penalty", 0), ("groups", 1), ("diversity", 0),
            ("no_repeat_ngram", 0), ("min_length", 0), ("min_ratio", 0), ("samples", 0), ("top_k", 0), ("seed", 0),
            ("batch_rows", 1), ("batch_tokens", 1),
        ):  # fmt: skip
            if getattr(self, name) < least:
                raise InputError(f"decoding.{name} = {getattr(self, name)}: must be {least} or more")
        for name in ("repetition_penalty", "max_ratio", "temperature"):
            if getattr(self, name) <= 0:
                raise InputError(f"decoding.{name} = {getattr(self, name)}: must be above 0")
        if self.max_length is not None and self.max_length < 1:
            raise InputError(f"decoding.max_length = {self.max_length}: must be 1 or more")
        if not 0 < self.top_p <= 1:
            raise InputError(f"decoding.top_p = {self.top_p}: must be above 0 and at most 1")
        if not 0 <= self.min_p <= 1:
            raise InputError(f"decoding.min_p = {self.min_p}: must be from 0 to 1")
        if self.beam % self.groups:
            raise InputError(f"decoding.groups = {self.groups}: must divide decoding.beam = {self.beam}")
        for head in self.alignment_heads:
            numbers = head.split(".")
            if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
                raise InputError(f"decoding.alignment_heads {head!r}: must be LAYER.HEAD, such as 3.0")
