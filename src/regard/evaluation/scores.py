"""Scores of translations by sacreBLEU: BLEU, chrF2++ and TER with signatures, and whether two systems differ.

Texts in, numbers out: where the texts come from is not known here. TER counts edits, so less is better.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from regard.errors import InputError

if TYPE_CHECKING:  # sacreBLEU is imported where it is used: its 0.1 s would be felt by --help
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

Tokenization = Literal["13a", "none", "char", "intl", "zh", "ja-mecab", "ko-mecab"]
"""How BLEU cuts text into words: those of sacreBLEU's ways that fetch nothing from elsewhere."""
TOKENIZATIONS: tuple[str, ...] = get_args(Tokenization)
RESAMPLES = 1000
"""of the paired bootstrap, as sacreBLEU has it"""


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How to score."""

    tokenize: Tokenization = "13a"
    """how BLEU cuts text into words"""
    lowercase: bool = False
    """whether BLEU and chrF take all text in lower case; TER always does"""


@dataclass(frozen=True, kw_only=True)
class Score:
    """One metric's answer for a whole text."""

    name: str
    value: float
    signature: str
    """all that decides the value, to be quoted with it"""
    details: str = ""
    """BLEU's precisions and lengths"""


@dataclass(frozen=True, kw_only=True)
class SentenceScore:
    """The same metrics on one sentence; BLEU there counts only the orders that the sentence has."""

    bleu: float
    chrf: float
    ter: float


@dataclass(frozen=True, kw_only=True)
class Scores:
    """All of a text's scores."""

    bleu: Score
    chrf: Score
    ter: Score
    sentences: tuple[SentenceScore, ...]

    @property
    def whole(self) -> tuple[Score, ...]:
        """Those of the whole text."""
        return self.bleu, self.chrf, self.ter


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A score as the resamples show it: `mean` ± `margin` holds 95 of 100."""

    value: float
    mean: float
    margin: float


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One metric of two systems on the same sentences."""

    name: str
    ours: Estimate
    theirs: Estimate
    p: float
    """how often chance alone would show so large a difference"""
    signature: str


def score(hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring | None = None) -> Scores:
    """The scores of hypotheses against a reference each."""
    scoring = scoring or Scoring()
    _check(hypotheses, references)
    bleu, chrf, ter = _metrics(scoring)
    of_one = _bleu(scoring, effective_order=True)
    whole = []
    for metric in (bleu, chrf, ter):
        found = metric.corpus_score(hypotheses, [references])
        details = getattr(found, "_verbose", "") if metric is bleu else ""
        signature = metric.get_signature().format()
        whole.append(Score(name=found.name, value=found.score, signature=signature, details=details))
    sentences = tuple(
        SentenceScore(
            bleu=of_one.sentence_score(made, [right]).score,
            chrf=chrf.sentence_score(made, [right]).score,
            ter=ter.sentence_score(made, [right]).score,
        )
        for made, right in zip(hypotheses, references, strict=True)
    )
    return Scores(bleu=whole[0], chrf=whole[1], ter=whole[2], sentences=sentences)


def compare(
    ours: Sequence[str], theirs: Sequence[str], references: Sequence[str], scoring: Scoring | None = None,
    *, resamples: int = RESAMPLES,
) -> tuple[Difference, ...]:  # fmt: skip
    """Paired bootstrap resampling (Koehn 2004), by sacreBLEU: the same draws of sentences score both systems.

    The seed is sacreBLEU's, 12345 unless the environment's SACREBLEU_SEED says another, and part of the signature.
    """
    _check(ours, references)
    _check(theirs, references)
    _check_seed()
    from sacrebleu.significance import PairedTest

    metrics = {str(number): metric for number, metric in enumerate(_metrics(scoring or Scoring()))}
    systems = [("theirs", theirs), ("ours", ours)]  # sacreBLEU's first system is the baseline
    signatures, results = PairedTest(systems, metrics, [references], test_type="bs", n_samples=resamples)()
    found: dict[str, Any] = dict(results)  # by metric, beside the systems' names
    differences = []
    for name, signature in signatures.items():
        baseline, system = found[name]
        differences.append(
            Difference(
                name=name,
                ours=Estimate(value=system.score, mean=float(system.mean), margin=float(system.ci)),
                theirs=Estimate(value=baseline.score, mean=float(baseline.mean), margin=float(baseline.ci)),
                p=system.p_value,
                signature=signature.format(),
            )
        )
    return tuple(differences)


def _metrics(scoring: Scoring) -> tuple["BLEU", "CHRF", "TER"]:
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    return _bleu(scoring), CHRF(word_order=2, lowercase=scoring.lowercase), TER()


def _bleu(scoring: Scoring, *, effective_order: bool = False) -> "BLEU":
    from sacrebleu.metrics.bleu import BLEU

    try:
        return BLEU(tokenize=scoring.tokenize, lowercase=scoring.lowercase, effective_order=effective_order)
    except (RuntimeError, ImportError) as error:  # a dictionary of words that is not installed
        raise InputError(f"tokenize = {scoring.tokenize!r}: {' '.join(str(error).split())}") from None


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if not references:
        raise InputError("nothing to score: there are no sentences")
    if len(hypotheses) != len(references):
        raise InputError(f"{len(hypotheses):,} hypotheses and {len(references):,} references: must be as many")


def _check_seed() -> None:
    """Refuse a seed that cannot be repeated; sacreBLEU takes 0 for none but writes seed:0."""
    stated = os.environ.get("SACREBLEU_SEED", "12345")
    if not stated.isdecimal() or int(stated) == 0:
        raise InputError(f"SACREBLEU_SEED = {stated!r}: must be a whole number of 1 or more, to give the same again")
