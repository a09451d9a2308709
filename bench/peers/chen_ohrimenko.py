"""Chen and Ohrimenko (2023), Tables 2 and 3, rerun: errors of five statistics of Adult, and an attack on what is released."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy import special

from attrpriv.audit.bounds import interval
from bench.peers.budget import Budget, Unavailable
from bench.peers.chen_mechanisms import (
    DELTA,
    Release,
    apart,
    daum,
    directional_variance,
    dirm,
    eigenvector_root,
    eigm,
    expm,
    expm_laplace,
    gaussian,
    least_sd,
    reference_view,
    transport,
    view,
)
from bench.peers.five_statistics import INCOME, PRIVATE, STATISTICS, Array, Setting, Tables
from bench.peers.results import Cell, Form, Result, Row, Table, mean_of, measured, quoted

NAME = "chen_ohrimenko"
TITLE = "Five statistics of 100 rows (Chen and Ohrimenko, 2023)"
NEEDS = ("sklearn", "pandas")
SECONDS = 400.0
SEED = 20230425

EPSILONS = (0.2, 1.0, 5.0)
TABLES, VIEWED, LARGE, NORMAL = 2_000, 500, 300, 400_000
ESTIMATED_FROM, MEASURED_ON, REPEATED = 1_000, 50, 1_000
"""Data sets of either kind for their means and covariances, tables for their errors; and how often that is done again here."""
FEW = 100
"""Of fewer draws that count, an interval by their spread says little."""
SOURCE = "chen2023protecting, Adult, income"
PUBLISHED = {
    "ExpM, as published": (177.28, 34.98, 7.11),
    "DauM, as published": (69.85, 13.40, 1.24),
    "group privacy, as published": (7394.67, 1539.93, 293.17),
}
EXPM_LAPLACE, EXPM, EIGM = "ExpM (Laplace)", "ExpM (Gauss)", "EigM (Gauss)"
DIRM, DAUM = "DirM (Laplace)", "DauM (Gauss)"
MANY = replace(INCOME, rows=10_000)
GAUSSIAN, TRANSPORT = "attrpriv `gaussian`", "attrpriv `transport`"
MECHANISMS: dict[str, Callable[[Setting, float], Release]] = {
    EXPM_LAPLACE: expm_laplace,
    EXPM: expm,
    EIGM: eigm,
    DIRM: dirm,
    DAUM: daum,
    GAUSSIAN: gaussian,
    TRANSPORT: transport,
}
ERRORS: dict[str, Form] = {"mechanism": "text", **{f"ε = {one:g}": "number" for one in EPSILONS}}
SHARES: dict[str, Form] = {"released by": "text", **{f"ε = {one:g}": "percent" for one in EPSILONS}}
RATIOS: dict[str, Form] = {"mechanism": "text", **{f"ε = {one:g}": "times" for one in EPSILONS}}
HALF = "half the distance of the means"
OTHER_SHARES = (0.45, 0.55)
UNDEFENDED, VIEW, REFERENCE = "nothing hidden", "attrpriv view", "attrpriv reference view"


def run(budget: Budget) -> Result:
    rng = np.random.default_rng(SEED)
    tables: list[Table] = []
    with tempfile.TemporaryDirectory() as place:
        for setting in (INCOME, PRIVATE):
            tables += _hundred(setting, budget, rng)
        budget.say("what is kept")
        tables.append(_normal(rng))
        budget.say("10,000 rows")
        tables += _large(MANY, Path(place), rng)
        budget.say("as they measure")
        tables.append(_as_they_measure(np.random.default_rng(SEED)))
        try:
            reference_view(INCOME, Path(place))
            note = "reference view: drawn of 100 rows"
        except Unavailable as reason:
            note = f"reference view of 100 rows: {reason}; it needs larger tables"
    return Result.of(
        NAME,
        TITLE,
        seconds=budget.spent,
        seed=SEED,
        tables=tables,
        notes=[
            f"{TABLES:,} tables of either kind to learn attacks from and {TABLES:,} to try them on; {VIEWED} each for views; "
            f"{LARGE} each of 10,000 rows, which are drawn with replacement",
            note,
        ],
        packages=("scikit-learn",),
    )


# ------------------------------------------------------------------------------------------------------------ one property


@dataclass(frozen=True, eq=False)
class Drawn:
    """Tables of both kinds, to learn from and to try on."""

    learned: tuple[Tables, Tables]
    tried: tuple[Tables, Tables]

    @classmethod
    def of(cls, setting: Setting, number: int, rng: np.random.Generator) -> Drawn:
        return cls._of(setting, number, setting.parts, rng, again=False)

    @classmethod
    def independent(cls, setting: Setting, number: int, rng: np.random.Generator) -> Drawn:
        """Rows are drawn from all records, one by one."""
        return cls._of(setting, number, (slice(0, None),) * 2, rng, again=True)

    @classmethod
    def _of(cls, setting: Setting, number: int, parts: tuple[slice, slice], rng: np.random.Generator, *, again: bool) -> Drawn:
        first, second = (tuple(setting.tables(n, number, one, rng, again=again) for n in setting.counts) for one in parts)
        return cls((first[0], first[1]), (second[0], second[1]))


@dataclass(frozen=True, eq=False)
class Found:
    error: Cell
    theirs: Cell
    better: Cell


def _hundred(setting: Setting, budget: Budget, rng: np.random.Generator) -> list[Table]:
    drawn = Drawn.of(setting, TABLES, rng)
    found: dict[str, list[Found]] = {}
    for name, mechanism in MECHANISMS.items():
        found[name] = []
        for epsilon in EPSILONS:
            budget.say(f"{setting.key}, {name}, epsilon {epsilon:g}")
            found[name].append(_found(drawn, mechanism(setting, epsilon), rng))
    budget.say(f"{setting.key}, views")
    fewer = Drawn.of(setting, VIEWED, rng)
    viewed = _found(fewer, view(setting)[1], rng)
    bare = _found(drawn, lambda tables, _: tables.statistics, rng)
    errors: list[Row] = [[name, *(one.error for one in row)] for name, row in found.items()]
    views = {VIEW: viewed}
    errors.append([f"{VIEW} (ε = 0)", *[viewed.error] * 3])
    if setting is INCOME:
        errors += [[name, *(quoted(one, SOURCE) for one in row)] for name, row in PUBLISHED.items()]
    ratios: list[Row] = [
        [name, *(_ratio(one.error, two.error) for one, two in zip(row, found[TRANSPORT], strict=True))]
        for name, row in found.items()
        if name != TRANSPORT
    ]
    what = "incomes above 50,000 dollars: 20 or 30" if setting is INCOME else "privately employed: 45 or 55"
    return [
        Table.of(f"{setting.key}-error", f"{what} of 100 rows. Mean L2 error", ERRORS, errors),
        Table.of(f"{setting.key}-ratio", f"{what}. Errors, in those of `transport`", RATIOS, ratios),
        _attacks(f"{setting.key}-attack", f"{what}. Their attack is right", found, views, bare, "theirs"),
        _attacks(f"{setting.key}-better", f"{what}. The likelihood ratio is right", found, views, bare, "better"),
    ]


def _attacks(key: str, title: str, found: dict[str, list[Found]], views: dict[str, Found], bare: Found, which: str) -> Table:
    rows: list[Row] = [[UNDEFENDED, *[getattr(bare, which)] * 3]]
    rows += [[name, *(getattr(one, which) for one in row)] for name, row in found.items()]
    rows += [[f"{name} (ε = 0)", *[getattr(one, which)] * 3] for name, one in views.items()]
    rows.append(["promised for ε: at most", *((math.exp(one) + DELTA) / (1 + math.exp(one)) for one in EPSILONS)])
    return Table.of(key, title, SHARES, rows)


def _found(drawn: Drawn, release: Release, rng: np.random.Generator) -> Found:
    learned = [release(tables, rng) for tables in drawn.learned]
    tried = [release(tables, rng) for tables in drawn.tried]
    return Found(
        _error(tried, drawn.tried),
        _theirs([tables.statistics for tables in drawn.learned], tried),
        _better(learned, tried),
    )


def _error(released: Sequence[Array], tables: Sequence[Tables]) -> Cell:
    lengths = [np.linalg.norm(a - b.statistics, axis=1) for a, b in zip(released, tables, strict=True)]
    return mean_of(np.concatenate(lengths).tolist())


def _ratio(first: Cell, second: Cell) -> Cell:
    """Of two means from different noise; the interval by linearisation of the logarithm."""
    (a, spread), (b, other) = (
        (float(one.value or 0.0), (one.high or 0.0) - float(one.value or 0.0)) for one in (first, second)
    )
    if a == 0:
        return Cell(value=0.0)
    reach = math.hypot(spread / a, other / b)
    return measured(a / b, a / b * math.exp(-reach), a / b * math.exp(reach))


def _theirs(learned: Sequence[Array], tried: Sequence[Array]) -> Cell:
    """Logistic regression on the statistics themselves, asked about what was released."""
    from sklearn.linear_model import LogisticRegression

    labels = np.repeat([0, 1], [len(one) for one in learned])
    attack = LogisticRegression(max_iter=1000).fit(np.concatenate(learned), labels)
    right = sum(int((attack.predict(shown) == kind).sum()) for kind, shown in enumerate(tried))
    return _share(right, sum(map(len, tried)))


def _better(learned: Sequence[Array], tried: Sequence[Array]) -> Cell:
    """The likelihood ratio of two normal laws, learned from releases of the same mechanism."""
    scores = [_log_density(shown, *_fitted(learned[1])) - _log_density(shown, *_fitted(learned[0])) for shown in tried]
    return _share(int((scores[0] < 0).sum() + (scores[1] > 0).sum()), sum(map(len, tried)))


def _share(right: int, number: int) -> Cell:
    return measured(right / number, *interval(right, number, 0.05))


def _fitted(shown: Array) -> tuple[Array, Array]:
    return shown.mean(axis=0), np.cov(shown.T)


def _log_density(shown: Array, mean: Array, covariance: Array) -> Array:
    """Up to a constant."""
    off = shown - mean
    return np.asarray(
        -np.einsum("ni,in->n", off, np.linalg.solve(covariance, off.T)) / 2 - np.linalg.slogdet(covariance)[1] / 2
    )


# -------------------------------------------------------------------------------------------------- what is really kept


@dataclass(frozen=True, eq=False)
class Shown:
    """The law of what is released: normal, with Laplace noise of this scale along a line where there is one."""

    mean: Array
    covariance: Array
    along: Array
    scale: float = 0.0

    @classmethod
    def both(cls, setting: Setting, name: str, epsilon: float) -> tuple[Shown, Shown]:
        """The statistics as normal laws, each share with its own covariance, and the noise of this mechanism."""
        length, along = apart(setting)
        ours = {GAUSSIAN: gaussian, TRANSPORT: transport}
        if name in ours:
            plan = ours[name](setting, epsilon)
            parts = [(plan.moved(count), plan.noise(count)) for count in setting.counts]
        else:
            parts = [(np.zeros(len(along)), _theirs_noise(setting, name, epsilon))] * 2
        scale = length / epsilon if name == DIRM else 0.0
        first, second = (
            cls(mean + moved, matrix + noise, along, scale)
            for (mean, matrix), (moved, noise) in zip(map(setting.moments, setting.counts), parts, strict=True)
        )
        return first, second

    def drawn(self, number: int, rng: np.random.Generator) -> Array:
        found = rng.multivariate_normal(self.mean, self.covariance, number)
        return np.asarray(found + np.outer(rng.laplace(0.0, self.scale, size=number), self.along) if self.scale else found)

    def log_density(self, shown: Array) -> Array:
        """Up to a constant. With Laplace noise z: the normal density at shown - z along, integrated over each half of z."""
        normal = _log_density(shown, self.mean, self.covariance)
        if not self.scale:
            return normal
        towards = np.linalg.solve(self.covariance, self.along)
        root, moved = math.sqrt(float(self.along @ towards)), (shown - self.mean) @ towards
        halves = [(sign * moved - 1 / self.scale) / root for sign in (1, -1)]
        return np.asarray(normal - math.log(root) + np.logaddexp(*(half**2 / 2 + special.log_ndtr(half) for half in halves)))


def _theirs_noise(setting: Setting, name: str, epsilon: float) -> Array:
    """The covariance of their normal noise."""
    sd, along = least_sd(setting, epsilon)
    if name == EXPM:
        return np.asarray(sd**2 * np.eye(len(along)))
    if name == EIGM:
        root = eigenvector_root(setting, epsilon)
        return np.asarray(root @ root.T)
    if name == DAUM:
        return np.asarray(directional_variance(setting, epsilon)[0] * np.outer(along, along))
    if name == DIRM:
        return np.zeros((len(along), len(along)))
    raise ValueError(f"{name}: the law of what it releases is not known here.")


def _normal(rng: np.random.Generator) -> Table:
    """The delta of each mechanism between the two normal laws of the statistics, each with its own covariance."""
    rows: list[Row] = [
        [f"{name}, {title}", *(_delta(setting, name, epsilon, rng) for epsilon in EPSILONS)]
        for setting, title in ((INCOME, "income"), (PRIVATE, "work class"), (MANY, "income, 10,000 rows"))
        for name in (EXPM, EIGM, DIRM, DAUM, GAUSSIAN, TRANSPORT)
    ]
    return Table.of("delta", f"Delta that holds between the two normal laws (promised: {DELTA:g})", ERRORS, rows)


def _delta(setting: Setting, name: str, epsilon: float, rng: np.random.Generator) -> Cell:
    """E (1 - e^(epsilon - loss))_+ by simulation, the larger of both directions."""
    laws = Shown.both(setting, name, epsilon)
    found = []
    for first, second in (laws, laws[::-1]):
        shown = first.drawn(NORMAL, rng)
        loss = first.log_density(shown) - second.log_density(shown)
        found.append(_of_few(np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0)))))
    return max(found, key=lambda cell: float(cell.value or 0.0))


def _of_few(told: Array) -> Cell:
    """The mean of numbers from 0 to 1 of which few are above 0: then it is at most as likely as to be above 0."""
    above = int((told > 0).sum())
    if above >= FEW:
        return mean_of(told.tolist())
    return measured(float(told.mean()), 0.0, interval(above, len(told), 0.05)[1])


# -------------------------------------------------------------------------------------------------------------- larger tables


def _large(setting: Setting, place: Path, rng: np.random.Generator) -> list[Table]:
    drawn = Drawn.independent(setting, LARGE, rng)
    found = {name: [_found(drawn, one(setting, epsilon), rng) for epsilon in EPSILONS] for name, one in MECHANISMS.items()}
    views = {
        name: _found(drawn, one[1], rng) for name, one in ((VIEW, view(setting)), (REFERENCE, reference_view(setting, place)))
    }
    bare = _found(drawn, lambda tables, _: tables.statistics, rng)
    rows: list[Row] = [[name, *(one.error for one in row)] for name, row in found.items()]
    rows += [[f"{name} (ε = 0)", *[one.error] * 3] for name, one in views.items()]
    rows.append([HALF, *[apart(setting)[0] / 2] * 3])
    what = "incomes above 50,000 dollars: 2,000 or 3,000 of 10,000 rows"
    return [
        Table.of("large-error", f"{what}. Mean L2 error", ERRORS, rows),
        _attacks("large-better", f"{what}. The likelihood ratio is right", found, views, bare, "better"),
    ]


# --------------------------------------------------------------------------------------------- as the publication measures


@dataclass(frozen=True, eq=False)
class Estimated(Setting):
    """A setting of which nothing is known but estimates of its moments."""

    estimates: Mapping[int, tuple[Array, Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, setting: Setting, rng: np.random.Generator) -> Estimated:
        found = {}
        for count in setting.counts:
            shown = rng.multivariate_normal(*setting.moments(count), ESTIMATED_FROM)
            found[count] = (shown.mean(axis=0), np.cov(shown.T))
        named = {one: getattr(setting, one) for one in ("key", "column", "category", "shares", "least_density", "rows")}
        return cls(**named, estimates=found)

    def moments(self, count: int) -> tuple[Array, Array]:
        return self.estimates[count]


def _as_they_measure(rng: np.random.Generator) -> Table:
    """What a published error may be: noise is planned from simulated data sets, and its error is measured on few tables."""
    rows: list[Row] = []
    for shares in (INCOME.shares, OTHER_SHARES):
        setting = replace(INCOME, shares=shares)
        again = [Estimated.of(setting, rng) for _ in range(REPEATED)]
        for name in (EXPM, DAUM):
            cells = [_middle([_measured_once(one, name, epsilon, rng) for one in again]) for epsilon in EPSILONS]
            rows.append([f"{name}, {shares[0]:.0%} or {shares[1]:.0%}", *cells])
    rows += [[name, *(quoted(one, SOURCE) for one in row)] for name, row in PUBLISHED.items() if not name.startswith("group")]
    title = f"L2 error as they measure it, {REPEATED:,} times: the median, and where 95% are"
    return Table.of("as-they-measure", title, ERRORS, rows)


def _measured_once(setting: Setting, name: str, epsilon: float, rng: np.random.Generator) -> float:
    noise = rng.multivariate_normal(np.zeros(len(STATISTICS)), _theirs_noise(setting, name, epsilon), MEASURED_ON)
    return float(np.linalg.norm(noise, axis=1).mean())


def _middle(values: Sequence[float]) -> Cell:
    low, middle, high = np.quantile(values, (0.025, 0.5, 0.975)).tolist()
    return measured(middle, low, high)
