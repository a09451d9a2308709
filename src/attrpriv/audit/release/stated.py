"""Tables that the assumption describes, given a value of the secret: what a plan would read of them. No row is made up.

    gaussian   averages given a mean: normal, with the regression on it. As stated, and at the corners of the tolerance
    groups     counts of categories given the secret's, then averages given the counts
    counts     how many rows of each category fall into each cell (`stated_counts`)
    chain      a sequence given one entry of it (`stated_counts`)

Tables of both values come from the same normals, so that they differ in the secret alone.

What must never change: a `World` is a law within the stated class, and gives tables with exactly the value asked for. A kind
that is not drawn here is said not to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.audit.tables import Floats
from attrpriv.methods.base.parts import AveragesPart, StatisticPart, TallyPart, WeightsPart
from attrpriv.methods.base.plan import Plan
from attrpriv.problem.counted import count_pairs, share_range
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret

Pair = tuple[float, float]
PLACES = 12
_PSD = 1e-9


class World(Protocol):
    """One law of the stated class, for one secret."""

    @property
    def label(self) -> str:
        """Which law it is, in words."""

    @property
    def secret(self) -> str:
        """Whose values tables are made for."""

    @property
    def pairs(self) -> Sequence[Pair]:
        """Values that must look alike, in the secret's own unit, where it is looked for a leak."""

    @property
    def few(self) -> int:
        """So many tables tell whether a pair is worth a closer look."""

    def tables(self, value: float, count: int, generator: np.random.Generator) -> list[Any]:
        """What a plan reads of so many tables with this value of the secret."""

    def smooth(self, value: float, count: int, generator: np.random.Generator) -> tuple[list[Any], Floats] | None:
        """The same with averages at their mean given all else that is read, and of each table their covariance around it.

        None where they are not normal given the rest.
        """


class NotDrawn(Exception):
    """Why no table is drawn from the stated law."""


Asked = Mapping[str, Sequence[Pair]]
"""Of each secret the pairs to be tried, all of them promised; a secret without one is not tried."""


def to_try(problem: Problem, asked: Asked | None) -> list[tuple[Secret, Sequence[Pair] | None]]:
    """The secrets, each with its pairs; None: they are to be looked for."""
    if asked is None:
        return [(secret, None) for secret in problem.secrets]
    return [(secret, asked[secret.text]) for secret in problem.secrets if secret.text in asked]


def worlds(plan: Plan, problem: Problem, asked: Asked | None) -> list[World]:
    """The laws to be tried, each with its pairs of values; NotDrawn where there is none."""
    if not problem.theta:
        raise NotDrawn("No law of the rows is assumed, so that there is none to make tables from.")
    return [world for secret, pairs in to_try(problem, asked) for world in _of(plan, problem, secret, pairs)]


def _of(plan: Plan, problem: Problem, secret: Secret, pairs: Sequence[Pair] | None) -> list[World]:
    found = [w for member in problem.assumed(Gaussian) for w in _gaussian_worlds(plan, problem, secret, member, pairs)]
    found += [w for member in problem.assumed(Groups) for w in _group_worlds(plan, problem, secret, member, pairs)]
    if isinstance(plan.part, TallyPart):
        from attrpriv.audit.release.stated_counts import tally_worlds

        found += tally_worlds(plan, plan.part.tally, problem, secret, pairs)
    if not found:
        raise NotDrawn(f"Tables are not made from an assumption of the kind {problem.theta[0].kind}.")
    return found


def places(low: float, high: float, gap: float, middle: float | None) -> list[Pair]:
    """Pairs that far apart: all over a range, and step by step around its middle, where a clamp keeps the answers.

    >>> places(0.0, 10.0, 10.0, None)
    [(0.0, 10.0)]
    """
    last = max(low, high - gap)
    wide = np.linspace(low, last, PLACES) if last > low else np.array([low])
    centre = (low + last) / 2 if middle is None else min(max(middle - gap / 2, low), last)
    near = np.clip(centre + gap * np.linspace(-1.0, 1.0, PLACES), low, last)
    starts = sorted({float(start) for start in (*wide, *near, centre)})
    return [(start, start + gap) for start in starts]


# ------------------------------------------------------------------------------------------------------------- gaussian


@dataclass(frozen=True)
class _Normal:
    """Averages that are normal given the secret's mean: `base + slope (mean - centre)`, and a spread around it."""

    label: str
    secret: str
    pairs: tuple[Pair, ...]
    weight: float
    centre: float
    base: Floats
    slope: Floats
    covariance: Floats
    own: int
    """so many of the averages, the first ones, are released; the others are read besides"""
    few: int = 12

    def tables(self, value: float, count: int, generator: np.random.Generator) -> list[Any]:
        return self._drawn(value, count, generator, self.covariance)

    def smooth(self, value: float, count: int, generator: np.random.Generator) -> tuple[list[Any], Floats]:
        k = self.own
        read = self.covariance[k:, k:]
        size = np.sqrt(np.maximum(np.diag(read), 1e-300))
        along = self.covariance[:, k:] / size @ np.linalg.pinv(read / np.outer(size, size), rcond=1e-9, hermitian=True)
        told = along / size @ self.covariance[:, k:].T
        left = (self.covariance - told)[:k, :k]
        return self._drawn(value, count, generator, told), np.broadcast_to(left, (count, k, k))

    def _drawn(self, value: float, count: int, generator: np.random.Generator, covariance: Floats) -> list[Any]:
        means, root = self.base + self.slope * (value / self.weight - self.centre), _root(covariance)
        drawn = means + generator.standard_normal((count, root.shape[1])) @ root.T
        return [([Fraction(x) for x in row], ()) for row in drawn.tolist()]


@dataclass(frozen=True)
class _Rows:
    """Sums and products over normal rows whose mean is the secret's, for weights."""

    label: str
    secret: str
    pairs: tuple[Pair, ...]
    weight: float
    n: int
    law: tuple[Floats, Floats, Floats, Floats]
    """means, slopes on the secret, a root of the covariance, and the secret's own coefficients"""
    grids: tuple[tuple[int, float, float], ...]
    """of each column that is read: its place, and the centre and the step that it is read in"""
    few: int = 4

    def tables(self, value: float, count: int, generator: np.random.Generator) -> list[Any]:
        return [self._table(value, generator) for _ in range(count)]

    def smooth(self, value: float, count: int, generator: np.random.Generator) -> None:
        return None

    def _table(self, value: float, generator: np.random.Generator) -> Any:
        means, slopes, root, hidden = self.law
        rows = means + generator.standard_normal((self.n, root.shape[1])) @ root.T
        rows += slopes * (value / self.weight - float(rows.mean(axis=0) @ hidden))
        steps = np.column_stack([np.round((rows[:, k] - centre) / step) for k, centre, step in self.grids])
        return self.n, [int(x) for x in steps.sum(axis=0)], [[int(x) for x in row] for row in steps.T @ steps]


def _gaussian_worlds(
    plan: Plan, problem: Problem, secret: Secret, member: Gaussian, pairs: Sequence[Pair] | None
) -> list[World]:
    part = plan.part
    if not isinstance(part, AveragesPart) or isinstance(part, StatisticPart):
        raise NotDrawn("Tables are made for averages under a gaussian assumption, not for other statistics.")
    if len(secret.forms) != 1 or secret.cases is not None or secret.composition is not None:
        raise NotDrawn(f"Pairs of {secret.text} are not single values of a mean or a sum.")
    if any(column.where is not None or column.rows is not None for column in part.columns):
        raise NotDrawn("Averages over some of the rows are not made up from the stated law.")
    forms = dict(zip(problem.columns, problem.forms, strict=True))
    read = [forms.get(column.column) or {column.column: 1.0} for column in part.columns]
    read += [{column: 1.0} for column in plan.read_columns]
    columns = tuple(dict.fromkeys([*(c for form in read for c in form), *secret.coefficients]))
    matrix = np.array([[form.get(column, 0.0) for column in columns] for form in read])
    hidden = np.array([secret.coefficients.get(column, 0.0) for column in columns])
    weight = float(secret.forms[0].weight(problem.n))
    means = np.array([_mean(member, part, column) for column in columns])
    tried = tuple(_pairs(problem, secret, member, pairs))
    found: list[World] = []
    for label, covariance in _corners(member, columns, tuple(secret.coefficients)):
        along = covariance @ hidden
        variance = float(hidden @ along)
        if isinstance(part, WeightsPart):
            grids = [(columns.index(name), centre, step) for name, centre, step, _ in plan.certificate.evidence.gram_columns()]
            law = (means, along / variance, _root(covariance), hidden)
            found.append(_Rows(label, secret.text, tried, weight, problem.n, law, tuple(grids)))
            continue
        left = (covariance - np.outer(along, along) / variance) / problem.n
        found.append(
            _Normal(
                label,
                secret.text,
                tried,
                weight,
                float(hidden @ means),
                matrix @ means,
                matrix @ along / variance,
                matrix @ left @ matrix.T,
                len(part.columns),
            )
        )
    return found


def _mean(member: Gaussian, part: AveragesPart, column: str) -> float:
    """As stated; of a column without a mean, the middle of its bounds: where its average lies does not matter otherwise."""
    if column in member.mean:
        return member.mean[column]
    ends = next((one.clip for one in part.columns if one.column == column and one.clip is not None), (0.0, 0.0))
    return (ends[0] + ends[1]) / 2


def _pairs(problem: Problem, secret: Secret, member: Gaussian, given: Sequence[Pair] | None) -> list[Pair]:
    if given is not None:
        return [(float(low), float(high)) for low, high in given]
    gap, weight = secret.gap, float(secret.forms[0].weight(problem.n))
    known = all(column in member.mean for column in secret.coefficients)
    middle = weight * sum(c * member.mean[column] for column, c in secret.coefficients.items()) if known else None
    low, high = secret.ends or ((middle or 0.0) - 3 * gap, (middle or 0.0) + 3 * gap)
    return places(low, high, gap, middle)


def _corners(member: Gaussian, columns: Sequence[str], hidden: Sequence[str]) -> list[tuple[str, Floats]]:
    """The stated covariance, and those where every column depends most, or least, on the hidden ones that the box allows."""
    t = member.tolerance
    off = t.correlation if t.slope is None else t.slope
    found = [("the law as stated", _covariance(member, columns, hidden, 0.0, (0.0, 0.0)))]
    if not (off or t.sd):
        return found
    for sign, words in ((1.0, "steepest"), (-1.0, "flattest")):
        for own, theirs in ((-t.sd, t.sd), (-t.sd, -t.sd), (t.sd, -t.sd)) if t.sd else ((0.0, 0.0),):
            covariance = _covariance(member, columns, hidden, sign * (off or 0.0), (own, theirs))
            label = f"the {words} law within the tolerance (sds {own:+.2g} and {theirs:+.2g} of themselves)"
            if np.linalg.eigvalsh(covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))))[0] >= -_PSD:
                found.append((label, covariance))
    return found


def _covariance(
    member: Gaussian, columns: Sequence[str], hidden: Sequence[str], off: float, sds: tuple[float, float]
) -> Floats:
    """With slopes on (or correlations with) hidden columns off by this much, and the sds of the others and of those."""
    rho = np.array(member.correlation_matrix(columns))
    own = np.array([member.sd_of(c) * (1 + sds[1 if c in hidden else 0]) for c in columns])
    inside = np.array([column in hidden for column in columns])
    mixed = inside[:, None] != inside[None, :]
    if member.tolerance.slope is None:
        moved = rho + np.where(rho < 0, -off, off)
    else:
        moved = rho * (1 + off) * (1 + sds[1]) / (1 + sds[0])
    return np.asarray(np.clip(np.where(mixed, moved, rho), -1.0, 1.0) * np.outer(own, own))


# --------------------------------------------------------------------------------------------------------------- groups


@dataclass(frozen=True)
class _Grouped:
    """Averages that are normal given how many rows each category has."""

    label: str
    secret: str
    pairs: tuple[Pair, ...]
    n: int
    scale: int
    population: bool
    members: tuple[bool, ...]
    shares: Floats
    """of each category, within its side"""
    means: Floats
    roots: tuple[Floats, ...]
    counted: bool
    """whether the plan reads the counts of the categories"""
    few: int = 12

    def tables(self, value: float, count: int, generator: np.random.Generator) -> list[Any]:
        counted = [self._counts(value, generator) for _ in range(count)]
        roots = [sum(np.sqrt(k) * root @ generator.standard_normal(len(root)) for k, root in self._each(c)) for c in counted]
        return [self._table(counts, np.asarray(own)) for counts, own in zip(counted, roots, strict=True)]

    def smooth(self, value: float, count: int, generator: np.random.Generator) -> tuple[list[Any], Floats]:
        counted = [self._counts(value, generator) for _ in range(count)]
        left = [sum(k * root @ root.T for k, root in self._each(c)) / self.n**2 for c in counted]
        return [self._table(counts, np.zeros(1)) for counts in counted], np.array(left)

    def _each(self, counts: Floats) -> list[tuple[float, Floats]]:
        return list(zip(counts.tolist(), self.roots, strict=True))

    def _table(self, counts: Floats, own: Floats) -> Any:
        averages = [Fraction(x) for x in ((counts @ self.means + own) / self.n).tolist()]
        return averages, tuple(int(k) for k in counts) if self.counted else ()

    def _counts(self, value: float, generator: np.random.Generator) -> Floats:
        inside = int(generator.binomial(self.n, value)) if self.population else round(value * self.scale)
        found = np.zeros(len(self.members))
        for side, rows in ((True, inside), (False, self.n - inside)):
            chosen = np.flatnonzero(np.array(self.members) == side)
            found[chosen] = generator.multinomial(rows, self.shares[chosen] / self.shares[chosen].sum())
        return found


def _group_worlds(plan: Plan, problem: Problem, secret: Secret, member: Groups, pairs: Sequence[Pair] | None) -> list[World]:
    part = plan.part
    if not isinstance(part, AveragesPart) or isinstance(part, StatisticPart | WeightsPart):
        raise NotDrawn("Tables are made for averages under groups, not for other statistics.")
    columns = [column.column for column in part.columns if column.column in member.columns]
    if len(columns) != len(part.columns) or any(column.where is not None for column in part.columns):
        raise NotDrawn("Averages of combinations, or over some of the rows, are not made up under groups.")
    if part.categories and [one.name for one in part.categories] != list(member.categories):
        raise NotDrawn("The plan counts other categories than the assumption names.")
    inside = member.members_of(secret)
    prior = dict(member.prior or {})
    shares = np.array([sum(map(float, prior[name])) / 2 if name in prior else 1.0 for name in member.categories])
    tried = tuple(counted_pairs(secret, problem.n) if pairs is None else [(float(a), float(b)) for a, b in pairs])
    composition = secret.composition
    scale = problem.n if composition is not None and composition.kind == "share" else 1
    found: list[World] = []
    t = member.tolerance
    for label, sign, off in _group_corners(t.mean, t.sd):
        towards = [sign if name in inside else -sign for name in member.categories]
        means = [
            [member.mean_of(name, c) + way * t.mean * member.sd_of(name, c) for c in columns]
            for name, way in zip(member.categories, towards, strict=True)
        ]
        roots = tuple((1 + off) * _root(np.array(member.covariance(name, columns))) for name in member.categories)
        found.append(
            _Grouped(
                label,
                secret.text,
                tried,
                problem.n,
                scale,
                secret.parameter is not None,
                tuple(name in inside for name in member.categories),
                shares,
                np.array(means),
                roots,
                bool(part.categories),
            )
        )
    return found


def _group_corners(mean: float, sd: float) -> list[tuple[str, float, float]]:
    found = [("the law as stated", 0.0, 0.0)]
    if mean or sd:
        found += [
            (f"means {words} by the tolerance, sds {off:+.2g} of themselves", sign, off)
            for sign, words in ((1.0, "apart one way"), (-1.0, "apart the other way"))
            for off in dict.fromkeys((-sd, sd))
        ]
    return found


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def counted_pairs(secret: Secret, n: int) -> list[Pair]:
    """Counts or shares that must look alike, in the secret's own unit."""
    if secret.parameter is not None:
        return [share_range(secret)]
    pairs = count_pairs(secret, n)
    scale = n if secret.composition is not None and secret.composition.kind == "share" else 1
    starts = np.unique(np.linspace(pairs.low, pairs.high - pairs.apart, PLACES).round().astype(int))
    return [(start / scale, (start + pairs.apart) / scale) for start in starts.tolist()]
