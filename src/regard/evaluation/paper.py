"""The sizes and the training cost that "Attention Is All You Need" reports, to hold ours against."""

from dataclasses import dataclass

from regard.config import model_preset
from regard.evaluation.cost import Work, cost
from regard.evaluation.flops import total
from regard.evaluation.parameters import parameters

PIECES = 37_000
"""of the paper's joint English-German vocabulary: "about 37000 tokens" """


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of Table 3: what it changes of the base model, and how many million parameters the paper gives it."""

    group: str
    preset: str = "base"
    changes: dict[str, object]
    million: int
    stated: bool = True
    """false where the paper leaves the count blank: as the base model's"""

    @property
    def ours(self) -> int:
        """Parameters of our model of this shape."""
        return total(parameters(model_preset(self.preset, vocabulary=PIECES, **self.changes)))

    @property
    def off(self) -> float:
        """How far our count is from the paper's, as a share of it."""
        return self.ours / (self.million * 1e6) - 1


TABLE_3 = (
    Row(group="base", changes={}, million=65),
    *(Row(group="A", changes={"heads": heads, "d_k": 512 // heads, "d_v": 512 // heads}, million=65, stated=False)
      for heads in (1, 4, 16, 32)),
    Row(group="B", changes={"d_k": 16}, million=58),
    Row(group="B", changes={"d_k": 32}, million=60),
    *(Row(group="C", changes={"encoder_layers": layers, "decoder_layers": layers}, million=million)
      for layers, million in ((2, 36), (4, 50), (8, 80))),
    Row(group="C", changes={"d_model": 256, "d_k": 32, "d_v": 32}, million=28),
    Row(group="C", changes={"d_model": 1024, "d_k": 128, "d_v": 128}, million=168),
    Row(group="C", changes={"d_ff": 1024}, million=53),
    Row(group="C", changes={"d_ff": 4096}, million=90),
    Row(group="E", changes={"positions": "learned"}, million=65, stated=False),
    Row(group="big", preset="big", changes={}, million=213),
)  # fmt: skip
"""The rows that change the shape; those of (D) change dropout and label smoothing, which have no parameters."""

GPUS = 8
P100_FLOPS = 9.5e12
"""operations a second that the paper credits a P100 with (its footnote 5)"""
BATCH_TOKENS = 25_000
"""of the source, and as many of the target, in a batch: "approximately" (its section 5.1)"""
SENTENCE_TOKENS = 25
"""of a mean sentence: our assumption. Only attention depends on it: twice as long adds 0.7 % to base"""


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training run of Table 2."""

    preset: str
    hours: float
    steps: int
    stated: float
    """operations that the paper gives"""

    @property
    def from_time(self) -> float:
        """The paper's way: the time, times the GPUs, times what one GPU could do in it."""
        return self.hours * 3600 * GPUS * P100_FLOPS

    @property
    def from_model(self) -> int:
        """What the model's own matrix products take: forward and backward, times the steps."""
        work = Work(batch=BATCH_TOKENS // SENTENCE_TOKENS, length=SENTENCE_TOKENS)
        return self.steps * cost(model_preset(self.preset, vocabulary=PIECES), work).training


TABLE_2 = (
    Training(preset="base", hours=12, steps=100_000, stated=3.3e18),
    Training(preset="big", hours=3.5 * 24, steps=300_000, stated=2.3e19),
)
