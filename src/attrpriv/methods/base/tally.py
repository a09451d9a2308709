"""A tally: rows are counted in cells, the counts (or one weighted sum of them) get whole-number noise.

    F = sum over cells of value * count        a histogram: the counts themselves, one answer a cell
    released: F + Z, Z a whole number;  sum = n * origin + unit * (F + Z);  avg = sum / n

What must never change: a whole number is answered by a whole number, so that no digit carries anything else; and the counts of
categories are read to check that every row has one, and by mechanisms that need the secret, never for anything that is shown.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field

from attrpriv.errors import CertificateError, UsageError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, NonNegative, Positive, Range
from attrpriv.methods.base.accuracy import Reach, Spread, noise_error, sum_reach
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import Counted, Evidence
from attrpriv.noise import whole_gaussian, whole_laplace
from attrpriv.numerics.laws.shifted_laplace import beyond, mean_size
from attrpriv.numerics.rounding import SOLVED_DOWN
from attrpriv.numerics.special import normal_quantile
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.query import Query

OUTSIDE = "data: the secret is outside of the range that the policy states. Correct the policy; nothing was released."


class TallyCell(FrozenModel):
    """Rows that satisfy a condition, and what each of them adds."""

    name: str
    where: str
    value: int = Field(ge=0)


class TallyCategory(FrozenModel):
    """A known category of the sensitive column (None: all rows of no other), and whether the secret counts it."""

    name: str
    where: str | None
    member: bool


class Tally(FrozenModel):
    """What is counted, and the noise on it."""

    cells: tuple[TallyCell, ...] = Field(min_length=1)
    complete: bool = Field(description="whether every row must fall into a cell")
    categories: tuple[TallyCategory, ...]
    covering: tuple[tuple[str, ...], ...] = Field(default=(), description="of each list, every row must satisfy one condition")
    fill: FrozenMap[Finite] = Field(default_factory=dict)
    clip: FrozenMap[Range] = Field(default_factory=dict)
    support: tuple[int, ...] = Field(
        default=(),
        exclude_if=lambda value: not value,
        description="where laws are stated: the values that the sum can have, in steps; any other counts as the nearest",
    )
    unit: Positive = 1.0
    origin: Finite = 0.0
    histogram: bool = False
    centre: int | None = Field(default=None, description="the public answer, where no row is read")
    noise: TallyNoise = "none"
    scale: NonNegative = 0.0
    individuals: NonNegative = Field(default=0.0, description="scale of further Laplace noise that protects single rows")
    tails: tuple[NonNegative, ...] = Field(default=(), description="of a kernel: chances to be more than 0, 1, ... steps off")
    tail_step: int = Field(default=1, ge=1, description="of a kernel: how many steps there are from one of `tails` to the next")
    parameters: FrozenMap[Any] = Field(default_factory=dict)

    @property
    def width(self) -> int:
        """How far one row can move the sum of absolute changes of everything released."""
        if self.histogram:
            return 2
        values = [cell.value for cell in self.cells]
        return max(values) - (min(values) if self.complete else 0)

    @property
    def clips(self) -> bool:
        """Whether values are clipped before they are summed; an event looks at entries as they are."""
        return self.complete and any(set(columns_of(parse_condition(cell.where))) & set(self.clip) for cell in self.cells)

    def total(self, counts: Sequence[int]) -> int:
        """F; where the values that it can have are stated, the nearest of them, the lower of two."""
        found = sum(cell.value * count for cell, count in zip(self.cells, counts, strict=True))
        return min(self.support, key=lambda value: (abs(value - found), value)) if self.support else found

    def released(self, counts: Sequence[int], categories: Sequence[int], evidence: Evidence) -> tuple[int, ...]:
        """F, or each count of a histogram, with fresh noise; in whole steps."""
        if self.noise == "kernel" and self.centre is None:
            members = sum(count for count, one in zip(categories, self.categories, strict=True) if one.member)
            return (evidence.kernel_draw(self.total(counts), members, self.scale),)
        if self.histogram:
            return tuple(self.noisy_total(count) for count in counts)
        return (self.noisy_total(self.total(counts)),)

    def noisy_total(self, total: int) -> int:
        """One whole number with fresh noise."""
        if self.centre is not None:
            return self.centre
        drawn = 0
        if self.noise == "laplace":
            drawn = whole_laplace(self.scale)
        elif self.noise == "gaussian":
            drawn = whole_gaussian(self.scale)
        elif self.noise != "none":
            raise CertificateError("tally: a kernel draws from the counts of its categories.")
        return total + drawn + (whole_laplace(self.individuals) if self.individuals else 0)

    def unit_of(self, query: Query, n: int) -> float:
        """What one step is in the query's own unit."""
        return self.unit / n if query.kind == "avg" else self.unit

    def answer(self, query: Query, n: int, steps: int) -> float:
        """Steps in the query's own unit; a whole number stays one."""
        if query.kind == "count":
            return steps
        total = Fraction(repr(self.origin)) * n + Fraction(repr(self.unit)) * steps
        if query.kind == "avg":
            return float(total / n)
        return int(total) if total.denominator == 1 else float(total)

    def steps_of(self, query: Query, n: int, statistic: Fraction) -> int:
        """The whole steps that a statistic is made of."""
        total = statistic * n if query.kind == "avg" else statistic
        steps = (total - Fraction(repr(self.origin)) * n) / Fraction(repr(self.unit)) if query.kind != "count" else total
        nearest = round(steps)
        if abs(steps - nearest) > Fraction(1, 1000):
            raise UsageError(f"statistic: must be made of steps of {self.unit:g}. Got one that is not.")
        return nearest

    def spread(self, query: Query, n: int) -> Reach:
        """The law of an answer around the table's own value."""
        if self.centre is not None:
            unit = self.unit_of(query, n)
            return Spread("gaussian", unit * float(self.parameters["sd"]), bias=unit * float(self.parameters["bias"]))
        return WholeSpread(self.noise, self.scale, self.individuals, self.unit_of(query, n), self.tails, self.tail_step)

    @property
    def steps(self) -> tuple[int, ...]:
        """What one row can add; of a histogram, the cell that it can be in."""
        if self.histogram:
            return tuple(range(len(self.cells)))
        return tuple(cell.value for cell in self.cells) if self.complete else (0, *(cell.value for cell in self.cells))

    @property
    def identity(self) -> str:
        """A digest of what is counted: equal for two tallies that count the same in the same steps."""
        cells = [[cell.where, cell.value] for cell in self.cells]
        changed = [[column, self.fill.get(column), self.clip.get(column)] for column in sorted(self.reads)]
        told = json.dumps([cells, self.complete, self.histogram, changed])
        return hashlib.sha256(told.encode()).hexdigest()

    @property
    def reads(self) -> frozenset[str]:
        """The columns that decide in which cell a row is."""
        return frozenset(column for cell in self.cells for column in columns_of(parse_condition(cell.where)))

    def covered_by(self, certificate: Certificate, n: int) -> bool:
        """Whether what is counted, and the noise that is drawn, are what the certificate counted on."""
        rows, evidence = certificate.individuals, certificate.evidence
        if self.centre is not None:
            return not evidence.reads_rows
        if self.support != evidence.support():
            return False
        if rows is not None:
            wanted = (self.width, self.scale if self.noise == "laplace" else self.individuals)
            if [(term.sensitivity, term.scale) for term in rows.terms] != [wanted]:
                return False
        elif self.individuals:
            return False
        return evidence.covers_tally(self._counted(n))

    def _counted(self, n: int) -> Counted:
        """What a proof has to be told."""
        event = self.cells[0].where if self.steps == (0, 1) and not self.histogram else ""
        return Counted(n, self.width, self.steps, self.histogram, self.reads, self.identity, event, self.noise, self.scale)


# ----------------------------------------------------------------------------------------------------------------------------
# The law of whole-number noise around a count: quantiles and moments of the discrete Laplace and the discrete Gaussian.


# Scales from which whole numbers follow the continuous laws.
_LARGE = 1e4

TallyNoise = Literal["laplace", "gaussian", "none", "kernel"]


@dataclass(frozen=True)
class WholeSpread:
    """The law of whole-number noise of a kind and scale, with further Laplace noise on top; in units of `unit`."""

    noise: TallyNoise
    scale: float
    individuals: float = 0.0
    unit: float = 1.0
    tails: tuple[float, ...] = ()
    """Of a kernel: the chance, at most, to be more than 0, 1, 2, ... times `tail_step` off."""
    tail_step: int = 1

    def reach(self, level: float) -> float:
        """Half the width of the interval that holds the table's own value with this confidence."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        return self.unit * self._steps(1 - level)

    def _steps(self, missed: float) -> int:
        if self.tails:
            return self.tail_step * next((t for t, tail in enumerate(self.tails) if tail <= missed), len(self.tails))
        if self.individuals and self.scale:
            return self._sum_steps(missed)
        scale, noise = (self.individuals, "laplace") if self.individuals else (self.scale, self.noise)
        if not scale:
            return 0
        return _laplace_steps(scale, missed) if noise == "laplace" else _gaussian_steps(scale, missed)

    def _sum_steps(self, missed: float) -> int:
        """The least t with P(|X + Z| > t) <= missed, Z the noise for single rows; for large scales the continuous bound."""
        if self.noise == "gaussian" and self.scale > _LARGE:
            return math.ceil(sum_reach(self.scale, self.individuals, 1 - missed)) + 1
        import numpy as np

        own = np.array(self._own_masses())
        shifts, chances = np.arange(len(own), dtype=np.float64), np.append(own[:1], 2 * own[1:])
        low, high = -1, len(own) + math.ceil(-self.individuals * math.log(missed / 2)) + 1
        while high - low > 1:
            middle = (low + high) // 2
            fits = float(chances @ beyond(self.individuals, shifts, middle)) <= missed
            low, high = (low, middle) if fits else (middle, high)
        return high

    def _own_masses(self) -> list[float]:
        return _laplace_masses(self.scale) if self.noise == "laplace" else _gaussian_masses(self.scale)

    def moments(self) -> tuple[float, float]:
        """Root mean square and mean absolute value."""
        parts = [(self.scale, self.noise), (self.individuals, "laplace")]
        found = [_laplace_moments(s) if noise == "laplace" else _gaussian_moments(s) for s, noise in parts if s]
        absolute = self._sum_size() if len(found) == 2 else math.fsum(size for _, size in found)
        return self.unit * math.sqrt(math.fsum(square for square, _ in found)), self.unit * absolute

    def _sum_size(self) -> float:
        """E|X + Z|."""
        if self.noise == "gaussian" and self.scale > _LARGE:
            return noise_error(self.scale, self.individuals).mean_absolute or 0.0
        import numpy as np

        own = np.array(self._own_masses())
        sizes = mean_size(self.individuals, np.arange(len(own), dtype=np.float64))
        return float(np.append(own[:1], 2 * own[1:]) @ sizes)


def _laplace_steps(scale: float, missed: float) -> int:
    """The least t with P(|Z| > t) = 2 q^(t+1)/(1+q) <= missed, q = e^(-1/scale)."""
    q = math.exp(-1 / scale)
    return max(0, math.ceil(-scale * math.log(missed * (1 + q) / 2) - SOLVED_DOWN))


def _gaussian_steps(scale: float, missed: float) -> int:
    """The least t with P(|Z| > t) <= missed; for large scales the continuous bound, rounded up."""
    if scale > _LARGE:
        return math.ceil(-scale * normal_quantile(missed / 2))
    masses = _gaussian_masses(scale)
    left, t = 1 - masses[0], 0
    while left > missed and t + 1 < len(masses):
        t += 1
        left -= 2 * masses[t]
    return t


def _laplace_moments(scale: float) -> tuple[float, float]:
    """E Z^2 = 2q/(1-q)^2 and E|Z| = 2q/(1-q^2)."""
    q, rest = math.exp(-1 / scale), -math.expm1(-1 / scale)
    return 2 * q / rest**2, 2 * q / (rest * (1 + q))


def _gaussian_moments(scale: float) -> tuple[float, float]:
    if scale > _LARGE:
        return scale**2, scale * math.sqrt(2 / math.pi)
    masses = _gaussian_masses(scale)
    return (
        2 * math.fsum(k * k * mass for k, mass in enumerate(masses)),
        2 * math.fsum(k * mass for k, mass in enumerate(masses)),
    )


def _laplace_masses(scale: float) -> list[float]:
    """P(Z = 0), P(Z = 1), ... of the discrete Laplace, up to where nothing is left."""
    least = -math.expm1(-1 / scale) / (1 + math.exp(-1 / scale))
    return [least * math.exp(-k / scale) for k in range(math.ceil(50 * scale) + 2)]


def _gaussian_masses(scale: float) -> list[float]:
    """P(Z = 0), P(Z = 1), ... of the discrete Gaussian, up to where nothing is left."""
    weights = [math.exp(-k * k / (2 * scale * scale)) for k in range(math.ceil(12 * scale) + 2)]
    total = weights[0] + 2 * math.fsum(weights[1:])
    return [weight / total for weight in weights]
