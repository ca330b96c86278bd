"""What a search is asked and what it answers: plain values, which may also travel between processes."""

from dataclasses import dataclass, field
from typing import NamedTuple

from regard.config import DecodingConfig
from regard.decoding.steps import CrossHead
from regard.decoding.tree import SearchTree
from regard.errors import InputError

Ids = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One sentence to write."""

    source: Ids = ()
    """what an encoder reads, end included; a decoder alone has none"""
    read: Ids
    """what the decoder reads first: begin, then pieces that the answer has to begin with; or a prompt"""
    limit: int
    """most pieces to write, the end included"""
    least: int = 0
    """fewest pieces to write before the end"""
    phrases: tuple[Ids, ...] = ()
    """runs of pieces that have to be written, each once"""
    key: int = 0
    """with the seed it decides what is drawn in sampling, whoever else is in the batch"""

    def __post_init__(self) -> None:
        """Refuse what nothing can be written for."""
        if not self.read:
            raise InputError("a request without read: the decoder has to read at least a begin")
        if self.limit < 1:
            raise InputError(f"a request of limit = {self.limit}: must be 1 or more")
        if not all(self.phrases):
            raise InputError("a request with an empty phrase: must be pieces")


@dataclass(frozen=True, kw_only=True)
class Search:
    """How all of them are searched: the options, and the ids that they speak of."""

    end: int
    """the piece that ends an answer"""
    options: DecodingConfig = field(default_factory=DecodingConfig)
    nbest: int = 1
    """answers wanted of each sentence, at most; a search that stops early answers for no more"""
    forbidden: tuple[Ids, ...] = ()
    """runs of pieces that are not written"""
    coverage_heads: tuple[CrossHead, ...] = ()
    """whose mean attention the coverage penalty counts"""
    tree: bool = False
    """whether each sentence's search tree is recorded"""

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        if self.nbest < 1:
            raise InputError(f"nbest = {self.nbest}: must be 1 or more")
        if self.nbest > self.width:
            name = "samples" if self.options.samples else "beam"
            raise InputError(f"nbest = {self.nbest}: a {name} of {self.width} finds no more than {self.width}")
        if self.options.coverage_penalty and not self.coverage_heads:
            raise InputError("decoding.coverage_penalty: no heads are stated whose attention it counts")

    @property
    def width(self) -> int:
        """Hypotheses of each sentence."""
        return self.options.samples or self.options.beam

    @property
    def groups(self) -> int:
        """Of a diverse beam; otherwise one."""
        return 1 if self.options.samples else self.options.groups


class Hypothesis(NamedTuple):
    """One answer."""

    ids: list[int]
    """pieces written: without what was read before, and without the end"""
    score: float
    """what ranks it: log-probability with the penalties of the options, over length to the power of the penalty"""
    logp: float
    """the model's own log-probability of what was written, end included if it ended"""
    ended: bool
    """whether it came to its end, or was cut at the limit"""
    guarded: bool = False
    """whether runaway repetition was stopped in it"""


class Found(NamedTuple):
    """What came of a request."""

    answers: list[Hypothesis]
    """best first"""
    tree: SearchTree | None
    """if it was asked for"""
