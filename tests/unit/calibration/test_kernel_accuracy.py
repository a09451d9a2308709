"""The errors reported are those of the definition, in fractions; the tails are from above."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from attrpriv.calibration import KernelError, certified_coupling, certified_kernel, coupling_error, kernel_error
from attrpriv.errors import UsageError
from attrpriv.laws.records import CountPairs, RecordLaws
from tests.property import exact_kernel as twin

EVENT, PAIRS = RecordLaws.event(0.3, 0.6), CountPairs(6, 1, 4, 3)
PRIOR = [0.1, 0.2, 0.3, 0.4]
Conditional = Callable[[int, int], list[Fraction]]


def expected(prior: list[float], laws: list[twin.Law], given: Conditional) -> tuple[float, float, list[float]]:
    """Mean |error|, root mean square, worst P(|error| > t)."""
    size = len(given(0, 0))
    mean = square = Fraction(0)
    worst = [Fraction(0)] * size
    for i, law in enumerate(laws):
        chances = [Fraction(0)] * size
        for f, mass in law.items():
            for o, chance in enumerate(given(i, f)):
                chances[abs(f - o)] += mass * chance
        mean += Fraction(prior[i]) * sum(t * chance for t, chance in enumerate(chances))
        square += Fraction(prior[i]) * sum(t * t * chance for t, chance in enumerate(chances))
        worst = [max(old, sum(chances[t + 1 :], Fraction(0))) for t, old in enumerate(worst)]
    return float(mean), math.sqrt(square), list(map(float, worst))


def check(found: KernelError, truth: tuple[float, float, list[float]]) -> None:
    assert found.mean_absolute == pytest.approx(truth[0], rel=1e-12)
    assert found.rmse == pytest.approx(truth[1], rel=1e-12)
    assert found.tail == pytest.approx(truth[2], rel=1e-12, abs=1e-35)
    assert all(x >= y for x, y in zip(found.tail, truth[2], strict=True))
    assert found.tail[-1] == 0


def laws(p1: float, p0: float, counts: range) -> list[twin.Law]:
    return [twin.count_law(twin.event(p1), twin.event(p0), a, PAIRS.n) for a in counts]


def test_a_kernel() -> None:
    kernel = certified_kernel(EVENT, PAIRS, 0.5, PRIOR)

    def given(_: int, f: int) -> list[Fraction]:
        return [Fraction(weight, 2**62) for weight in kernel.weights[f]]

    check(kernel_error(kernel, EVENT, PAIRS, PRIOR), expected(PRIOR, laws(0.3, 0.6, range(1, 5)), given))


def test_a_coupling() -> None:
    coupling = certified_coupling(EVENT, PAIRS, 0.5, PRIOR)

    def given(i: int, f: int) -> list[Fraction]:
        return twin.coupled({f: Fraction(1)}, coupling.start, coupling.sources[i], coupling.targets[i])

    check(coupling_error(coupling, EVENT, PAIRS, PRIOR), expected(PRIOR, laws(0.3, 0.6, range(1, 5)), given))


def test_a_box_has_the_averages_of_its_middle_and_the_tails_of_its_corner() -> None:
    box = RecordLaws.event((0.25, 0.375), (0.5, 0.75))
    kernel = certified_kernel(box, PAIRS, 0.5, PRIOR, "corner")

    def given(_: int, f: int) -> list[Fraction]:
        return [Fraction(weight, 2**62) for weight in kernel.weights[f]]

    found = kernel_error(kernel, box, PAIRS, PRIOR, "corner")
    mean, rmse, _ = expected(PRIOR, laws(0.3125, 0.625, range(1, 5)), given)
    *_, worst = expected([0.0] * 7, laws(0.75, 0.25, range(7)), given)
    check(found, (mean, rmse, worst))
    for theta in ((0.25, 0.5), (0.3, 0.7), (0.375, 0.75)):
        *_, inside = expected(PRIOR, laws(*theta, range(1, 5)), given)
        assert all(x >= y for x, y in zip(found.tail, inside, strict=True))


def test_half_width() -> None:
    error = KernelError(0.1, 0.2, (0.3, 0.05, 0.0))
    assert [error.half_width(beta) for beta in (0.4, 0.3, 0.29, 0.05, 0.01)] == [0, 0, 1, 1, 2]
    for beta in (0.0, 1.0, math.nan):
        with pytest.raises(UsageError, match=r"^beta: "):
            error.half_width(beta)


def test_the_prior_must_fit() -> None:
    coupling = certified_coupling(EVENT, PAIRS, 0.5, PRIOR)
    with pytest.raises(UsageError, match=r"^prior: "):
        coupling_error(coupling, EVENT, PAIRS, PRIOR[:3])
