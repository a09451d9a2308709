"""What a draw is, given a table: the law that the certificate counted on, apart from the code that draws.

    averages   the averages as they are moved (by the code), plus noise of the stated scale (by the law)
    counts     the whole number that is noised, plus noise of the stated scale; of a kernel, its weights
    others     weights and quantile clips decide everything at once: their law given a table is not stated apart

| name | what it gives |
|---|---|
| `Quiet.above(event)` | of each table, the chance that its answer lies in an event: no noise is drawn for it |
| `scores(plan, found, draws)` | draws for one table as normal scores: independent standard normals if they follow the law |

What must never change: scales come from what the certificate covers (`Plan.verify` compares them), never from the draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from attrpriv.audit.tables import Floats
from attrpriv.methods.base.column_plan import clipped, own_scale
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.parts import AveragesPart, TallyPart, ViewPart, WeightsPart
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import Tally, WholeSpread

# Scales beyond which the masses of whole-number noise are not listed one by one.
_LARGE = 1e4


@dataclass(frozen=True)
class Event:
    """The answers whose combination by these weights is above a threshold."""

    weights: tuple[float, ...]
    threshold: float

    def holds(self, answers: Floats) -> Floats:
        """1 for each row of answers that is in it."""
        return np.asarray(answers @ np.array(self.weights) > self.threshold, np.float64)


class Quiet(Protocol):
    """Answers of many tables, before their noise."""

    @property
    def centres(self) -> Floats:
        """A row for each table, a column for each answer."""

    @property
    def spread(self) -> Floats:
        """The covariance of the noise, to choose events by."""

    @property
    def joint(self) -> bool:
        """Whether the chance of a combination of several answers is known, not only of each one."""

    def above(self, event: Event) -> Floats:
        """Of each table, the chance of the event."""


def quiet(plan: Plan, tables: Sequence[Any], left: Floats | None = None) -> Quiet | None:
    """What the code makes of these tables before any noise; None where noise does not come last.

    `left`: of each table, the covariance that its averages have of themselves and that is counted with the noise.
    """
    if isinstance(plan.part, TallyPart):
        return _Counts.of(plan, plan.part.tally, tables)
    if isinstance(plan.part, WeightsPart | ViewPart) or not isinstance(plan.part, AveragesPart):
        return None
    return _Averages.of(plan, plan.part, tables, left) if plan.certificate.evidence.noise_last else None


def smoothable(plan: Plan, table: Any) -> bool:
    """Whether averages are moved by what else is read and not by themselves, and have normal noise: then what they vary by
    themselves adds to the noise."""
    part = plan.part
    if not isinstance(part, AveragesPart) or isinstance(part, WeightsPart) or not plan.certificate.evidence.noise_last:
        return False
    averages, counts = table
    aside = [x + Fraction(1, 64) * max(1, abs(x)) for x in averages[: len(part.columns)]]
    both = [([*own, *averages[len(part.columns) :]], counts) for own in (averages[: len(part.columns)], aside)]
    here, there = (_Averages.of(plan, part, [one]) for one in both)
    by = np.array([float(b - a) for a, b in zip(averages, aside, strict=False)])[list(here.columns)]
    return here.kind in ("gaussian", "none") and np.allclose(there.centres - here.centres, by, rtol=1e-9)


def scores(plan: Plan, table: Any, draws: int, generator: np.random.Generator) -> Floats | None:
    """Normal scores of fresh draws for one table, a column for each answer; None where no law is stated for one table."""
    if isinstance(plan.part, TallyPart) and plan.part.tally.centre is None:
        return _count_scores(plan, plan.part.tally, table, draws, generator)
    found = quiet(plan, [table])
    return _average_scores(plan, table, draws) if isinstance(found, _Averages) and found.columns else None


# ------------------------------------------------------------------------------------------------------------- averages


@dataclass(frozen=True)
class _Averages:
    columns: tuple[int, ...]
    """places of the columns that are not public numbers"""
    centres: Floats
    sds: Floats
    factor: Floats
    kind: str
    left: Floats | None = None

    @classmethod
    def of(cls, plan: Plan, part: AveragesPart, tables: Sequence[Any], left: Floats | None = None) -> _Averages:
        drawn = tuple(k for k, column in enumerate(part.columns) if column.centre is None)
        kinds = {part.columns[k].noise.kind for k in drawn}
        moved, scales = [], []
        for table in tables:
            kept, told = told_of(plan, part, table)
            values = plan.certificate.evidence.moved(part.columns, kept, told)
            hidden = plan.certificate.evidence.table_noise(told)
            moved.append([float(values[k]) for k in drawn])
            scales.append([own_scale(part.columns[k]) if hidden is None else hidden[0] for k in drawn])
        factor = np.array([part.factor[k] for k in drawn]) if part.factor else np.zeros((len(drawn), 1))
        kind = kinds.pop() if len(kinds) == 1 else "mixed"
        inside = None if left is None else left[:, drawn, :][:, :, drawn]
        return cls(drawn, np.array(moved), np.array(scales), factor, "gaussian" if left is not None else kind, inside)

    @property
    def joint(self) -> bool:
        return self.kind == "gaussian"

    @property
    def spread(self) -> Floats:
        own = self.sds.mean(axis=0) * (math.sqrt(2) if self.kind == "laplace" else 1.0)
        natural = 0.0 if self.left is None else self.left.mean(axis=0)
        return np.asarray(np.diag(own**2) + self.factor @ self.factor.T + natural)

    def above(self, event: Event) -> Floats:
        """Laplace noise that protects single rows comes on top, and can only hide more: it is left out."""
        from scipy.special import ndtr

        weights = np.array(event.weights)
        below = event.threshold - self.centres @ weights
        if self.kind == "gaussian":
            variance = (self.sds * weights) ** 2 @ np.ones(len(weights)) + np.sum((self.factor.T @ weights) ** 2)
            natural = 0.0 if self.left is None else np.einsum("i,tij,j->t", weights, self.left, weights)
            return np.asarray(ndtr(-below / np.sqrt(np.maximum(variance + natural, 1e-300))))
        scale = np.abs(self.sds @ weights)
        if self.kind == "laplace":
            tail = np.exp(-np.abs(below) / scale) / 2
            return np.asarray(np.where(below > 0, tail, 1 - tail))
        return np.asarray(below < 0, np.float64)


def told_of(plan: Plan, part: AveragesPart, table: Any) -> tuple[list[Fraction], Told]:
    """What a table's averages are before they are moved, and what is read besides."""
    averages, counts = table
    kept = [clipped(column, average) for column, average in zip(part.columns, averages, strict=False)]
    read = dict(zip(plan.read_columns, averages[len(part.columns) :], strict=True))
    sides = [
        tuple(count for one, count in zip(part.categories, counts, strict=True) if one.member is inside)
        for inside in (True, False)
    ]
    return kept, Told(read, sides[0], sides[1])


def _average_scores(plan: Plan, table: Any, draws: int) -> Floats:
    """Fresh noise on one table's averages, made independent, in units of its stated scale."""
    part = plan.part
    if not isinstance(part, AveragesPart):
        raise TypeError(type(part).__name__)
    evidence = plan.certificate.evidence
    kept, told = told_of(plan, part, table)
    moved, hidden = evidence.moved(part.columns, kept, told), evidence.table_noise(told)
    drawn = [k for k, column in enumerate(part.columns) if column.centre is None]
    noise = np.array(
        [
            [float(value[k] - moved[k]) for k in drawn]
            for value in (evidence.noised(part.columns, moved, hidden) for _ in range(draws))
        ]
    )
    parts = [part.columns[k] for k in drawn]
    if any(one.noise.individuals or one.noise.kind != "gaussian" for one in parts):
        rows = part.factor or ((),) * len(part.columns)
        chances = [_below(one, math.hypot(*rows[k]), noise[:, j]) for j, (k, one) in enumerate(zip(drawn, parts, strict=True))]
        return _normal(np.column_stack(chances))
    own = [own_scale(one) if hidden is None else hidden[0] for one in parts]
    factor = np.array([part.factor[k] for k in drawn]) if part.factor else np.zeros((len(drawn), 1))
    root = np.linalg.cholesky(np.diag(np.array(own) ** 2) + factor @ factor.T)
    return np.asarray(np.linalg.solve(root, noise.T).T)


def _below(part: Any, common: float, noise: Floats) -> Floats:
    """P(noise of this column <= x): Laplace alone, or normal with further Laplace noise for single rows."""
    from scipy.special import log_ndtr, ndtr

    if part.noise.kind == "laplace" and not part.noise.individuals:
        tail = np.exp(-np.abs(noise) / part.noise.scale) / 2
        return np.asarray(np.where(noise < 0, tail, 1 - tail))
    if part.noise.kind != "gaussian":
        return np.full(len(noise), 0.5)
    s, b = math.hypot(part.independent, common), part.noise.individuals
    x = noise / s
    up = np.exp(s * s / (2 * b * b) + noise / b + log_ndtr(-x - s / b))
    down = np.exp(s * s / (2 * b * b) - noise / b + log_ndtr(x - s / b))
    return np.asarray(ndtr(x) + (up - down) / 2)


def _normal(chances: Floats) -> Floats:
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(chances, 1e-300, 1 - 1e-16)))


# --------------------------------------------------------------------------------------------------------------- counts


@dataclass(frozen=True)
class _Law:
    """A law on whole numbers: its least value, and the chances to be above it and the next ones."""

    start: int
    masses: Floats

    def above(self, threshold: float) -> float:
        first = math.floor(threshold) + 1 - self.start
        return float(self.masses[max(0, first) :].sum()) if first < len(self.masses) else 0.0


@dataclass(frozen=True)
class _Counts:
    laws: tuple[tuple[_Law, ...], ...]
    """of each table, one for each answer"""
    centres: Floats
    spread: Floats
    joint: bool = False

    @classmethod
    def of(cls, plan: Plan, tally: Tally, tables: Sequence[Any]) -> _Counts:
        keys = [(tuple(cells), tuple(categories)) for cells, categories in tables]
        known = {key: _laws(plan, tally, *key) for key in dict.fromkeys(keys)}
        laws = tuple(known[key] for key in keys)
        middles = [[float(law.start + np.arange(len(law.masses)) @ law.masses) for law in row] for row in laws]
        noise = WholeSpread(tally.noise if tally.noise != "kernel" else "laplace", tally.scale, tally.individuals)
        sd = max(noise.moments()[0], 1e-9) if tally.scale or tally.individuals else 1.0
        return cls(laws, np.array(middles), np.eye(len(laws[0])) * sd**2)

    def above(self, event: Event) -> Floats:
        place = next(k for k, weight in enumerate(event.weights) if weight)
        threshold, upwards = event.threshold / event.weights[place], event.weights[place] > 0
        if upwards:
            return np.array([row[place].above(threshold) for row in self.laws])
        # strictly below the threshold: above is what is left, with the threshold itself
        return np.array([1 - row[place].above(math.ceil(threshold) - 1) for row in self.laws])


def _laws(plan: Plan, tally: Tally, cells: tuple[int, ...], categories: tuple[int, ...]) -> tuple[_Law, ...]:
    if tally.noise == "kernel":
        members = sum(count for count, one in zip(categories, tally.categories, strict=True) if one.member)
        return (_kernel(plan, tally, tally.total(cells), members),)
    totals = cells if tally.histogram else (tally.total(cells),)
    noise = _noise(tally.noise, tally.scale, tally.individuals)
    return tuple(_Law(total + noise.start, noise.masses) for total in totals)


def _kernel(plan: Plan, tally: Tally, total: int, members: int) -> _Law:
    start, weights = plan.certificate.evidence.kernel_law(total, members)
    own = np.array([float(Fraction(weight, sum(weights))) for weight in weights])
    if not tally.scale:
        return _Law(start, own)
    noise = _noise("laplace", tally.scale, 0.0)
    return _Law(start + noise.start, np.convolve(own, noise.masses))


@lru_cache(maxsize=16)
def _noise(kind: str, scale: float, individuals: float) -> _Law:
    """Whole-number noise of this kind, with further Laplace noise for single rows."""
    own = _two_sided("none" if kind == "none" or not scale else kind, scale)
    if not individuals:
        return own
    more = _two_sided("laplace", individuals)
    return _Law(own.start + more.start, np.convolve(own.masses, more.masses))


def _two_sided(kind: str, scale: float) -> _Law:
    if kind == "none":
        return _Law(0, np.ones(1))
    reach = math.ceil((12 if kind == "gaussian" else 50) * min(scale, _LARGE)) + 2
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(k**2) / (2 * scale**2)) if kind == "gaussian" else np.exp(-np.abs(k) / scale)
    return _Law(-reach, weights / weights.sum())


def _count_scores(plan: Plan, tally: Tally, table: Any, draws: int, generator: np.random.Generator) -> Floats:
    """Of whole numbers, a point within each one's slice of chances, drawn evenly: then the score is exactly normal."""
    cells, categories = table
    laws = _laws(plan, tally, tuple(cells), tuple(categories))
    evidence = plan.certificate.evidence
    drawn = np.array([tally.released(cells, categories, evidence) for _ in range(draws)])
    found = []
    for k, law in enumerate(laws):
        ends = np.concatenate([[0.0], np.cumsum(law.masses)])
        place = drawn[:, k] - law.start
        inside = (place >= 0) & (place < len(law.masses))
        at = np.clip(place, 0, len(law.masses) - 1)
        point = ends[at] + generator.random(draws) * law.masses[at]
        found.append(np.where(inside, point, np.where(place < 0, 0.0, 1.0)))
    return _normal(np.column_stack(found))
