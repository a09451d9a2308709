"""The plan of a view: how many rows are kept, what is refused, and the delta of a property of the population."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.view_plan import REAL_RECORDS, ViewCell, ViewPlan
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view.plan import ViewEvidence, public_shares
from attrpriv.numerics.laws.binomial import binomial_below
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query

SHARE = Secret("share(g = 'F')", between=(0.25, 0.4))
CELLS = {"F": (0.25, 0.4), "M": (0.5, 0.7), "other": (0.0, 0.1)}


def problem(*secrets: Secret, n: int = 1000, **changes: Any) -> Problem:
    return Problem(**{"queries": (Query("count"),), "secrets": secrets or (SHARE,), "epsilon": 1.0, "n": n, **changes})


def kept(plan: ViewPlan) -> dict[str, int]:
    return {cell.name: cell.keep for cell in plan.cells}


# A property of the table.


def test_the_least_count_of_each_cell_is_kept() -> None:
    plan = plan_view_of(problem())
    assert kept(plan) == {"g = 'F'": 250, "other": 600}
    assert [(cell.low, cell.high) for cell in plan.cells] == [(250, 400), (600, 750)]
    assert plan.rows == 850
    assert (plan.certificate.epsilon, plan.certificate.delta) == (0.0, 0.0)


def test_a_range_for_each_cell() -> None:
    assert kept(plan_view_of(problem(Secret("distribution(g)", between=CELLS)))) == {"F": 250, "M": 500, "other": 0}


def test_the_plan_says_what_it_hides_and_what_it_assumes() -> None:
    plan = plan_view_of(problem())
    text = str(plan)
    assert REAL_RECORDS in text
    assert plan.notes[0] == REAL_RECORDS
    assert "any number of queries and any model computed from them reveal nothing about it (epsilon 0, delta 0)" in text
    for line in (
        "rows are independent draws from one law, whatever that law is",
        "the composition lies in the stated range; a table outside it is an announced failure",
        "the adversary recognises no row",
        "no column of the view numbers rows",
        "the view is drawn once, and nothing else about this table is released",
        "means of numeric columns are not hidden, and single persons are not protected",
        "the number of rows, 1000, and the names and types of the columns are public",
    ):
        assert line in text
    assert plan.guarantee.kind == "proved"
    assert plan.guarantee.reference == "docs/theory/view.md"


def test_an_empty_cell_is_announced() -> None:
    plan = plan_view_of(problem(Secret("distribution(g)", between=CELLS)))
    assert plan.notes[1:] == ("no row of other is kept, because its range allows tables without one.",)


def test_a_plan_survives_json() -> None:
    plan = plan_view_of(problem(Secret("distribution(g)", between=CELLS)))
    assert ViewPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"known_rows": 0.001}, RefusedError, "known_rows: must be 0 for a view"),
        ({"individuals": 1.0}, RefusedError, "a view that hides columns(...) by a reference, not in one of ranges"),
        ({"secrets": (Secret("mean(x)", within=1.0),)}, RefusedError, "hides how rows fall into categories, not mean(x)"),
        ({"secrets": (SHARE, Secret("mean(x)", within=1.0))}, RefusedError, "not mean(x). To hide everything"),
        (
            {"secrets": (SHARE, Secret("count(s = 1)", between=(10.0, 20.0)))},
            RefusedError,
            "margins do not bound cells: g = 'F' and s = 1; g = 'F' and not (s = 1); not (g = 'F') and s = 1; not (g = 'F')",
        ),
        ({"secrets": (Secret("share(g = 'F')", between=(0.0, 1.0)),)}, RefusedError, "the range keeps no row of any cell"),
        ({"n": 10, "secrets": (Secret("share(g = 'F')", between=(0.31, 0.39)),)}, UsageError, "no whole count of 10 rows"),
        ({"secrets": (Secret("distribution(a, b)", between={"x~y": (0.1, 0.9), "u~v": (0.1, 0.9)}),)}, UsageError, "x~v, u~y"),
        ({"secrets": (Secret("distribution(g)", between={"F": (0.2, 0.3)}),)}, UsageError, "no table of 1000 rows"),
        ({"secrets": (Parameter("share(g = 'F')", between=(0.2, 0.3)),)}, UsageError, "delta: a property of the popu"),
        (
            {"delta": 1e-6, "secrets": (Parameter("distribution(g)", between={"F": (0.5, 0.6), "M": (0.1, 0.2)}),)},
            UsageError,
            "no population has shares in these ranges; their ends add up to 0.6 and 0.8.",
        ),
        (
            {"delta": 1e-6, "secrets": (Parameter("distribution(g)", between={"F": (0.6, 0.7), "M": (0.5, 0.6)}),)},
            UsageError,
            "no population has shares in these ranges",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        plan_view_of(problem(**changes))


# The certificate.


def evidence(**changes: Any) -> ViewEvidence:
    cells = (ViewCell(name="F", keep=25, low=25, high=40), ViewCell(name="M", keep=60, low=60, high=75))
    return ViewEvidence(**{"n": 100, "cells": cells, **changes})


def verified(found: ViewEvidence, delta: float = 0.0) -> None:
    Certificate(epsilon=0.0, delta=delta, evidence=found, assumes=()).verify()


def test_the_certificate_holds() -> None:
    verified(evidence())


@pytest.mark.parametrize(
    "cells",
    [
        [("F", 26, 25, 40), ("M", 60, 60, 75)],  # more kept than is surely there
        [("F", 25, 41, 40), ("M", 60, 60, 75)],
        [("F", 25, 25, 30), ("M", 60, 60, 69)],  # no table of 100 rows
        [("F", 40, 40, 50), ("M", 61, 61, 75)],
    ],
)
def test_the_certificate_fires(cells: list[tuple[str, int, int, int]]) -> None:
    made = tuple(ViewCell(name=name, keep=keep, low=low, high=high) for name, keep, low, high in cells)
    with pytest.raises(CertificateError, match="needs delta 1, above the promised 0"):
        verified(evidence(cells=made))


def test_a_plan_with_one_more_row_is_caught() -> None:
    plan = plan_view_of(problem())
    for k, cell in enumerate(plan.cells):
        more = cell.model_copy(update={"keep": cell.keep + 1})
        cells = (*plan.cells[:k], more, *plan.cells[k + 1 :])
        with pytest.raises(CertificateError):
            verified(evidence(n=plan.n, cells=cells))


# A property of the population.


def exact_below(n: int, share: float, k: int) -> mpmath.mpf:
    """P(Bin(n, share) < k) in the working precision, the share being the very float."""
    if k <= 0 or k > n:
        return mpmath.mpf(k > n)
    if share in (0.0, 1.0):
        return mpmath.mpf(1 - share)
    p = mpmath.mpf(share)
    return lower_tail(n, p, k) if k - 1 <= n * p else 1 - lower_tail(n, 1 - p, n - k + 1)


def lower_tail(n: int, p: mpmath.mpf, k: int) -> mpmath.mpf:
    """P(Bin(n, p) < k) below the mean: the terms fall from the last one down."""
    term = mpmath.binomial(n, k - 1) * p ** (k - 1) * (1 - p) ** (n - k + 1) if k > 0 else mpmath.mpf(0)
    total = mpmath.mpf(0)
    for j in range(k - 1, -1, -1):
        total += term
        if term < total * mpmath.mpf(10) ** -40:
            break
        term *= j * (1 - p) / ((n - j + 1) * p)
    return total


@pytest.mark.parametrize("n", [2, 3, 10, 97, 1000, 30_162, 1_000_000])
@pytest.mark.parametrize("share", [0.0, 1e-9, 0.003, 0.25, 0.5, 0.7, 0.999, 1.0])
def test_binomial_tails_are_rounded_up_and_sharp(n: int, share: float) -> None:
    with mpmath.workdps(60):
        spread = math.sqrt(n * share * (1 - share)) + 1
        centre = n * share
        for k in {0, 1, 2, n, n + 1, *(max(0, min(n, round(centre - z * spread))) for z in (0, 1, 3, 6, 9))}:
            exact = exact_below(n, share, k)
            found = binomial_below(n, share, k)
            assert found >= exact, "an event is more likely than stated"
            assert found <= exact * (1 + mpmath.mpf("1e-6")) + mpmath.mpf("1e-99"), "far more likely than it is"


POPULATIONS: list[tuple[int, float, Mapping[str, tuple[float, float]] | tuple[float, float]]] = [
    (50, 1e-2, (0.3, 0.6)),
    (100, 1e-6, (0.25, 0.4)),
    (1000, 1e-6, (0.25, 0.4)),
    (30_162, 1e-9, (0.25, 0.4)),
    (30_162, 1e-3, (0.01, 0.99)),
    (500, 1e-4, {"F": (0.2, 0.4), "M": (0.5, 0.7), "other": (0.0, 0.2)}),
    (500, 1e-4, {"F": (0.0, 0.9), "M": (0.1, 0.3), "other": (0.2, 0.25)}),
]


def population_plan(n: int, delta: float, between: Any) -> ViewPlan:
    text = "distribution(g)" if isinstance(between, Mapping) else "share(g = 'F')"
    return plan_view_of(problem(Parameter(text, between=between), n=n, delta=delta))


@pytest.mark.parametrize(("n", "delta", "between"), POPULATIONS)
def test_the_stated_delta_covers_the_exact_tails(n: int, delta: float, between: Any) -> None:
    plan = population_plan(n, delta, between)
    assert (plan.certificate.epsilon, plan.certificate.delta) == (0.0, delta)
    with mpmath.workdps(60):
        tails = [exact_below(n, cell.share or 0.0, cell.keep) for cell in plan.cells]
        assert sum(tails) <= sum(cell.tail for cell in plan.cells) <= delta
        for cell, share in zip(plan.cells, exact_least_shares(between), strict=True):
            assert cell.share is not None
            assert Fraction(cell.share) <= share
            assert share - Fraction(cell.share) < Fraction(1, 10**15)


def exact_least_shares(between: Any) -> list[Fraction]:
    """The least share of each cell over all populations in the ranges: a corner of a small polytope."""
    if not isinstance(between, Mapping):
        low, high = map(Fraction, map(repr, between))
        return [low, 1 - high]
    ends = [tuple(map(Fraction, map(repr, pair))) for pair in between.values()]
    return [max(low, 1 - sum(high for _, high in ends) + own) for low, own in ends]


@pytest.mark.parametrize(("n", "delta", "between"), POPULATIONS)
def test_one_more_row_would_exceed_its_part_of_delta(n: int, delta: float, between: Any) -> None:
    plan = population_plan(n, delta, between)
    with mpmath.workdps(60):
        for cell in plan.cells:
            if cell.keep < n:
                assert exact_below(n, cell.share or 0.0, cell.keep + 1) > delta / len(plan.cells) * (1 - 1e-6)


@pytest.mark.parametrize(("n", "delta", "between"), [row for row in POPULATIONS if row[0] <= 100])
def test_the_worst_population_is_at_an_end(n: int, delta: float, between: Any) -> None:
    """Brute force over phi: P(some count is below what is kept) never exceeds the stated delta."""
    plan = population_plan(n, delta, between)
    first, second = plan.cells
    low, high = between
    with mpmath.workdps(40):
        chances = []
        for step in range(41):
            phi = low + (high - low) * step / 40
            # fewer than `first.keep` in the first cell, or fewer than `second.keep` in the second
            chances.append(exact_below(n, phi, first.keep) + 1 - exact_below(n, phi, n - second.keep + 1))
        assert max(chances) <= delta
        assert max(chances) == max(chances[0], chances[-1])
        assert max(chances) > delta / 200, "far from tight"


@pytest.mark.parametrize("between", [{"F": (0.2, 0.4), "M": (0.5, 0.7), "other": (0.0, 0.2)}])
def test_several_cells_by_brute_force(between: Mapping[str, tuple[float, float]]) -> None:
    """All populations on a grid, all count vectors: the failure has at most the stated delta, and is not far from it."""
    n, delta = 12, 0.2
    plan = population_plan(n, delta, between)
    grid = range(0, 21)
    worst = 0.0
    for steps in itertools.product(grid, repeat=3):
        shares = [k / 20 for k in steps]
        if sum(steps) != 20 or not all(a <= s <= b for s, (a, b) in zip(shares, between.values(), strict=True)):
            continue
        failure = 0.0
        for counts in itertools.product(range(n + 1), repeat=3):
            if sum(counts) == n and any(c < cell.keep for c, cell in zip(counts, plan.cells, strict=True)):
                ways = math.factorial(n) // math.prod(map(math.factorial, counts))
                failure += ways * math.prod(s**c for s, c in zip(shares, counts, strict=True))
        worst = max(worst, failure)
    assert delta / 20 < worst <= delta


def test_the_population_certificate_fires_beyond_its_delta() -> None:
    plan = population_plan(1000, 1e-6, (0.25, 0.4))
    for k, cell in enumerate(plan.cells):
        raised = cell.model_copy(update={"keep": cell.keep + 3, "low": cell.low + 3})
        cells = (*plan.cells[:k], raised, *plan.cells[k + 1 :])
        with pytest.raises(CertificateError, match="above the promised 1e-06"):
            verified(evidence(n=1000, cells=cells, population=True), 1e-6)
        with pytest.raises(CertificateError):  # the stored tail is not believed
            verified(evidence(n=1000, cells=(raised.model_copy(update={"tail": 0.0}), *plan.cells[1:]), population=True), 1e-6)
    with pytest.raises(CertificateError):
        verified(evidence(population=True), 0.5)  # no shares


def test_a_population_plan_says_so() -> None:
    plan = population_plan(1000, 1e-6, (0.25, 0.4))
    text = str(plan)
    assert "for every population in the range" in text
    assert "up to probability" in text
    assert "the law of a row, given its cell, does not depend on the hidden share" in text
    assert "the law of a row" not in str(plan_view_of(problem()))


def test_a_population_without_a_least_share_keeps_nothing_of_that_cell() -> None:
    plan = population_plan(500, 1e-4, {"F": (0.0, 0.9), "M": (0.1, 0.3), "other": (0.2, 0.25)})
    assert kept(plan)["F"] > 0, "the others leave at least 45 percent"
    plan = population_plan(500, 1e-4, (0.0, 0.5))
    assert kept(plan)["g = 'F'"] == 0


# The public composition.


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({}, {"F": 0.325 / 0.95, "M": 0.575 / 0.95, "other": 0.05 / 0.95}),
        ({"F": 0.3}, {"F": 0.3, "M": 0.7 * 0.575 / 0.625, "other": 0.7 * 0.05 / 0.625}),
        ({"F": 0.3, "M": 0.6, "other": 0.1}, {"F": 0.3, "M": 0.6, "other": 0.1}),
        ({"F": 0.3, "M": 0.7}, {"F": 0.3, "M": 0.7, "other": 0.0}),
    ],
)
def test_the_public_composition(declared: dict[str, float], expected: dict[str, float]) -> None:
    between = {"F": (0.25, 0.4), "M": (0.5, 0.65), "other": (0.0, 0.1)}
    plan = plan_view_of(problem(Secret("distribution(g)", between=between)))
    middles = {cell.name: (cell.low + cell.high) / 2 for cell in plan.cells}
    assert middles == {"F": 325, "M": 575, "other": 50}
    shares = public_shares(plan, declared)
    assert shares == pytest.approx(expected)
    assert sum(shares.values()) == pytest.approx(1)
    assert {name: shares[name] for name in declared} == declared, "a declared share is taken as it is"


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"W": 0.3}, "composition: the cells are F, M, other. Got 'W'."),
        ({"F": 0.3, "M": 0.6, "other": 0.2}, "must add up to 1. Got 1.1"),
        ({"F": 0.3, "M": 0.6, "other": 0.05}, "must add up to 1. Got 0.95"),
        ({"F": 0.9, "M": 0.6}, "must add up to 1. Got 1.5"),
    ],
)
def test_a_bad_public_composition(declared: dict[str, float], message: str) -> None:
    plan = plan_view_of(problem(Secret("distribution(g)", between=CELLS)))
    with pytest.raises(Refusal, match=re.escape(message)):
        public_shares(plan, declared)
