"""Laws on whole numbers: every claimed error bound holds against exact arithmetic, and a law that cannot claim one says so."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import lattice_law as module
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, discrete_gaussian, discrete_laplace, mixture, record_sum
from attrpriv.numerics.laws.records import exactly

Exact = dict[int, Fraction]


def exact_binomial(n: int, p: float) -> Exact:
    x = exactly(p)
    return {k: math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(n + 1)}


def exact_sum(p: Exact, q: Exact) -> Exact:
    total: Exact = {}
    for (x, mass), (y, other) in product(p.items(), q.items()):
        total[x + y] = total.get(x + y, Fraction(0)) + mass * other
    return total


def exact_record(values: tuple[int, ...], law: tuple[float, ...]) -> Exact:
    total = sum(map(Fraction, law), Fraction(0))
    return {v: Fraction(p) / total for v, p in zip(values, law, strict=True)}


def exact_power(law: Exact, n: int) -> Exact:
    result: Exact = {0: Fraction(1)}
    for _ in range(n):
        result = exact_sum(result, law)
    return result


def violations(law: LatticeLaw, truth: Exact) -> list[str]:
    """What the law claims wrongly."""
    masses = {law.start + k: Fraction(float(mass)) for k, mass in enumerate(law.masses)}
    found = []
    if math.isfinite(law.error):
        for k, mass in masses.items():
            if abs(truth.get(k, Fraction(0)) - mass) > Fraction(law.error) * mass:
                found.append(f"mass at {k}")
    differences = [truth.get(k, Fraction(0)) - masses.get(k, Fraction(0)) for k in truth.keys() | masses.keys()]
    off = max(sum(d for d in differences if d > 0), -sum(d for d in differences if d < 0))
    if off > Fraction(law.distance):
        found.append("total")
    outside = sum(p for k, p in truth.items() if not law.start <= k <= law.end)
    if outside > Fraction(law.lost):
        found.append("window")
    return found


probabilities = st.floats(0.0, 1.0).filter(lambda p: p == 0 or p > 1e-12)


@given(a=st.integers(0, 12), b=st.integers(0, 12), p1=probabilities, p0=probabilities)
@settings(max_examples=120, deadline=None)
@example(a=3, b=2, p1=1.0, p0=0.0)
@example(a=3, b=0, p1=0.3, p0=0.0)
@example(a=0, b=0, p1=0.3, p0=0.5)
def test_binomial_sums_are_pointwise_right(a: int, b: int, p1: float, p0: float) -> None:
    law = binomial_sum(a, p1, b, p0)
    assert law.pointwise
    assert law.error < 1e-13
    assert violations(law, exact_sum(exact_binomial(a, p1), exact_binomial(b, p0))) == []


@pytest.mark.parametrize(("a", "b", "p1", "p0"), [(60, 0, 0.3, 0.5), (0, 200, 0.5, 0.013), (30, 20, 0.4, 0.6)])
@pytest.mark.parametrize("tail", [0.0, 1e-20, 1e-9, 1e-3])
def test_windows_lose_what_they_say(a: int, b: int, p1: float, p0: float, tail: float) -> None:
    law = binomial_sum(a, p1, b, p0, tail=tail)
    assert violations(law, exact_sum(exact_binomial(a, p1), exact_binomial(b, p0))) == []
    assert law.lost <= tail + 1e-11
    assert not law.pointwise or (law.start, law.end) == (0, a + b)


def test_a_wrong_claim_is_noticed() -> None:
    """The mutant: the same masses with a tenth of the lost mass, or a law that forgot its error."""
    truth = exact_binomial(200, 0.3)
    law = binomial_sum(200, 0.3, 0, 0.3, tail=1e-3)
    assert "window" in violations(LatticeLaw(law.start, law.masses, law.error, law.lost / 1e6), truth)
    assert "mass at" in " ".join(violations(LatticeLaw(law.start, law.masses, 1e-17, 1.0), truth))


def test_the_first_table_of_the_paper() -> None:
    assert binomial_sum(0, 0.4, 4, 0.6).masses.round(4).tolist() == [0.0256, 0.1536, 0.3456, 0.3456, 0.1296]
    assert binomial_sum(4, 0.4, 0, 0.6).masses.round(4).tolist() == [0.1296, 0.3456, 0.3456, 0.1536, 0.0256]


def test_the_second_table_of_the_paper() -> None:
    """phi_2 = 0.8 and 0.2: a row counts with probability 0.6 - 0.2 phi_2."""
    laws = [
        mixture([binomial_sum(a, 0.4, 4 - a, 0.6) for a in range(5)], binomial_sum(4, phi, 0, phi).masses.tolist())
        for phi in (0.8, 0.2)
    ]
    assert laws[0].masses.round(4).tolist() == [0.0983, 0.3091, 0.3643, 0.1908, 0.0375]
    assert laws[1].masses.round(4).tolist() == [0.0375, 0.1908, 0.3643, 0.3091, 0.0983]
    np.testing.assert_allclose(laws[0].masses, binomial_sum(4, 0.44, 0, 0.5).masses, rtol=1e-12)
    assert all(law.pointwise for law in laws)


def test_a_mass_below_the_floats_is_never_claimed() -> None:
    for law in (binomial_sum(400, 0.001, 0, 0.5), binomial_sum(300, 0.01, 300, 0.01), binomial_sum(500, 0.1, 500, 0.01)):
        assert math.isinf(law.error)
        assert not law.pointwise
        assert law.lost > 0
    tiny = record_sum((0, 1), (1 - 1e-200, 1e-200), 2, (1.0, 0.0), 1)
    assert math.isinf(tiny.error)
    assert discrete_gaussian(0.01, tail=1e-9).lost > 0
    assert discrete_laplace(0.001, tail=1e-9).lost > 0


def test_without_a_tail_long_sums_too_are_known_at_every_value() -> None:
    """More products than a transform would be taken for: squares, one row more, and two kinds of rows."""
    values, law = (0, 3_000), (0.5, 0.5)
    assert module.DIRECT < (2 * 3_000 + 1) ** 2
    for a, b in ((4, 0), (5, 0), (2, 2)):
        found = record_sum(values, law, a, law, b)
        assert found.pointwise
        assert violations(found, exact_power({0: Fraction(1, 2), 3_000: Fraction(1, 2)}, a + b)) == []
    assert binomial_sum(5_800, 0.5, 5_800, 0.4999, tail=0.0).error == math.inf  # masses below the floats, not a transform


def test_a_million_rows() -> None:
    law = binomial_sum(300_000, 0.4, 700_000, 0.6, tail=1e-12)
    assert law.mean == pytest.approx(540_000, abs=1e-6)
    assert law.variance == pytest.approx(240_000, rel=1e-9)
    assert law.lost < 1e-11
    alone = binomial_sum(1_000_000, 0.4, 0, 0.5, tail=1e-12)
    assert alone.error < 1e-11
    # The middle, by Stirling's series to many digits.
    import mpmath

    with mpmath.workdps(40):
        p = mpmath.mpf(0.4)
        truth = mpmath.binomial(10**6, 400_000) * p**400_000 * (1 - p) ** 600_000
        assert abs(float(alone.masses[400_000 - alone.start] / truth) - 1) <= alone.error


records = st.integers(2, 4).flatmap(
    lambda size: st.tuples(
        st.lists(st.integers(-3, 6), min_size=size, max_size=size, unique=True).map(lambda v: tuple(sorted(v))),
        *(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any) for _ in range(2)),
    )
)


@given(given_=records, a=st.integers(0, 6), b=st.integers(0, 6), tail=st.sampled_from([0.0, 0.0, 1e-9, 1e-2]))
@settings(max_examples=80, deadline=None)
def test_record_sums(given_: tuple[tuple[int, ...], list[int], list[int]], a: int, b: int, tail: float) -> None:
    values = given_[0]
    laws = [tuple(weight / sum(weights) for weight in weights) for weights in given_[1:]]
    law = record_sum(values, laws[0], a, laws[1], b, tail=tail)
    truth = exact_sum(exact_power(exact_record(values, laws[0]), a), exact_power(exact_record(values, laws[1]), b))
    assert violations(law, {k: p for k, p in truth.items() if p}) == []
    assert law.pointwise or tail > 0


def test_the_transform_and_the_direct_sum_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of the FFT is within its bound, and the bound is not vacuous."""
    law, other = binomial_sum(3000, 0.3, 0, 0.5, tail=1e-15), binomial_sum(2000, 0.6, 0, 0.5, tail=1e-15)
    direct = law.convolve(other, exact=True)
    monkeypatch.setattr(module, "DIRECT", 0)
    fast = law.convolve(other, exact=False)
    off = np.abs(fast.masses - direct.masses).sum()
    assert 0 < off <= fast.lost - law.distance
    assert fast.lost < 1e-10
    assert math.isinf(fast.error)


def test_many_integer_rows() -> None:
    law = record_sum((0, 1, 5), (0.5, 0.3, 0.2), 400_000, (0.2, 0.3, 0.5), 600_000, tail=1e-9)
    assert law.mean == pytest.approx(400_000 * 1.3 + 600_000 * 2.8, rel=1e-9)
    assert law.lost < 5e-8
    assert abs(law.masses.sum() - 1) <= law.lost


def test_mixtures() -> None:
    parts = [LatticeLaw.of({0: 0.25, 3: 0.75}), LatticeLaw.of({1: 1.0})]
    law = mixture(parts, (0.3, 0.7))
    truth = {0: Fraction(0.25) * Fraction(0.3), 3: Fraction(0.75) * Fraction(0.3), 1: Fraction(0.7)}
    total = sum(truth.values())
    assert violations(law, {k: p / total for k, p in truth.items()}) == []
    assert law.pointwise
    windowed = mixture([binomial_sum(50, 0.3, 0, 0.5, tail=1e-3), parts[1]], (0.5, 0.5))
    assert math.isinf(windowed.error)
    assert windowed.lost > 0


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 7.5, 60.0])
@pytest.mark.parametrize("tail", [1e-3, 1e-12, 1e-30])
def test_noise_is_what_it_says(scale: float, tail: float) -> None:
    import mpmath

    with mpmath.workdps(120):
        unit = mpmath.mpf(scale)
        t = mpmath.exp(-1 / unit)
        for kind in ("laplace", "gaussian"):
            law = discrete_laplace(scale, tail=tail) if kind == "laplace" else discrete_gaussian(scale, tail=tail)
            values = range(law.start, law.end + 1)
            if kind == "laplace":
                true = [t ** abs(k) * (1 - t) / (1 + t) for k in values]
            else:
                true = [mpmath.exp(-((k / unit) ** 2) / 2) / theta(scale) for k in values]
            masses = [mpmath.mpf(float(mass)) for mass in law.masses]
            assert all(abs(x - y) <= mpmath.mpf(law.error) * x for x, y in zip(masses, true, strict=True))
            assert 1 - sum(true) <= mpmath.mpf(law.lost)
            closely = 1 + mpmath.mpf(10) ** -9 if kind == "laplace" else mpmath.mpf("1.3")  # a series, and a bound on one
            assert mpmath.mpf(law.lost) <= (1 - sum(true)) * closely + mpmath.mpf(10) ** -100
            assert law.lost <= tail * 1.001
            assert law.error < 1e-9 + tail


@cache
def theta(sigma: float) -> Any:
    """The sum of e^(-k^2/(2 sigma^2)) over all whole numbers."""
    import mpmath

    return mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2)))


def test_values_are_frozen_and_moved() -> None:
    law = LatticeLaw.of({2: 0.5, 4: 0.5})
    with pytest.raises(ValueError, match="read-only"):
        law.masses[0] = 1.0
    assert (law.start, law.end, law.mean, law.variance) == (2, 4, 3.0, 1.0)
    assert law.shifted(-2).start == 0
    assert law.mirrored().start == -4
    assert law.cdf().tolist() == [0.5, 0.5, 1.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: LatticeLaw(0, np.array([]), 0.0, 0.0),
        lambda: LatticeLaw(0, np.array([math.nan]), 0.0, 0.0),
        lambda: LatticeLaw(0, np.array([-0.1, 1.1]), 0.0, 0.0),
        lambda: LatticeLaw(0, np.ones(1), math.nan, 0.0),
        lambda: LatticeLaw(0, np.ones(1), 0.0, math.inf),
        lambda: LatticeLaw.of({0: 0.5, 1: 0.6}),
        lambda: LatticeLaw.of({0: math.nan, 1: 0.6}),
        lambda: LatticeLaw.of({}),
        lambda: LatticeLaw.of({0.5: 1.0}),  # type: ignore[dict-item]
        lambda: mixture([], []),
        lambda: binomial_sum(-1, 0.5, 0, 0.5),
        lambda: binomial_sum(1, 1.5, 0, 0.5),
        lambda: binomial_sum(1, math.nan, 0, 0.5),
        lambda: binomial_sum(1, 0.5, 0, 0.5, tail=-1.0),
        lambda: binomial_sum(1, 0.5, 0, 0.5, tail=math.nan),
        lambda: record_sum((0, 1), (0.5,), 1, (0.5, 0.5), 0),
        lambda: record_sum((0, 1), (0.5, 0.5), -1, (0.5, 0.5), 0),
        lambda: discrete_laplace(0.0, tail=1e-3),
        lambda: discrete_gaussian(math.inf, tail=1e-3),
        lambda: discrete_gaussian(1.0, tail=0.0),
        lambda: discrete_laplace(1e12, tail=1e-3),
    ],
)
def test_what_is_refused(make: object) -> None:
    with pytest.raises(UsageError):
        make()  # type: ignore[operator]


def test_a_vacuous_relative_error_becomes_an_absolute_one() -> None:
    law = LatticeLaw(0, np.array([0.5, 0.5]), 0.7, 0.0)
    assert math.isinf(law.error)
    assert law.lost >= 0.7


def test_tails_just_inside_and_just_outside() -> None:
    for tail in (0.0, 1e-280, 0.999):
        assert binomial_sum(4, 0.5, 3, 0.25, tail=tail).masses.sum() > 0
    for tail in (1e-281, 1.0, -1e-9, math.nan):
        with pytest.raises(UsageError, match="tail"):
            binomial_sum(4, 0.5, 3, 0.25, tail=tail)
