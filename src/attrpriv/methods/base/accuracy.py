"""How far an answer will be from the table's own: noise, its spread, and the error to expect. Functions of public facts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from pydantic import Field

from attrpriv.errors import UsageError
from attrpriv.frozen import FrozenModel, NonNegative
from attrpriv.numerics.special import log_normal_cdf, normal_cdf, normal_quantile

if TYPE_CHECKING:
    pass

NoiseKind = Literal["gaussian", "laplace", "none", "kernel"]
# What plans are compared by: root mean square, mean absolute error, or what 95% of the errors stay below.
Measure = Literal["rmse", "mean_absolute", "alpha95"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
# The shares by which slopes or probabilities are off, beyond the tolerance, in every plan's `model_error`.
OFF_BY = (0.01, 0.02, 0.05, 0.1)
# What an owner can state instead of exact numbers.
ROOM = "State a tolerance."
# How notes begin that are warnings: about an assumption that is a little off, public rows that are not as it says or on which
# the plan was tried, a promise that hides little, a second ledger, a column that looks like one of identifiers.
WEAK = "weak promise:"
IDENTIFIER = "identifier:"
TRIED = "tried:"
_WARNED = ("fragile:", "shape:", TRIED, WEAK, "another ledger:", IDENTIFIER)


def is_warning(note: str) -> bool:
    """Whether a note must not be missed.

    Ledgers since version 0.1.0 record notes as one list of strings, and must be read as they are: how a note begins is all that
    tells a recorded warning. This is the one place that looks at it.
    """
    return note.startswith(_WARNED)


class Reach(Protocol):
    """A law of an answer around the table's own value."""

    def reach(self, level: float) -> float: ...


@runtime_checkable
class Ends(Reach, Protocol):
    """The same of an answer that errs differently to both sides, such as a share near 0."""

    def ends(self, level: float) -> tuple[float, float]: ...


class ErrorLaw(Reach, Protocol):
    """The same of an average, which a sum is a multiple of."""

    def scaled(self, factor: float) -> Reach: ...


@dataclass(frozen=True)
class Spread:
    """The law of an answer around the table's own value: its kind and scale."""

    kind: NoiseKind
    scale: float
    individuals: float = 0.0
    bias: float = 0.0

    def reach(self, level: float) -> float:
        """Half the width of the interval that holds the table's own value with this confidence."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        if self.individuals:
            return sum_reach(self.scale, self.individuals, level)
        if self.bias and self.kind == "gaussian":
            return folded_reach(self.bias, self.scale, level)
        return self.bias + self.scale * _quantile(self.kind, level)


class Noise(FrozenModel):
    """The noise on one answer: standard deviation of a Gaussian, scale of a Laplace."""

    kind: NoiseKind
    scale: NonNegative = 0.0
    individuals: NonNegative = Field(default=0.0, description="scale of further Laplace noise that protects single rows")


class ExpectedError(FrozenModel):
    """How far an answer will be from the table's own statistic, as far as public facts tell.

    Averages over the tables of the assumption, at the law of its class for which they are largest
    (docs/decisions/0013-one-definition-of-error.md).
    """

    rmse: NonNegative | None = Field(description="null: not known before the table is read")
    mean_absolute: NonNegative | None
    alpha95: NonNegative | None
    worst: NonNegative | None = Field(default=None, description="a bound that always holds; none where noise is unbounded")

    def by(self, measure: Measure) -> float | None:
        """One of the three numbers that plans are compared by."""
        return {"rmse": self.rmse, "mean_absolute": self.mean_absolute, "alpha95": self.alpha95}[measure]

    def scaled(self, factor: float) -> ExpectedError:
        return ExpectedError(**{name: None if value is None else value * factor for name, value in self.to_json().items()})


UNKNOWN_ERROR = ExpectedError(rmse=None, mean_absolute=None, alpha95=None)


class ModelError(FrozenModel):
    """The real epsilon, from above, at the same delta, where slopes or probabilities are off by a share past the tolerance."""

    off_by: NonNegative
    epsilon: NonNegative | None = Field(description="null: no epsilon holds")


def off_by(real: Callable[[float], float]) -> tuple[ModelError, ...]:
    """A row for each share; `real` tells the epsilon that holds where numbers are off by one, infinite where none does."""
    return model_errors([real(off) for off in OFF_BY])


def model_errors(epsilons: Sequence[float]) -> tuple[ModelError, ...]:
    """The same rows, from the epsilon that holds at each of the shares `OFF_BY`."""
    found = zip(OFF_BY, epsilons, strict=True)
    return tuple(ModelError(off_by=off, epsilon=epsilon if math.isfinite(epsilon) else None) for off, epsilon in found)


def unaffected(epsilon: float) -> tuple[ModelError, ...]:
    """The rows of a guarantee that does not rest on slopes or probabilities at all."""
    return off_by(lambda off: epsilon)


def fragile(epsilon: float, rows: Sequence[ModelError], room: str = ROOM) -> str | None:
    """One line where an error of 1% more than doubles epsilon; also where nobody knows what an error does.

    `room` is what the evidence says of what can be stated instead of exact numbers.
    """
    if not rows:
        return "what holds where the assumption's numbers are off is not computed for this plan."
    first = rows[0].epsilon
    if first is not None and first <= 2 * epsilon:
        return None
    real = "no epsilon holds" if first is None else f"epsilon can be {first:.3g}, not {epsilon:g}"
    off = f"{rows[0].off_by:.0%}"
    return f"fragile: where slopes or probabilities are off by {off} more than stated, {real}. {room}"


def _quantile(kind: NoiseKind, level: float) -> float:
    if kind == "gaussian":
        return normal_quantile((1 + level) / 2)
    return -math.log1p(-level) if kind == "laplace" else 0.0


def gaussian_error(scale: float) -> ExpectedError:
    """The error of Gaussian noise: alpha95 is the alpha of (alpha, beta) accuracy at beta = 0.05."""
    return ExpectedError(rmse=scale, mean_absolute=scale * math.sqrt(2 / math.pi), alpha95=scale * _quantile("gaussian", 0.95))


def laplace_error(scale: float) -> ExpectedError:
    return ExpectedError(rmse=scale * math.sqrt(2), mean_absolute=scale, alpha95=scale * _quantile("laplace", 0.95))


def noise_error(gaussian: float, laplace: float) -> ExpectedError:
    """The error of Gaussian noise, with Laplace noise on top where there is any."""
    if not laplace:
        return gaussian_error(gaussian)
    from scipy.special import erfcx

    # E|N + L| = s sqrt(2/pi) + b e^(s^2/2b^2) erfc(s/(b sqrt 2)), written so that nothing overflows
    ratio = gaussian / laplace / math.sqrt(2)
    absolute = gaussian * math.sqrt(2 / math.pi) + laplace * float(erfcx(ratio))
    rmse = math.hypot(gaussian, laplace * math.sqrt(2))
    return ExpectedError(rmse=rmse, mean_absolute=absolute, alpha95=sum_reach(gaussian, laplace, 0.95))


def folded_size(bias: float, sd: float) -> float:
    """E|N(bias, sd^2)|."""
    if not sd:
        return abs(bias)
    z = bias / sd
    return sd * math.sqrt(2 / math.pi) * math.exp(-z * z / 2) + bias * (1 - 2 * normal_cdf(-z))


def folded_tail(bias: float, sd: float, t: float) -> float:
    """P(|N(bias, sd^2)| > t)."""
    if not sd:
        return float(abs(bias) > t)
    return normal_cdf((-t - bias) / sd) + normal_cdf((bias - t) / sd)


def folded_reach(bias: float, sd: float, level: float) -> float:
    """The t with P(|N(b, sd^2)| > t) = 1 - level for b = bias, from above; for any smaller |b| the chance is less."""
    low, high = abs(bias), abs(bias) + sd * _quantile("gaussian", level)
    if folded_tail(bias, sd, low) <= 1 - level:
        low = 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if folded_tail(bias, sd, middle) > 1 - level else (low, middle)
    return high


def largest_error(errors: Sequence[ExpectedError]) -> ExpectedError:
    """Over several laws that the assumption allows: the largest of each number."""
    rmse, size, reach = zip(*((e.rmse or 0.0, e.mean_absolute or 0.0, e.alpha95 or 0.0) for e in errors), strict=True)
    return ExpectedError(rmse=max(rmse), mean_absolute=max(size), alpha95=max(reach))


def sum_reach(gaussian: float, laplace: float, level: float) -> float:
    """The t with P(|N(0, gaussian^2) + Laplace(laplace)| > t) = 1 - level, from above."""
    low, high = 0.0, gaussian * _quantile("gaussian", (1 + level) / 2) + laplace * _quantile("laplace", (1 + level) / 2)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _sum_tail(middle, gaussian, laplace) > 1 - level else (low, middle)
    return high


def _sum_tail(t: float, s: float, b: float) -> float:
    """P(|N + L| > t): twice the upper tail of the sum, in logarithms."""
    shift = s * s / (2 * b * b)
    up = math.exp(min(700.0, shift - t / b + log_normal_cdf(t / s - s / b)))
    down = math.exp(min(700.0, shift + t / b + log_normal_cdf(-t / s - s / b)))
    return 2 * normal_cdf(-t / s) + up - down


# ----------------------------------------------------------------------------------------------------------------------------
# Whether an answer can be worth anything: its expected error against the public range that it lies in.
#
# The middle of a range is never further off than half of its width. So where the expected error is larger than that, the
# middle, which nobody has to release, is the better answer. What must never change: only public numbers are compared.


def worthless(text: str, error: float | None, ends: tuple[float, float]) -> str | None:
    """A line where the expected error of the answer to this query is more than half of its public range."""
    if error is None or error <= (ends[1] - ends[0]) / 2:
        return None
    told = f"{float(f'{error:.3g}'):,.10g}"
    return (
        f"{text}: the expected error of {told} is more than half of its public range [{ends[0]:g}, {ends[1]:g}]. The middle of "
        "the range, which tells nothing, is the better answer."
    )


# ----------------------------------------------------------------------------------------------------------------------------
# How much a kind of evidence has to say about two values of a secret (`methods.base.tells`).


# The shares of the promised epsilon at which delta is asked for: of a formula many, of laws that are enumerated few.
_MANY = (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.06, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.3, 1.7, 2.4, 4.0)
_FEW = (0.0, 1e-6, 1e-3, 0.03, 0.25, 0.5, 1.0, 2.0, 5.0, 12.0)


class Profile(NamedTuple):
    """How delta is to be asked for, and whether some law of the assumption reaches it, up to the charges for grids and fits."""

    shares: tuple[float, ...] = _FEW
    attained: bool = False
    anywhere: bool = False
    """Whether it holds for any two values, however far apart."""

    @property
    def searched(self) -> bool:
        """Whether the least epsilon of a delta is looked for, too."""
        return self.shares == _MANY


BY_LAWS, BY_FORMULA, EXACT_LAWS, EXACT_FORMULA = Profile(), Profile(_MANY), Profile(_FEW, True), Profile(_MANY, True)
# Delta is all or nothing, and its epsilon is the promised one.
PURE, PURE_ANYWHERE = Profile((1.0,)), Profile((1.0,), anywhere=True)
NOTHING = Profile(_MANY, attained=True, anywhere=True)
