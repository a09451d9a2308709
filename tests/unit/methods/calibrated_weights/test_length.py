"""The length of calibrated weights: the chance that it is not enough, from above, and that the law behind it is real."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, kstest, ncx2

from attrpriv.errors import UsageError
from attrpriv.methods.calibrated_weights import proof as calibrated_weights
from attrpriv.methods.calibrated_weights.proof import Failure, failure_upper, least_bound
from attrpriv.numerics.laws.chi_squared import lower_tail_upper

SCHOOL = Failure(rows=10_000, columns=1, fixed=1, distance=9e4)
ALARM = 1e-7


def exact(case: Failure, bound: float) -> float:
    """The twin, by quadrature over the noncentral law itself; with everything fixed, by mpmath."""
    excess, loose = case.rows * bound - 1, case.columns - case.fixed
    if not loose:
        with mp.workdps(40):
            x = mp.mpf(case.distance) / (case.rows * mp.mpf(bound) - 1)
            return float(mp.gammainc(mp.mpf(case.rows - case.columns) / 2, 0, x / 2, regularized=True))
    law = ncx2(loose, case.wander) if case.wander else chi2(loose)
    turn = math.sqrt(max(0.01, excess * (case.rows - case.columns) - case.distance))

    def integrand(s: float) -> float:
        return float(chi2.cdf((case.distance + s * s) / excess, case.rows - case.columns) * law.pdf(s * s) * 2 * s)

    return float(quad(integrand, 0, turn, limit=500, epsabs=0)[0] + quad(integrand, turn, turn + 20, limit=500, epsabs=0)[0])


CASES = [
    SCHOOL,
    Failure(200, 1, 1, 50.0),
    Failure(10_000, 2, 1, 9e4),
    Failure(10_000, 2, 1, 1.0),
    Failure(1_000, 3, 1, 100.0),
    Failure(1_000, 3, 2, 100.0, 4.0),
    Failure(500, 4, 1, 0.0, 9.0),
    Failure(50, 2, 2, 30.0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_the_bound_found_is_private_and_not_much_longer_than_it_must_be(case: Failure, delta: float) -> None:
    bound = least_bound([case], delta)
    assert failure_upper(case, bound) <= delta
    assert exact(case, bound) <= delta * (1 + 1e-6)
    # A noncentral law is replaced by a larger one; without it, a quarter of delta is lost at most.
    assert exact(case, bound) >= delta * (0.01 if case.wander else 0.7)


def test_the_school() -> None:
    """sd 25 and 30,000, correlation .3, range 20,000 to 200,000, delta 1e-6: the error of the answer before its mask."""
    for mean, error in ((110_000, 0.744), (60_000, 1.154)):
        far = max(abs(20_000 - mean), abs(200_000 - mean)) / 30_000
        bound = least_bound([Failure(10_000, 1, 1, 10_000 * far**2)], 1e-6)
        squared = 625 * 0.91 * (bound - 1e-4) + 625 * 0.09 / 10_000
        assert math.sqrt(squared) == pytest.approx(error, abs=5e-4)


def test_it_grows_with_the_distance_and_falls_with_the_bound() -> None:
    for case in CASES:
        bound = least_bound([case], 1e-4)
        further = Failure(case.rows, case.columns, case.fixed, case.distance * 1.1 + 0.1, case.wander)
        assert failure_upper(further, bound) > failure_upper(case, bound)
        assert failure_upper(case, bound * 1.01) <= failure_upper(case, bound)
        if case.columns > case.fixed:
            wilder = Failure(case.rows, case.columns, case.fixed, case.distance, case.wander + 1)
            assert failure_upper(wilder, bound) >= failure_upper(case, bound)


def test_several_cases_take_the_longest() -> None:
    assert least_bound([SCHOOL, Failure(10_000, 1, 1, 1e4)], 1e-6) == least_bound([SCHOOL], 1e-6)


def test_a_bound_from_the_wrong_degrees_of_freedom_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: n instead of n - p, which at few rows is far off."""
    right = lower_tail_upper
    monkeypatch.setattr(calibrated_weights, "lower_tail_upper", lambda freedom, x: right(freedom + 2, x))
    bound = least_bound([Failure(50, 2, 2, 30.0, 0.25)], 1e-6)
    assert exact(Failure(50, 2, 2, 30.0, 0.25), bound) > 1e-6


@pytest.mark.parametrize("fixed", ["one mean", "a combination", "both means"])
def test_the_law_of_q_is_the_one_that_tables_have(fixed: str) -> None:
    """4,000 tables of 40 rows with two correlated columns, given the secret's value; alarm 1e-7.

    The Kolmogorov test at this size sees laws that are 0.06 apart, such as a distance that is off by 10%, or the wrong degrees
    of freedom in the last line.
    """
    rng = np.random.default_rng(7)
    n, tables = 40, 4_000
    mu, target = np.array([1.0, -2.0]), np.array([1.3, -1.6])
    sigma = np.array([[4.0, 1.2], [1.2, 1.0]])
    forms = {"one mean": [[1.0, 0.0]], "a combination": [[1.0, -2.0]], "both means": [[1.0, 0.0], [0.0, 1.0]]}[fixed]
    c = np.array(forms)
    value = c @ np.array([3.0, 0.5])
    x = rng.multivariate_normal(mu, sigma, size=(tables, n))
    means = x.mean(axis=1)
    # Rows given c'mean = value: move every row of a table by what the regression on the statistic says.
    gain = sigma @ c.T @ np.linalg.inv(c @ sigma @ c.T)
    x = x + ((value - means @ c.T) @ gain.T)[:, None, :]
    ones = np.ones((tables, n, 1))
    a = np.concatenate([ones, x], axis=2)
    a0 = np.array([1.0, *target])
    q = np.einsum("i,tij,j->t", a0, np.linalg.inv(np.einsum("tni,tnj->tij", a, a)), a0)
    d = c @ target - value
    distance = n * float(d @ np.linalg.inv(c @ sigma @ c.T) @ d)
    e = target - mu
    wander = n * float(e @ np.linalg.inv(sigma) @ e - (c @ e) @ np.linalg.inv(c @ sigma @ c.T) @ (c @ e))
    loose = 2 - len(forms)
    numerator = distance + (ncx2(loose, wander).rvs(200_000, random_state=rng) if loose else np.zeros(200_000))
    law = numerator / chi2(n - 2).rvs(200_000, random_state=rng)
    assert kstest(n * q - 1, law).pvalue > ALARM
    assert kstest(n * q - 1, numerator / chi2(n - 12).rvs(200_000, random_state=rng)).pvalue < ALARM


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Failure(3, 3, 1, 1.0),
        lambda: Failure(30, 1, 2, 1.0),
        lambda: Failure(30, 1, 1, math.nan),
        lambda: Failure(30, 1, 1, 1.0, -1.0),
        lambda: failure_upper(SCHOOL, math.nextafter(1e-4, 0)),
        lambda: failure_upper(SCHOOL, math.nan),
        lambda: least_bound([SCHOOL], 0.0),
        lambda: least_bound([], 1e-6),
        lambda: least_bound([SCHOOL, Failure(50, 1, 1, 1.0)], 1e-6),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError):
        wrong()  # type: ignore[operator]


@pytest.mark.parametrize("case", [Failure(30, 2, 1, 0.0), Failure(50, 3, 1, 2.0), Failure(500, 4, 1, 0.0)], ids=str)
def test_where_failing_is_likely_the_chance_is_near_too(case: Failure) -> None:
    """Lengths that fail in every fifth table or less often: the steps end where failing is certain, and so does the law."""
    for times in (1.5, 3.0, 6.0, 12.0):
        excess = (case.distance + times * (case.columns - case.fixed)) / (case.rows - case.columns)
        true = exact(case, (1 + excess) / case.rows)
        assert true <= failure_upper(case, (1 + excess) / case.rows) <= 1.25 * true
