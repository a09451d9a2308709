"""What answers without noise tell of a secret: by the normal law, or by the laws of a count, written out."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases import exact_answer as module
from attrpriv.cases.exact_answer import exact_answer
from attrpriv.cases.shift import ShiftCase
from attrpriv.methods.base.accuracy import BY_LAWS, EXACT_FORMULA, EXACT_LAWS
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import MOMENTS, chain_problem, counts_problem, problem
from tests.unit.methods.proofs import gaussian_delta

INCOME, HEIGHT = Secret("mean(income)", within=1_000.0), Secret("mean(height)", within=0.01)


@pytest.mark.parametrize("times", [0.5, 1.0, 3.0])
def test_a_normal_average_moves_by_so_many_of_its_sds(times: float) -> None:
    """By the stated moments, whatever the tolerance is: slope 0.3 * 25 / 30,000, and what income leaves of a row."""
    asked = problem(secrets=(INCOME, HEIGHT), n=10_000)
    for secret, rho, sd, gap in ((INCOME, 0.3, 30_000.0, 1_000.0), (HEIGHT, 0.5, 4.0, 0.01)):
        found = exact_answer(asked, secret, times)
        assert found is not None
        assert found.profile == EXACT_FORMULA
        mu = times * rho * 25.0 / sd * gap / (25.0 * math.sqrt(1 - rho**2) / 100)
        for epsilon in (0.1, 1.0):
            assert found.delta(epsilon) == pytest.approx(float(gaussian_delta(epsilon, mu)), rel=1e-6, abs=1e-300)


def test_an_answer_that_is_the_secret_shows_it() -> None:
    found = exact_answer(problem(queries=(Query("avg", "income"),), secrets=(INCOME,)), INCOME, 1.0)
    assert found is not None
    assert found.delta(5.0) == 1.0


@pytest.mark.parametrize(
    "made",
    [[], [ShiftCase("mean(income)", 0, np.ones((1, 1)), np.ones((1, 1)), signless=True)]],
)
def test_what_no_law_is_known_of_is_not_told(made: list[ShiftCase], monkeypatch: pytest.MonkeyPatch) -> None:
    """No case of the secret, or one that stands for any signs, even beside another."""
    plain = ShiftCase("mean(income)", 0, np.ones((1, 1)), np.ones((1, 1)))
    monkeypatch.setattr(module, "seen_in", lambda *told: [*made, plain] if made else [])
    assert exact_answer(problem(secrets=(INCOME,)), INCOME, 1.0) is None
    monkeypatch.setattr(module, "seen_in", lambda *told: [plain])
    assert exact_answer(problem(secrets=(INCOME,)), INCOME, 1.0) is not None


def test_where_nothing_is_known_nothing_is_told() -> None:
    for times in (0.0, -1.0, math.nan):
        assert exact_answer(problem(secrets=(INCOME,)), INCOME, times) is None
    entries = chain_problem()
    assert exact_answer(entries, entries.secrets[0], 1.0) is None
    sets = Secret("mean(income)", cases=["< 60000", ">= 60000"])
    assert exact_answer(problem(secrets=(sets,)), sets, 1.0) is None


# ------------------------------------------------------------------------------------------------------------------ counts

YES = Secret("count(smoker = 'yes')", between=(3.0, 8.0), within=2.0)


def counts(given: Any = (0.4, 0.2), secret: Secret = YES, **changes: Any) -> Problem:
    theta = Counts(sensitive="smoker", given={"stay > 7": dict(zip(("yes", "no"), given, strict=True))})
    return counts_problem(**({"theta": (theta,), "secrets": (secret,), "n": 10} | changes))


def law(a: int) -> np.ndarray:
    yes, no = (np.array(binom.pmf(range(k + 1), k, p)) for k, p in ((a, 0.4), (10 - a, 0.2)))
    return np.convolve(yes, no)


@pytest.mark.parametrize(("times", "apart"), [(0.4, 1), (0.5, 1), (1.0, 2), (1.3, 3), (2.0, 4), (9.0, 5)])
def test_a_count_of_two_tables_with_so_many_rows_changed(times: float, apart: int) -> None:
    """Whole rows, one at least, and no more than the range has."""
    found = exact_answer(counts(), YES, times)
    assert found is not None
    assert found.profile == EXACT_LAWS
    for epsilon in (0.1, 0.7):
        pairs = ((a, b) for a, b in itertools.permutations(range(3, 9), 2) if abs(a - b) <= apart)
        exact = max(float(np.maximum(law(a) - math.exp(epsilon) * law(b), 0).sum()) for a, b in pairs)
        assert found.delta(epsilon) == pytest.approx(exact, rel=1e-6)


def test_of_intervals_and_of_populations_the_worst_is_told() -> None:
    box = exact_answer(counts((0.4, (0.1, 0.2))), YES, 1.0)
    known = exact_answer(counts(), YES, 1.0)
    assert box is not None
    assert known is not None
    assert box.profile == BY_LAWS
    assert box.delta(0.3) > known.delta(0.3)
    share = Parameter("share(smoker = 'yes')", between=(0.2, 0.7))
    near, far = (exact_answer(counts(secret=share), share, times) for times in (0.1, 1.0))
    assert near is not None
    assert far is not None
    assert near.profile == BY_LAWS
    assert near.delta(0.2) == far.delta(0.2)
    p, q = (np.array(binom.pmf(range(11), 10, s * 0.4 + (1 - s) * 0.2)) for s in (0.2, 0.7))
    exact = max(float(np.maximum(one - math.exp(0.2) * two, 0).sum()) for one, two in ((p, q), (q, p)))
    assert far.delta(0.2) == pytest.approx(exact, rel=1e-6)


def test_of_several_secrets_each_is_told_for_itself() -> None:
    """And a histogram has no law that is known here."""
    other = Secret("count(smoker = 'no')", between=(0.0, 10.0))
    both = counts().model_copy(update={"secrets": (YES, other)})
    near, far = (exact_answer(both, secret, 1.0) for secret in (YES, other))
    alone = exact_answer(counts(), YES, 1.0)
    assert near is not None
    assert far is not None
    assert alone is not None
    assert near.delta(0.3) == alone.delta(0.3) < far.delta(0.3)
    assert exact_answer(counts(secret=other), YES, 1.0) is None
    histogram = counts_problem(queries=(Query("count", group_by="visits"),))
    assert exact_answer(histogram, histogram.secrets[0], 1.0) is None


def test_of_a_list_of_assumptions_the_worst_is_told_in_any_order() -> None:
    near, far, wide = (counts(given).theta[0] for given in ((0.4, 0.2), (0.7, 0.2), (0.4, (0.19, 0.2))))
    alone = exact_answer(counts((0.7, 0.2)), YES, 1.0)
    assert alone is not None
    for theta in ((near, far), (far, near), (far, wide), (wide, far)):
        found = exact_answer(counts(theta=theta), YES, 1.0)
        assert found is not None
        assert found.profile == (BY_LAWS if wide in theta else EXACT_LAWS)
        assert found.delta(0.3) == alone.delta(0.3)
    strong = Gaussian(**(MOMENTS | {"correlation": MOMENTS["correlation"] | {("weight", "income"): 0.6}}), tolerance=0)
    weak = Gaussian(**MOMENTS, tolerance=0)
    single = exact_answer(problem(theta=(strong,), secrets=(INCOME,)), INCOME, 1.0)
    assert single is not None
    for members in ((strong, weak), (weak, strong)):
        normal = exact_answer(problem(theta=members, secrets=(INCOME,)), INCOME, 1.0)
        assert normal is not None
        assert normal.delta(0.1) == single.delta(0.1)
