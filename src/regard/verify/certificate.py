"""The certificate: named equalities, each measured on a subject and held against its bound.

This file knows no equality and no model. An equality is a function that measures some cases; the certificate keeps the
worst of them. What could not be measured (an exception, or a difference that is no number) does not hold.
"""

import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version

import torch
from torch import Tensor

from regard.verify.subject import Subject

FORMAT = 1
"""version of the JSON form"""
COLUMNS = 100
"""the widest line that people are shown"""

Measured = Iterator[tuple[str, float]]
"""Cases by name, with the difference that was measured in each."""


@dataclass(frozen=True, kw_only=True)
class Equality:
    """Two ways to one result, and how far apart they may come out."""

    name: str
    says: str
    """what is claimed, in a line"""
    bound: float
    """largest difference that counts as equal in float32; 0: to the last bit"""
    measure: Callable[[Subject], Measured]
    """measures every case that the subject offers; none: the equality does not apply to it"""
    tells: bool = False
    """whether its cases are figures that are shown, hold or not"""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of one equality."""

    name: str
    says: str
    cases: int
    worst: str
    """the case with the largest difference"""
    difference: float
    """the largest difference; not a number if something could not be measured"""
    bound: float
    held: bool
    seconds: float
    error: str | None = None
    """why it could not be measured"""
    figures: tuple[str, ...] = ()
    """its cases, of an equality that tells them"""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where it was measured."""

    regard: str
    torch: str
    python: str
    system: str
    processor: str
    device: str
    threads: int
    dtype: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """All results of one subject."""

    subject: str
    environment: Environment
    results: tuple[Result, ...]

    @property
    def held(self) -> bool:
        """Whether every equality holds."""
        return all(result.held for result in self.results)

    def to_plain(self) -> dict[str, object]:
        """For JSON, which has no NaN: a difference that is no finite number is null there."""
        results = [asdict(result) for result in self.results]
        for plain in results:
            if not math.isfinite(plain["difference"]):
                plain["difference"] = None
        return {
            "format": FORMAT, "subject": self.subject, "held": self.held, "environment": asdict(self.environment),
            "results": results,
        }  # fmt: skip


def difference(one: Tensor, other: Tensor, *, by_largest: bool = False) -> float:
    """The largest difference of two tensors, each relative to max(1, |other|); NaN if a NaN is anywhere.

    `by_largest`: relative to the largest of the other's values. That is for gradients of weights that every pair of
    positions shares: sums of thousands of terms, of which one that comes out near zero keeps the rounding of them all.
    """
    if one.shape != other.shape:
        raise ValueError(f"shapes {tuple(one.shape)} and {tuple(other.shape)} differ")
    if not one.numel():
        return 0.0
    left, right = one.detach().double(), other.detach().double()
    scale = right.abs().max() if by_largest else right.abs()
    return float(((left - right).abs() / scale.clamp(min=1)).max())


def bound_in(dtype: torch.dtype, bound: float) -> float:
    """An equality's bound in another type: one with fewer digits may differ by 16 of its steps; exact stays exact."""
    coarser = torch.finfo(dtype).eps > torch.finfo(torch.float32).eps
    return max(bound, 16 * torch.finfo(dtype).eps) if coarser and bound else bound


def certify(
    subject: Subject, equalities: Iterable[Equality], *, told: Callable[[Result], object] | None = None
) -> Certificate:
    """Measure every equality that applies to the subject; `told` hears of each as it is done."""
    results = []
    for equality in equalities:
        result = measure(equality, subject)
        if result is not None:
            results.append(result)
            if told:
                told(result)
    return Certificate(subject=subject.name, environment=environment(subject), results=tuple(results))


def measure(equality: Equality, subject: Subject) -> Result | None:
    """One equality on one subject; none if it does not apply."""
    started = time.perf_counter()
    cases, worst, largest, error = 0, "", -math.inf, None
    figures: list[str] = []
    try:
        for name, value in equality.measure(subject):
            cases += 1
            if equality.tells:
                figures.append(name)
            if math.isnan(value) or value > largest:
                worst, largest = name, value
            if math.isnan(value):
                error = f"{name}: not a number"
                break
    except Exception as raised:  # whatever stops a measurement, the equality was not shown to hold
        worst, largest = worst or "first case", math.nan
        error = f"after {cases} cases: {type(raised).__name__}: {raised}"
    if not cases and error is None:
        return None
    bound = bound_in(subject.dtype, equality.bound)
    return Result(
        name=equality.name, says=equality.says, cases=cases, worst=worst, difference=largest, bound=bound,
        held=largest <= bound, seconds=time.perf_counter() - started, error=error, figures=tuple(figures),
    )  # fmt: skip


def environment(subject: Subject) -> Environment:
    """What the numbers may depend on."""
    cpu = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    on_gpu = subject.device.type == "cuda"
    return Environment(
        regard=version("regard"),
        torch=torch.__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {os.uname().release}" if hasattr(os, "uname") else platform.system(),
        processor=torch.cuda.get_device_name(subject.device) if on_gpu else cpu,
        device=str(subject.device),
        threads=torch.get_num_threads(),
        dtype=str(subject.dtype).removeprefix("torch."),
        seed=subject.seed,
    )


def heading(subject: Subject, equalities: Sequence[Equality]) -> str:
    """What is shown above the results."""
    where = environment(subject)
    width = name_width(equalities)
    return "\n".join([
        subject.name,
        f"regard {where.regard}, torch {where.torch}, Python {where.python}, {where.processor}, {where.device}, "
        f"threads: {where.threads}, {where.dtype}",
        "",
        f"{'':7}{'equality':{width}}  {'cases':>5}  {'difference':>10}  {'bound':>8}  {'seconds':>7}",
    ])  # fmt: skip


def row(result: Result, equalities: Sequence[Equality]) -> str:
    """A result for people: a line, and below it its figures and what went wrong."""
    word = "holds" if result.held else "FAILS"
    measured = f"{result.difference:.2e}" if math.isfinite(result.difference) else str(result.difference)
    line = (
        f"{word}  {result.name:{name_width(equalities)}}  {result.cases:5}  {measured:>10}  {result.bound:8.1e}  "
        f"{result.seconds:7.2f}"
    )
    details = list(result.figures)
    if not result.held:
        details += [result.says, f"worst: {result.worst}", *([result.error] if result.error else [])]
    short = (" ".join(detail.split()) for detail in details)
    return "\n".join([
        line,
        *(f"{'':7}{text if len(text) <= COLUMNS - 7 else text[: COLUMNS - 8] + '…'}" for text in short),
    ])  # fmt: skip


def ending(certificate: Certificate) -> str:
    """The last line."""
    held = sum(result.held for result in certificate.results)
    return f"{held} of {len(certificate.results)} equalities hold"


def name_width(equalities: Sequence[Equality]) -> int:
    """Columns that the longest name takes."""
    return max(len(equality.name) for equality in equalities)
