"""The chance that weights are too short, from both sides, at small tables where every term of the bound matters."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from attrpriv.errors import UsageError
from attrpriv.methods.calibrated_weights.proof import Failure, _bound, _coarse, _excess, failure_upper, least_bound

NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)


def exact(case: Failure, excess: float) -> tuple[float, float]:
    """P(D + chi'2(L) > excess chi2), and the same of (sqrt L + chi)^2: by Gauss and Legendre over the root of the numerator."""
    loose, freedom = case.columns - case.fixed, case.rows - case.columns
    if not loose:
        return (float(chi2.cdf(case.distance / excess, freedom)),) * 2
    root = math.sqrt(case.wander)
    s = (NODES + 1) / 2 * (root + 14.0)
    weights = WEIGHTS * 2 * s * (root + 14.0) / 2
    law = ncx2(loose, case.wander) if case.wander else chi2(loose)
    own = chi2.cdf((case.distance + s * s) / excess, freedom) * law.pdf(s * s)
    larger = chi2.cdf((case.distance + (root + s) ** 2) / excess, freedom) * chi2(loose).pdf(s * s)
    return float(own @ weights), float(larger @ weights)


CASES = [
    Failure(40, 2, 2, 12.0),
    Failure(40, 2, 1, 12.0),
    Failure(40, 4, 1, 3.0),
    Failure(60, 3, 1, 0.0),
    Failure(60, 3, 2, 5.0, 1.5),
    Failure(90, 5, 2, 20.0, 0.5),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("times", [0.6, 1.2, 2.5, 6.0])
def test_the_bound_is_above_the_truth_and_near(case: Failure, times: float) -> None:
    """At lengths of which the mean failure is so many times as long: from nearly certain to rare."""
    mean = (case.distance + case.wander + case.columns - case.fixed) / (case.rows - case.columns)
    bound = float((1 + Fraction(times * mean)) / case.rows)
    true, larger = exact(case, float(case.rows * Fraction(bound) - 1))
    found = failure_upper(case, bound)
    assert true * (1 - 1e-9) <= larger * (1 - 1e-9) <= found <= 1
    assert found <= larger * 1.35 + 1e-12 or larger > 0.5


def test_a_numerator_beyond_the_last_step_counts() -> None:
    """Of 100,000 rows the denominator hardly varies: what fails is a numerator above 400, further out than the steps go."""
    bound = float((1 + Fraction(400, 100_000)) / 100_002)
    assert chi2(1).sf(420) <= failure_upper(Failure(100_002, 2, 1, 0.0), bound) <= 1e-50


def test_what_a_length_exceeds_the_shortest_by() -> None:
    assert _excess(16, 0.25) == pytest.approx(3.0, rel=1e-12)
    assert _excess(16, 0.25) < 3.0
    assert _excess(4, 0.25 + 2.0**-50) == pytest.approx(2.0**-48, rel=1e-12)  # in fractions: floats would lose it
    for bound in (1 / 16, 1 / 32, 0.0, -1.0, math.inf, math.nan):
        with pytest.raises(UsageError, match="bound: must be finite and above 1/rows"):
            _excess(16, bound)


def test_a_length_is_found_to_a_few_bits_from_above() -> None:
    for x in (0.3, 1.0, 7.7, 1e5):
        assert x * (1 - 2.0**-25) <= _coarse(x) <= x
        assert (_coarse(x) * 2.0**60).is_integer()
        assert math.frexp(_coarse(x))[0] * 2**26 % 1 == 0
        bound = _bound(40, x)
        assert Fraction(bound) > (1 + 1 / Fraction(x)) / 40 >= Fraction(math.nextafter(math.nextafter(bound, 0.0), 0.0))


@pytest.mark.parametrize("case", [Failure(40, 2, 2, 12.0), Failure(40, 2, 1, 12.0), Failure(40, 2, 2, 0.5)])
@pytest.mark.parametrize("delta", [1e-4, 0.1])
def test_the_least_length_is_just_enough(case: Failure, delta: float) -> None:
    """Also where the search begins far off: of two cases, the longer."""
    bound = least_bound([case], delta)
    assert failure_upper(case, bound) <= delta
    shorter = (1 + (40 * bound - 1) * (1 - 1e-6)) / 40
    assert failure_upper(case, shorter) > delta
    easy = Failure(40, 2, 2, 0.01)
    assert least_bound([easy, case], delta) == least_bound([case, easy], delta) == bound


@pytest.mark.parametrize("told", [(40, 0, 0), (40, 2, 0), (40, 2, 3), (40, 40, 1), (40, 41, 1)])
def test_columns_are_fewer_than_rows(told: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match="columns: needs"):
        Failure(*told, 1.0)
    Failure(40, 39, 39, 1.0)
    assert Failure(40, 2, 1, 0.0).wander == 0.0
    for cases in ([], [Failure(40, 2, 1, 1.0), Failure(50, 2, 1, 1.0)]):
        with pytest.raises(UsageError, match="failures: must be one or more"):
            least_bound(cases, 0.1)


@pytest.mark.parametrize(
    ("distance", "wander"), [(-1e-9, 0.0), (math.inf, 0.0), (math.nan, 0.0), (1.0, -1e-9), (1.0, math.inf), (1.0, math.nan)]
)
def test_distances_are_finite_numbers(distance: float, wander: float) -> None:
    with pytest.raises(UsageError, match="distance, wander"):
        Failure(40, 2, 1, distance, wander)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_a_chance_of_failing_is_between_0_and_1(delta: float) -> None:
    with pytest.raises(UsageError, match="delta: must be above 0 and below 1"):
        least_bound([Failure(40, 2, 2, 1.0)], delta)
