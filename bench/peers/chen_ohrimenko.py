"""Chen and Ohrimenko (2023), Tables 2 and 3, rerun: errors of five statistics of Adult, and an attack on what is released."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attrpriv.audit.bounds import interval
from bench.peers.budget import Budget, Unavailable
from bench.peers.chen_mechanisms import (
    DELTA,
    Release,
    daum,
    directional_variance,
    expm,
    gaussian,
    least_sd,
    reference_view,
    transport,
    view,
)
from bench.peers.five_statistics import INCOME, PRIVATE, Array, Setting, Tables
from bench.peers.results import Cell, Form, Result, Row, Table, measured, quoted

NAME = "chen_ohrimenko"
TITLE = "Five statistics of 100 rows (Chen and Ohrimenko, 2023)"
NEEDS = ("sklearn", "pandas")
SECONDS = 400.0
SEED = 20230425

EPSILONS = (0.2, 1.0, 5.0)
TABLES, VIEWED, LARGE, NORMAL = 2_000, 500, 50, 400_000
SOURCE = "chen2023protecting, the best mechanism of theirs, income"
BEST = {0.2: 69.85, 1.0: 13.40, 5.0: 1.24}
GAUSSIAN, TRANSPORT = "attrpriv `gaussian`", "attrpriv `transport`"
MECHANISMS: dict[str, Callable[[Setting, float], Release]] = {
    "ExpM": expm,
    "DauM": daum,
    GAUSSIAN: gaussian,
    TRANSPORT: transport,
}
ERRORS: dict[str, Form] = {"mechanism": "text", **{f"ε = {one:g}": "number" for one in EPSILONS}}
SHARES: dict[str, Form] = {"released by": "text", **{f"ε = {one:g}": "percent" for one in EPSILONS}}
RATIOS: dict[str, Form] = {"mechanism": "text", **{f"ε = {one:g}": "times" for one in EPSILONS}}
HALF = "half the distance of the means"
UNDEFENDED, VIEW, REFERENCE = "nothing hidden", "attrpriv view", "attrpriv reference view"


def run(budget: Budget) -> Result:
    rng = np.random.default_rng(SEED)
    tables: list[Table] = []
    with tempfile.TemporaryDirectory() as place:
        for setting in (INCOME, PRIVATE):
            tables += _hundred(setting, budget, rng)
        tables.append(_normal(rng))
        budget.say("10,000 rows")
        tables.append(_large(replace(INCOME, rows=10_000), Path(place), rng))
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
            f"{TABLES:,} tables of either kind to learn attacks from and {TABLES:,} to try them on; {VIEWED} each for views",
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
        first, second = (tuple(setting.tables(n, number, part, rng) for n in setting.counts) for part in setting.parts)
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
    errors.append([f"{VIEW} (ε = 0)", *[viewed.error] * 3])
    if setting is INCOME:
        errors.append(["theirs, as published", *(quoted(BEST[one], SOURCE) for one in EPSILONS)])
    ratios: list[Row] = [
        [name, *(_ratio(one.error, two.error) for one, two in zip(row, found[TRANSPORT], strict=True))]
        for name, row in found.items()
        if name != TRANSPORT
    ]
    promised = [(math.exp(one) + DELTA) / (1 + math.exp(one)) for one in EPSILONS]
    what = "incomes above 50,000 dollars: 20 or 30" if setting is INCOME else "privately employed: 45 or 55"
    return [
        Table.of(f"{setting.key}-error", f"{what} of 100 rows. Mean L2 error", ERRORS, errors),
        Table.of(f"{setting.key}-ratio", f"{what}. Errors, in those of `transport`", RATIOS, ratios),
        _attacks(f"{setting.key}-attack", f"{what}. Their attack is right", found, viewed, bare, promised, "theirs"),
        _attacks(f"{setting.key}-better", f"{what}. The likelihood ratio is right", found, viewed, bare, promised, "better"),
    ]


def _attacks(
    key: str, title: str, found: dict[str, list[Found]], viewed: Found, bare: Found, promised: Sequence[float], which: str
) -> Table:
    rows: list[Row] = [[UNDEFENDED, *[getattr(bare, which)] * 3]]
    rows += [[name, *(getattr(one, which) for one in row)] for name, row in found.items()]
    rows.append([f"{VIEW} (ε = 0)", *[getattr(viewed, which)] * 3])
    rows.append(["promised for ε: at most", *promised])
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
    lengths = np.concatenate([np.linalg.norm(a - b.statistics, axis=1) for a, b in zip(released, tables, strict=True)])
    mean, reach = float(lengths.mean()), 1.96 * float(lengths.std(ddof=1)) / math.sqrt(len(lengths))
    return measured(mean, mean - reach, mean + reach)


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


# -------------------------------------------------------------------------------------------------- what theirs really keep


def _normal(rng: np.random.Generator) -> Table:
    """The delta of their mechanisms between the two normal laws of the statistics, each with its own covariance."""
    rows: list[Row] = [
        [f"{name}, {title}", *(_delta(setting, name, epsilon, rng) for epsilon in EPSILONS)]
        for setting, title in ((INCOME, "income"), (PRIVATE, "work class"))
        for name in ("ExpM", "DauM")
    ]
    return Table.of("theirs-delta", f"Delta that holds between the two normal laws (promised: {DELTA:g})", ERRORS, rows)


def _delta(setting: Setting, name: str, epsilon: float, rng: np.random.Generator) -> Cell:
    """E (1 - e^(epsilon - loss))_+ by simulation, the larger of both directions."""
    sd, along = least_sd(setting, epsilon)
    noise = sd**2 * np.eye(len(along))
    if name == "DauM":
        variance, along = directional_variance(setting, epsilon)
        noise = variance * np.outer(along, along)
    laws = [(mean, covariance + noise) for mean, covariance in map(setting.moments, setting.counts)]
    found = []
    for first, second in (laws, laws[::-1]):
        shown = rng.multivariate_normal(first[0], first[1], NORMAL)
        loss = _log_density(shown, *first) - _log_density(shown, *second)
        told = np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0)))
        mean, reach = float(told.mean()), 1.96 * float(told.std(ddof=1)) / math.sqrt(NORMAL)
        found.append(measured(mean, max(0.0, mean - reach), mean + reach))
    return max(found, key=lambda cell: float(cell.value or 0.0))


# -------------------------------------------------------------------------------------------------------------- larger tables


def _large(setting: Setting, place: Path, rng: np.random.Generator) -> Table:
    whole = slice(0, None)
    tables = [setting.tables(count, LARGE, whole, rng) for count in setting.counts]

    def error(release: Release) -> Cell:
        return _error([release(one, rng) for one in tables], tables)

    noisy, views = ("ExpM", "DauM", GAUSSIAN), {VIEW: view(setting)[1], REFERENCE: reference_view(setting, place)[1]}
    rows: list[Row] = [[name, *(error(MECHANISMS[name](setting, epsilon)) for epsilon in EPSILONS)] for name in noisy]
    rows += [[f"{name} (ε = 0)", *[error(release)] * 3] for name, release in views.items()]
    apart = setting.moments(setting.counts[0])[0] - setting.moments(setting.counts[1])[0]
    rows.append([HALF, *[float(np.linalg.norm(apart)) / 2] * 3])
    return Table.of("large-error", "incomes above 50,000 dollars: 2,000 or 3,000 of 10,000 rows. Mean L2 error", ERRORS, rows)
