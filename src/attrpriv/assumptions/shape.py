"""A verdict on the shape of public rows: whether methods that take rows for normal may rest on them.

`transport`, `calibrated_weights` and the equalised form of `groups` credit the variation of the rows as noise of exactly known
law. Four numbers (`problem.row_shape`) say where that fails, each with a limit:

| number | limit | what is beyond it |
|---|---|---|
| skewness | 0.25 | skewed |
| kurtosis, the excess | 0.5 | heavy tails, or light tails |
| curvature | 0.1 | curved: the slope at the ends of a secret's range is another one |
| spread | 0.1 | unequal spread: the noise that is credited is larger or smaller there |

Skewness and tails of averages shrink with the number of private rows, as 1/sqrt(n) and 1/n; what a secret moves, curvature and
spread, does not. Each statistic of n normal rows has a known spread around 0 (`_REACH`). A verdict is

    bad        where a number is beyond its limit *and* beyond 5 of its standard errors for normal rows
    unknown    where 5 standard errors are more than twice a limit: so few rows do not tell
    good       otherwise

so that normal rows are called bad with probability below 2e-6 for each number. What must never change: a verdict is written
into the assumption with its numbers, and one that is not `good` keeps `auto` from methods that rest on normal rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from attrpriv.errors import DataError
from attrpriv.frozen import Finite, FrozenModel, NonNegative
from attrpriv.problem.row_shape import ColumnShape, GroupShape, PairShape, RowShape

NOT_EXAMINED = "not examined"
TOO_FEW = "too few rows"
LIMITS: Mapping[str, float] = {"skewness": 0.25, "kurtosis": 0.5, "curvature": 0.1, "spread": 0.1}
_SURE, _LIKELY = 5.0, 3.0
# How far from 0 each number of n normal rows may be; a kurtosis is itself skewed, by sqrt(216/n).
_REACH: Mapping[str, Callable[[int], float]] = {
    "skewness": lambda n: _SURE * math.sqrt(6 / n),
    "kurtosis": lambda n: math.sqrt(24 / n) * (_SURE + math.sqrt(216 / n) * (_SURE**2 - 1) / 6),
    "curvature": lambda n: _SURE * math.sqrt(2 / n),
    "spread": lambda n: _SURE * math.sqrt(2 / n),
}
_SHOWN = 3


def _verdict(text: str) -> str:
    if text != "good" and not text.startswith(("bad: ", "unknown: ")):
        raise ValueError(f"must be good, or bad or unknown with the reason after a colon. Got {text[:80]!r}.")
    return text


def _absent(value: object) -> bool:
    return value is None


class ShapeFinding(FrozenModel):
    """What was found of one column (in one category), or of the regression of one column on another."""

    of: str = Field(description="the column")
    on: str | None = Field(default=None, exclude_if=_absent, description="the column that it is regressed on")
    category: str | None = Field(default=None, exclude_if=_absent, description="the category whose rows these are")
    skewness: Finite | None = Field(default=None, exclude_if=_absent, description="0 for normal rows")
    kurtosis: Finite | None = Field(default=None, exclude_if=_absent, description="the excess: 0 for normal rows")
    curvature: Finite | None = Field(default=None, exclude_if=_absent, description="how the slope changes along `on`")
    spread: Finite | None = Field(default=None, exclude_if=_absent, description="how the residual variance changes along `on`")
    verdict: Annotated[str, AfterValidator(_verdict)] = Field(description="good, or bad or unknown with the reason")

    @property
    def good(self) -> bool:
        return self.verdict == "good"

    @property
    def name(self) -> str:
        where = f" on {self.on}" if self.on is not None else f" in {self.category}" if self.category is not None else ""
        return f"{self.of}{where}"

    @property
    def numbers(self) -> dict[str, float]:
        """The statistics that there are, by name."""
        found = {name: getattr(self, name) for name in LIMITS}
        return {name: value for name, value in found.items() if value is not None}

    def __str__(self) -> str:
        told = ", ".join(f"{name} {value:.3g}" for name, value in self.numbers.items())
        return f"{self.name}: {self.verdict.partition(': ')[2] or self.verdict} ({told})"


Findings = tuple[ShapeFinding, ...]


def findings_of(shape: RowShape, rows: int) -> Findings:
    """Verdicts on all columns and pairs."""
    columns = (_column(of, None, one, rows) for of, one in shape.columns.items())
    return (*columns, *(_pair(of, on, one, rows) for (of, on), one in shape.pairs.items()))


def group_findings(shape: GroupShape, counts: Mapping[str, int]) -> Findings:
    """Verdicts on all columns within each category."""
    return tuple(_column(of, category, one, counts[category]) for (category, of), one in shape.cells.items())


def _column(of: str, category: str | None, one: ColumnShape, rows: int) -> ShapeFinding:
    numbers = {"skewness": _digits(one.skewness), "kurtosis": _digits(one.kurtosis)}
    return ShapeFinding(of=of, category=category, **numbers, verdict=verdict(numbers, rows))


def _pair(of: str, on: str, one: PairShape, rows: int) -> ShapeFinding:
    numbers = {"curvature": _digits(one.curvature), "spread": _digits(one.spread)}
    return ShapeFinding(of=of, on=on, **numbers, verdict=verdict(numbers, rows))


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def verdict(numbers: Mapping[str, float], rows: int) -> str:
    """On statistics of so many rows.

    >>> verdict({"kurtosis": 3.0}, 20_000), verdict({"curvature": 0.01}, 20_000), verdict({"curvature": 0.0}, 100)
    ('bad: heavy tails', 'good', 'unknown: too few rows')
    """
    beyond = [_fault(name, value) for name, value in numbers.items() if not abs(value) <= max(LIMITS[name], _REACH[name](rows))]
    if beyond:
        return f"bad: {', '.join(beyond)}"
    unseen = any(_REACH[name](rows) > 2 * LIMITS[name] for name in numbers)
    return f"unknown: {TOO_FEW}" if unseen else "good"


def _fault(name: str, value: float) -> str:
    tails = "light tails" if value < 0 else "heavy tails"
    return {"skewness": "skewed", "kurtosis": tails, "curvature": "curved", "spread": "unequal spread"}[name]


def possible(finding: ShapeFinding, rows: int) -> dict[str, float]:
    """How large each number may really be, as far as so many rows tell: as found, and 3 standard errors of normal rows more."""
    return {name: abs(value) + _LIKELY / _SURE * _REACH[name](rows) for name, value in finding.numbers.items()}


def faults(findings: Iterable[ShapeFinding], released: Sequence[str], hidden: Sequence[str]) -> tuple[str, ...]:
    """Why a release of these columns that hides those may not rest on normal rows; none: it may.

    Of a gaussian assumption: every column, and every regression of a released column on a hidden one. Of groups: every released
    column in every category. A regression that was not examined counts as one that is not known.
    """
    listed = tuple(findings)
    wanted = {*released, *hidden}
    pairs = [(q, g) for q in released for g in hidden if q != g]
    columns = [one for one in listed if one.on is None and one.of in wanted]
    regressions = {(one.of, one.on): one for one in listed if one.on is not None}
    told = [str(one) for one in (*columns, *(regressions[p] for p in pairs if p in regressions)) if not one.good]
    if all(one.category is None for one in columns):
        told += [f"{q} on {g}: {NOT_EXAMINED}" for q, g in pairs if (q, g) not in regressions]
    return tuple(told)


def worst(findings: Findings | None) -> str:
    """Of all of them together: good, bad, unknown or not examined."""
    told = {one.verdict.partition(":")[0] for one in findings or ()}
    return next((word for word in ("bad", "unknown", "good") if word in told), NOT_EXAMINED)


def summary(findings: Findings | None) -> str:
    """The whole in a few words, for a certificate."""
    told = [str(one) for one in findings or () if not one.good]
    return f"shape: {worst(findings)}" + (f": {shortened(told)}" if told else "")


def shortened(told: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = [f"and {len(told) - _SHOWN} more"] if len(told) > _SHOWN else []
    return "; ".join([*told[:_SHOWN], *more])


# ----------------------------------------------------------------------------------------------------------------------------
# What heavy tails cost an interval: exact for normal rows, wider for all others.
#
# | of | for normal rows | here |
# |---|---|---|
# | sd | chi-square with n - 1 degrees of freedom | with `freedom(...)`, never more than that |
# | mean, slope | t quantile | t + abs(skewness) (2 t^2 + 1)/(6 sqrt n): Hall's expansion of Student's statistic |
#
# The estimate of a variance is worth 2n/(kurtosis - 1) degrees of freedom, where the kurtosis E z^4 is 3 for normal rows. That
# kurtosis is itself an estimate, and too small where the largest rows were not met. So it is bounded from above:
#
#     seen     what is above 3 is doubled
#     k        n/kurtosis, the number of rows that *carry* the variance: n equal rows out of n, or k equal spikes among zeros
#     bounded  n/L, where L is the lower limit of a Poisson mean of which k was counted
#
# For k spikes among zeros this is the exact reason why a variance is uncertain. Below `least_carrying(...)` rows nothing is
# known and nothing is stated.
#
# What must never change: an interval is at least as wide as the one for normal rows. What no row shows is in no interval:
# rows so rare that none of them may have been drawn (a share below log(1/tail)/n) must not matter; `docs/guide/fit.md` says
# so.


# With fewer rows that carry it, a variance may rest on rows of which none was drawn, at any confidence.
LEAST_CARRYING = 25.0
_WIDEST = 1.99**2


def carrying(rows: int, excess: float) -> float:
    """How many rows carry the variance, where the excess kurtosis was seen to be this."""
    return rows / (3 + excess + max(0.0, excess))


def freedom(rows: int, excess: float, tail: float, normal: float) -> float:
    """The degrees of freedom that the estimate of a variance is worth; at most those of normal rows.

    >>> freedom(1000, 0.0, 1e-3, 999) < 999
    True
    >>> round(freedom(1000, 150.0, 1e-3, 999), 1)
    0.5
    """
    from scipy.special import gammaincinv

    sure = float(gammaincinv(carrying(rows, excess), tail))
    return min(normal, 2 * rows * sure / (rows - sure)) if sure < rows else normal


def least_carrying(tail: float) -> float:
    """So many rows must carry a variance for its root to be known to within a factor below 2."""
    from scipy.special import gammaincinv

    low, high = LEAST_CARRYING, LEAST_CARRYING
    while not _known(float(gammaincinv(high, tail)), tail):
        low, high = high, 2 * high
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if _known(float(gammaincinv(middle, tail)), tail) else (middle, high)
    return high


def _known(half: float, tail: float) -> bool:
    """Whether a variance worth 2 * half degrees of freedom is known to within a factor of 4."""
    from scipy.special import gammaincinv

    return half > 1 and half / float(gammaincinv(half, tail)) < _WIDEST


def skewed(quantile: float, skewness: float, rows: int) -> float:
    """Student's quantile, where the rows that are averaged are skewed.

    >>> skewed(5.0, 0.0, 1000), round(skewed(5.0, 2.0, 1000), 3)
    (5.0, 5.538)
    """
    return quantile + abs(skewness) * (2 * quantile**2 + 1) / (6 * math.sqrt(rows))


def require_known(shape: RowShape, rows: int, tail: float) -> None:
    """Raise DataError where the rows do not settle the sd of a column, or of what another column leaves open of it."""
    found = {column: one.kurtosis for column, one in shape.columns.items()}
    found |= {f"{of} given {on}": one.residual_kurtosis for (of, on), one in shape.pairs.items()}
    for name, kurtosis in found.items():
        require_carried(name, rows, kurtosis, tail)


def require_carried(name: str, rows: int, kurtosis: float, tail: float) -> None:
    """Raise DataError where too few rows carry a variance for its kurtosis, and so for the variance itself, to be known."""
    carried, needed = carrying(rows, kurtosis), least_carrying(tail)
    if not carried >= needed:
        raise DataError(
            f"public: {needed:.0f} or more rows must carry the variance of a column for it to be known at this confidence. Got "
            f"about {carried:.3g} of {rows} for {name} (excess kurtosis {kurtosis:.3g}). Find about {needed / carried:.1f} "
            "times as many public records, transform the column, or state the assumption yourself."
        )


# ----------------------------------------------------------------------------------------------------------------------------
# What became of a plan that was tried on public rows: the epsilon that holds if rows are like those (`session.against`).
#
# | verdict | meaning |
# |---|---|
# | held | at most the promised epsilon, at every pair of values that was compared |
# | broken | at least `at_least`, which is more than was promised, at the pair that is named |
# | open | more or less than promised by so little that the errors of the computation decide |
# | nothing found | simulated: no more than was promised was seen. That is no proof; `unseen` says how much could be missed |
# | any rows | the method rests on no assumption about rows: there is nothing to try |
# | not tried | the reason says why |
#
# What must never change: `at_least` is rounded down and `at_most` up. A fit records what it tried, and `auto` does not choose
# what a record says is broken.


Verdict = Literal["held", "broken", "open", "nothing found", "any rows", "not tried"]


class Tried(FrozenModel):
    """One answer of one plan, and one secret."""

    query: str
    mechanism: str
    secret: str
    n: int = Field(ge=2)
    epsilon: NonNegative = Field(description="promised")
    delta: NonNegative = Field(description="promised; the epsilons below are at this delta")
    verdict: Verdict
    at_least: NonNegative | None = Field(default=None, exclude_if=_absent, description="of epsilon on these rows, rounded down")
    at_most: NonNegative | None = Field(default=None, exclude_if=_absent, description="of epsilon on these rows, rounded up")
    pair: tuple[Finite, Finite] | None = Field(default=None, exclude_if=_absent, description="the values that look least alike")
    looked: int | None = Field(default=None, exclude_if=_absent, description="how many values of the secret were compared")
    values: int | None = Field(default=None, exclude_if=_absent, description="how many values there are")
    simulated: int | None = Field(default=None, exclude_if=_absent, description="tables drawn for each value; none: exact laws")
    unseen: NonNegative | None = Field(default=None, exclude_if=_absent, description="a delta that simulation can miss, about")
    reason: str | None = Field(default=None, exclude_if=_absent, description="why it was not tried, or what to know of it")

    @property
    def broken(self) -> bool:
        return self.verdict == "broken"

    @property
    def shown(self) -> str:
        """The epsilon on these rows, in as many digits as are known."""
        if self.at_least is None:
            return "-"
        if self.at_most is None or self.at_most > 1.02 * self.at_least + 0.002:
            more = "" if self.at_most is None else f", at most {self.at_most:.3g}"
            return f"at least {self.at_least:.3g}{more}"
        return f"{self.at_most:.3g}"

    @property
    def where(self) -> str:
        """The worst pair."""
        return "-" if self.pair is None else " and ".join(f"{one:.10g}" for one in self.pair)

    def line(self, rows: str) -> str:
        """What is told, in a sentence; `rows` names the public file."""
        what = f"{self.mechanism}, {self.query}, hiding {self.secret}"
        if self.at_least is None:
            return f"{what}: {self.verdict}: {self.reason}" if self.reason else f"{what}: {self.verdict}."
        promised = f"{self.verdict}, promised was {self.epsilon:.3g}"
        worst = "" if self.pair is None else f", worst between {self.where}"
        told = f"epsilon at delta {self.delta:g} is {self.shown} ({promised}){worst}"
        few = "" if self.looked in (None, self.values) else f" {self.looked:,} of {self.values:,} values were compared."
        more = f" {self.reason}" if self.reason else ""
        return f"{what}: if rows are independent draws like those of {rows}, {told}.{few}{more}"
