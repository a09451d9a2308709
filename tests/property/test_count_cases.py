"""Sets of counts on random small problems: brute force over all counts and rows is never above what is certified, and no lower.

The twin knows no recursion: it adds up the law of every count of a set row by row, in fractions, weighs it by the binomial law,
and compares all outputs of every two sets, both ways.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attrpriv.numerics.calibration.count_cases as calibration
import attrpriv.numerics.laws.count_cases as module
from attrpriv.numerics.calibration.count_cases import case_delta, case_loss, least_case_scale
from attrpriv.numerics.calibration.direct import least_direct_scale
from attrpriv.numerics.calibration.laplace import least_laplace_scale
from attrpriv.numerics.divergences.lattice import lattice_delta_upper
from attrpriv.numerics.laws.count_cases import CountCases, case_laws, whole_cases
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

Law = dict[int, Fraction]
SCALES = st.sampled_from([0.3, 1.0, 2.5])
NOISES = st.sampled_from(["none", "laplace", "gaussian"])


# ----------------------------------------------------------------------------------------------------------------- the twin


def count_law(n: int, a: int, records: RecordLaws) -> Law:
    laws = []
    for law in (records.member, records.rest):
        masses = [Fraction(low) for low, _ in law]
        laws.append([mass / sum(masses) for mass in masses])
    total: Law = {0: Fraction(1)}
    for row in range(n):
        step: Law = {}
        for (f, mass), (value, p) in itertools.product(
            total.items(), zip(records.values, laws[0 if row < a else 1], strict=True)
        ):
            if p:
                step[f + value] = step.get(f + value, Fraction(0)) + mass * p
        total = step
    return total


def binomial(cases: CountCases, a: int) -> Fraction:
    share = Fraction(cases.share)
    return math.comb(cases.n, a) * share**a * (1 - share) ** (cases.n - a)


def true_laws(cases: CountCases) -> list[Law]:
    found = []
    for case in cases.cases:
        law: Law = {}
        counts = [a for low, high in case for a in range(low, high + 1)]
        for a in counts:
            for f, mass in count_law(cases.n, a, cases.records).items():
                law[f] = law.get(f, Fraction(0)) + binomial(cases, a) * mass
        total = sum(binomial(cases, a) for a in counts)
        found.append({f: mass / total for f, mass in law.items()})
    return found


def kernel(noise: str, scale: float, reach: int) -> list[Any]:
    """P(Z = 0), P(Z = 1), ... in 30 digits."""
    with mpmath.workdps(30):
        if noise == "none":
            return [mpmath.mpf(1), *[mpmath.mpf(0)] * reach]
        s = mpmath.mpf(scale)
        masses = [mpmath.exp(-d / s if noise == "laplace" else -(d**2) / (2 * s * s)) for d in range(reach + 1)]
        u = mpmath.exp(-1 / s)
        total = (1 + u) / (1 - u) if noise == "laplace" else mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * s * s)))
        return [mass / total for mass in masses]


def noisy(cases: CountCases, noise: str, scale: float, margin: int) -> list[list[Any]]:
    """The law of the noisy answer given each case, from `margin` below the least answer to as much above the largest."""
    low, high = cases.n * cases.records.values[0], cases.n * cases.records.values[-1]
    noises = kernel(noise, scale, high - low + margin)
    with mpmath.workdps(30):
        laws = [{f: mpmath.mpf(m.numerator) / m.denominator for f, m in law.items()} for law in true_laws(cases)]
        window = range(low - margin, high + margin + 1)
        return [[mpmath.fdot((m, noises[abs(o - f)]) for f, m in law.items()) for o in window] for law in laws]


def true_loss(cases: CountCases, scale: float) -> Any:
    worst = mpmath.mpf(1)
    for p_law, q_law in itertools.permutations(noisy(cases, "laplace" if scale else "none", scale, 2), 2):
        with mpmath.workdps(30):
            worst = max(worst, *((p / q if q > 0 else mpmath.inf) for p, q in zip(p_law, q_law, strict=True) if p > 0))
    with mpmath.workdps(30):
        return mpmath.log(worst)


def true_delta(cases: CountCases, noise: str, scale: float, epsilon: float) -> Any:
    return max(deltas(cases, noise, scale, epsilon))


def deltas(cases: CountCases, noise: str, scale: float, epsilon: float) -> list[Any]:
    """H of every ordered pair of cases."""
    reach = {"none": 0, "laplace": math.ceil(40 * scale), "gaussian": math.ceil(9 * scale)}[noise]
    laws = noisy(cases, noise, scale, reach)
    with mpmath.workdps(30):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        return [
            mpmath.fsum(max(mpmath.mpf(0), p - growth * q) for p, q in zip(p_law, q_law, strict=True))
            for p_law, q_law in itertools.permutations(laws, 2)
        ]


# ----------------------------------------------------------------------------------------------------------------- problems


@st.composite
def problems(draw: st.DrawFn, most: int = 8) -> CountCases:
    """Two or three sets of counts, of any shape, that need not hold all counts."""
    n = draw(st.integers(1, most))
    labels = draw(
        st.lists(st.integers(0, 3), min_size=n + 1, max_size=n + 1).filter(lambda drawn: len({x for x in drawn if x < 3}) > 1)
    )
    held = [[a for a in range(n + 1) if labels[a] == k] for k in range(3)]
    share = draw(st.sampled_from([0.5, 0.125, 0.9, 1e-6, 0.3]))
    return CountCases(n, tuple(runs(counts) for counts in held if counts), share, draw(st.one_of(events(), whole_numbers())))


def runs(counts: list[int]) -> tuple[tuple[int, int], ...]:
    """Counts as runs, first and last of each."""
    found: list[tuple[int, int]] = []
    for a in counts:
        if found and found[-1][1] == a - 1:
            found[-1] = (found[-1][0], a)
        else:
            found.append((a, a))
    return tuple(found)


@st.composite
def events(draw: st.DrawFn) -> RecordLaws:
    return RecordLaws.event(*(draw(st.integers(0, 16)) / 16 for _ in range(2)))


@st.composite
def whole_numbers(draw: st.DrawFn) -> RecordLaws:
    values = tuple(sorted(draw(st.sets(st.integers(-1, 4), min_size=3, max_size=3))))
    laws = []
    for _ in range(2):
        masses = draw(st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any))
        laws.append(tuple((mass / sum(masses), mass / sum(masses)) for mass in masses))
    return RecordLaws(values, laws[0], laws[1])


# ------------------------------------------------------------------------------------------------------------------- checks


@given(cases=problems())
@settings(max_examples=40)
def test_the_laws_are_within_their_errors(cases: CountCases) -> None:
    for law, windowed, truth in zip(case_laws(cases, 0.0), case_laws(cases, 1e-20), true_laws(cases), strict=True):
        assert law.pointwise
        for o in range(min(truth) - 1, max(truth) + 2):
            mass = Fraction(float(law.masses[o - law.start])) if law.start <= o <= law.end else Fraction(0)
            assert abs(truth.get(o, Fraction(0)) - mass) <= Fraction(law.error) * mass
        off = [truth.get(o, Fraction(0)) - Fraction(float(m)) for o, m in enumerate(windowed.masses, windowed.start)]
        outside = sum(mass for f, mass in truth.items() if not windowed.start <= f <= windowed.end)
        assert outside + sum(x for x in off if x > 0) <= Fraction(windowed.distance)
        assert -sum(x for x in off if x < 0) <= Fraction(windowed.distance)


@given(cases=problems(most=6), scale=st.one_of(st.just(0.0), SCALES))
@settings(max_examples=40)
def test_pure_loss(cases: CountCases, scale: float) -> None:
    found, truth = case_loss(cases, scale), true_loss(cases, scale)
    assert truth <= found
    assert math.isinf(found) if mpmath.isinf(truth) else found <= truth + 1e-9


@given(cases=problems(most=5), noise=NOISES, scale=SCALES, epsilon=st.sampled_from([0.1, 1.0]))
@settings(max_examples=30)
def test_delta(cases: CountCases, noise: Any, scale: float, epsilon: float) -> None:
    found, truth = case_delta(cases, noise, scale, epsilon), true_delta(cases, noise, scale, epsilon)
    assert truth <= found + 1e-16  # the twin's own window
    assert found <= truth + 1e-10


@given(cases=problems(most=4), delta=st.sampled_from([0.0, 1e-3]))
@settings(max_examples=12)
def test_the_least_scale_is_private_and_no_more_than_point_by_point(cases: CountCases, delta: float) -> None:
    scale = least_case_scale(cases, "laplace", 0.5, delta)
    if delta == 0:
        assert true_loss(cases, scale) <= 0.5
        assert scale == 0 or true_loss(cases, scale * (1 - 1e-6)) > 0.5
    else:
        assert true_delta(cases, "laplace" if scale else "none", scale, 0.5) <= delta
        assert scale == 0 or true_delta(cases, "laplace", scale * (1 - 1e-6), 0.5) > delta * (1 - 1e-9)
    low, high = (end(a for case in cases.cases for run in case for a in run) for end in (min, max))
    pairs = CountPairs(cases.n, low, high, high - low)
    if delta == 0:
        pointwise = least_laplace_scale([cases.records], pairs.apart, 0.5)
    else:
        pointwise = least_direct_scale([cases.records], pairs, "laplace", 0.5, delta)
    assert scale <= pointwise * (1 + 1e-7)


# ------------------------------------------------------------------------------------------------------------------ mutants

OUTER = CountCases(6, (((0, 0), (6, 6)), ((1, 5),)), 0.5, RecordLaws.event(0.9, 0.2))
TOP = CountCases(6, (((0, 4),), ((5, 6),)), 0.25, RecordLaws.event(0.9, 0.2))


@pytest.fixture
def _fresh() -> Iterator[None]:
    """Laws are remembered: forget them before and after a mutant."""
    for phase in range(2):
        case_laws.cache_clear()
        whole_cases.cache_clear()
        if phase == 0:
            yield


@pytest.mark.usefixtures("_fresh")
def test_uniform_weights_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal weights are another prior: where the true one is concentrated, they certify less than is true."""
    loss, delta = true_loss(OUTER, 1.0), true_delta(OUTER, "laplace", 1.0, 0.5)
    assert loss <= case_loss(OUTER, 1.0)
    assert delta <= case_delta(OUTER, "laplace", 1.0, 0.5)
    monkeypatch.setattr(module, "_log_weights", lambda n, share: (np.zeros(n + 1), np.zeros(n + 1)))
    case_laws.cache_clear()
    whole_cases.cache_clear()
    assert case_loss(OUTER, 1.0) < loss - 0.1
    assert case_delta(OUTER, "laplace", 1.0, 0.5) < delta - 0.01


def test_one_direction_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = deltas(TOP, "none", 0.0, 1.0)
    assert max(truth) <= case_delta(TOP, "none", 0.0, 1.0)
    swapped = CountCases(TOP.n, TOP.cases[::-1], TOP.share, TOP.records)
    monkeypatch.setattr(calibration, "noisy_delta", lambda laws, _, epsilon: lattice_delta_upper(laws[0], laws[1], epsilon))
    found = [case_delta(cases, "none", 0.0, 1.0) for cases in (TOP, swapped)]
    assert found == pytest.approx([float(delta) for delta in truth], abs=1e-12)
    assert min(found) < max(truth) - 0.01
