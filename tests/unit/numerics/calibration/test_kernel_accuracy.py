"""The errors reported are those of the definition, in fractions; the tails are from above."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.coupling import certified_coupling
from attrpriv.numerics.calibration.kernel import certified_kernel
from attrpriv.numerics.calibration.kernel_accuracy import KernelError, coupling_error, kernel_error, largest
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from tests.property import exact_kernel as twin

EVENT, PAIRS = RecordLaws.event(0.3, 0.6), CountPairs(6, 1, 4, 3)
PRIOR = [0.1, 0.2, 0.3, 0.4]
Conditional = Callable[[int, int], list[Fraction]]


def expected(prior: list[float], laws: list[twin.Law], given: Conditional) -> tuple[float, float, list[float], list[float]]:
    """Mean |error|, root mean square, and P(|error| > t) on average and at worst."""
    size = len(given(0, 0))
    mean = square = Fraction(0)
    worst, averaged = [Fraction(0)] * size, [Fraction(0)] * size
    for i, law in enumerate(laws):
        chances = [Fraction(0)] * size
        for f, mass in law.items():
            for o, chance in enumerate(given(i, f)):
                chances[abs(f - o)] += mass * chance
        mean += Fraction(prior[i]) * sum(t * chance for t, chance in enumerate(chances))
        square += Fraction(prior[i]) * sum(t * t * chance for t, chance in enumerate(chances))
        further = [sum(chances[t + 1 :], Fraction(0)) for t in range(size)]
        worst = list(map(max, worst, further))
        averaged = [old + Fraction(prior[i]) * new for old, new in zip(averaged, further, strict=True)]
    return float(mean), math.sqrt(square), list(map(float, averaged)), list(map(float, worst))


def check(found: KernelError, truth: tuple[float, float, list[float], list[float]]) -> None:
    assert found.mean_absolute == pytest.approx(truth[0], rel=1e-12)
    assert found.rmse == pytest.approx(truth[1], rel=1e-12)
    assert found.averaged == pytest.approx(truth[2], rel=1e-9, abs=1e-14)
    assert found.tail == pytest.approx(truth[3], rel=1e-12, abs=1e-35)
    assert all(x >= y for x, y in zip(found.tail, truth[3], strict=True))
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


def test_a_box_has_the_averages_of_its_worst_law_and_the_tails_of_its_corner() -> None:
    box = RecordLaws.event((0.25, 0.375), (0.5, 0.75))
    kernel = certified_kernel(box, PAIRS, 0.5, PRIOR, "corner")

    def given(_: int, f: int) -> list[Fraction]:
        return [Fraction(weight, 2**62) for weight in kernel.weights[f]]

    found = kernel_error(kernel, box, PAIRS, PRIOR, "corner")
    thetas = [(0.25 + i / 64, 0.5 + j / 32) for i in range(9) for j in range(9)]
    truths = [expected(PRIOR, laws(*theta, range(1, 5)), given) for theta in thetas]
    *_, worst = expected([0.0] * 7, laws(0.75, 0.25, range(7)), given)
    averaged = [max(chances) for chances in zip(*(truth[2] for truth in truths), strict=True)]
    check(found, (max(truth[0] for truth in truths), max(truth[1] for truth in truths), averaged, worst))
    # The middle of the box, which once stood for all of it, errs far less.
    middle = expected(PRIOR, laws(0.3125, 0.625, range(1, 5)), given)
    assert middle[0] < 0.8 * found.mean_absolute
    for theta in ((0.25, 0.5), (0.3, 0.7), (0.26, 0.511), (0.375, 0.75)):
        mean, rmse, _, inside = expected(PRIOR, laws(*theta, range(1, 5)), given)
        assert (mean, rmse) <= (found.mean_absolute * 1.001, found.rmse * 1.001)
        assert all(x >= y for x, y in zip(found.tail, inside, strict=True))


def test_several_priors_have_the_largest_of_each_number() -> None:
    errors = [KernelError(0.1, 0.3, (0.3, 0.0), (0.2, 0.0)), KernelError(0.2, 0.2, (0.4, 0.0), (0.1, 0.0))]
    assert largest(errors) == KernelError(0.2, 0.3, (0.4, 0.0), (0.2, 0.0))


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
