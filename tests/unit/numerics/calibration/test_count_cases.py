"""Sets of counts: numbers, rare sets, many rows, what floats cannot do, and the evidence. Brute force: tests/property."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import Counted
from attrpriv.methods.count_noise.proof import CountCasesCheck, CountCasesEvidence
from attrpriv.numerics.calibration.count_cases import _log_outputs, case_delta, case_loss, case_loss_lower, least_case_scale
from attrpriv.numerics.calibration.direct import least_direct_scale
from attrpriv.numerics.calibration.laplace import least_laplace_scale
from attrpriv.numerics.laws.count_cases import CountCases, MixedMasses, case_laws
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

event = RecordLaws.event


def below(n: int, cut: int, share: float = 0.1, p1: float = 0.4, p0: float = 0.2) -> CountCases:
    """Fewer than `cut` of n rows, or at least as many."""
    return CountCases(n, (((0, cut - 1),), ((cut, n),)), share, event(p1, p0))


# --------------------------------------------------------------------------------------------------------------- numbers


def test_two_rows_by_hand() -> None:
    """share 1/2: given at most one member of two, the weights are 1 and 2; members always count, others never."""
    cases = CountCases(2, (((0, 1),), ((2, 2),)), 0.5, event(1.0, 0.0))
    first, second = case_laws(cases, 0.0)
    assert first.masses.tolist() == pytest.approx([1 / 3, 2 / 3, 0.0])
    assert second.masses.tolist() == [0.0, 0.0, 1.0]
    assert case_delta(cases, "none", 0.0, 1.0) == pytest.approx(1.0)
    assert math.isinf(case_loss(cases, 0.0))
    u = math.exp(-1)
    assert case_loss(cases, 1.0) == pytest.approx(
        max(math.log(1 / (u * u / 3 + 2 * u / 3)), math.log((1 / 3 + 2 * u / 3) / u**2))
    )


def test_much_less_noise_than_point_by_point() -> None:
    cases, pairs = below(1000, 100), CountPairs.all_of(1000)
    assert least_laplace_scale([cases.records], 1000, 1.0) == pytest.approx(200.1996, abs=1e-4)
    assert least_case_scale(cases, "laplace", 1.0, 0.0) == pytest.approx(3.292207, abs=1e-5)
    assert least_case_scale(cases, "laplace", 1.0, 1e-6) == pytest.approx(1.426460, abs=1e-5)
    assert least_case_scale(cases, "gaussian", 1.0, 1e-6) == pytest.approx(2.299430, abs=1e-5)
    assert least_direct_scale([cases.records], pairs, "laplace", 1.0, 1e-6) > 100


@pytest.mark.parametrize(("noise", "delta"), [("laplace", 0.0), ("laplace", 1e-6), ("gaussian", 1e-6)])
def test_the_least_scale_is_on_the_private_side_and_sharp(noise: Any, delta: float) -> None:
    cases = below(60, 8)
    scale = least_case_scale(cases, noise, 0.5, delta)

    def reached(at: float) -> bool:
        return case_loss(cases, at) <= 0.5 if delta == 0 else case_delta(cases, noise, at, 0.5) <= delta

    assert reached(scale)
    assert not reached(scale * (1 - 1e-6))
    assert delta > 0 or case_loss_lower(cases, scale) == pytest.approx(0.5, abs=1e-7)


def test_no_noise_where_none_is_needed() -> None:
    cases = below(50, 5, p1=0.31, p0=0.3)
    assert least_case_scale(cases, "laplace", 2.0, 0.0) == 0.0
    assert least_case_scale(cases, "none", 1.0, 1e-3) == 0.0
    with pytest.raises(RefusedError, match="exact release"):
        least_case_scale(below(50, 5), "none", 0.1, 1e-9)


# ------------------------------------------------------------------------------------------------------------ rare sets


def test_a_rare_set_is_weighed_by_its_own_probability() -> None:
    """P(at least 45 of 60) is below 1e-70, far less than any window leaves out of the count's own law."""
    cases = below(60, 45, share=0.01)
    share, n = Fraction(0.01), 60
    weights = {a: math.comb(n, a) * share**a * (1 - share) ** (n - a) for a in range(45, n + 1)}
    assert float(sum(weights.values())) < 1e-70
    for tail in (0.0, 1e-20):
        law = case_laws(cases, tail)[1]
        mean = sum(w * (a * Fraction(0.4) + (n - a) * Fraction(0.2)) for a, w in weights.items()) / sum(weights.values())
        assert law.mean == pytest.approx(float(mean), rel=1e-11)
        assert law.distance < 1e-11


def test_a_set_in_two_far_runs_has_the_right_shares() -> None:
    """The two ends of the counts, one 1.5^60 times as probable as the other."""
    cases = CountCases(60, (((0, 0), (60, 60)), ((20, 40),)), 0.6, event(0.9, 0.1))
    law = case_laws(cases, 0.0)[0]
    odds = 1.5**60
    expected = [(binom.pmf(f, 60, 0.1) + odds * binom.pmf(f, 60, 0.9)) / (1 + odds) for f in range(61)]
    assert law.masses.tolist() == pytest.approx(expected, rel=1e-10, abs=0)


# ------------------------------------------------------------------------------------------------------------ many rows


@pytest.mark.parametrize("cut", [10_000, 10_150])
def test_a_hundred_thousand_rows(cut: int) -> None:
    """The other way round: how many members there are, given the answer, is again a sum of two binomial counts."""
    cases, n, share, p1, p0 = below(100_000, cut), 100_000, 0.1, 0.4, 0.2
    total = share * p1 + (1 - share) * p0
    sd = math.sqrt(n * total * (1 - total))
    # Every eighth answer is enough to compare masses.
    answers = np.arange(int(n * total - 6 * sd), int(n * total + 6 * sd), 8)
    high = []
    for f in answers:
        seen = np.arange(*(int(end) for end in binom.interval(1 - 1e-14, f, share * p1 / total)))
        others = binom.sf(cut - 1 - seen, n - f, share * (1 - p1) / (1 - total))
        high.append(np.sum(binom.pmf(seen, f, share * p1 / total) * others))
    inside, of_all = binom.sf(cut - 1, n, share), binom.pmf(answers, n, total)
    law = case_laws(cases, 1e-20)[1]
    assert law.lost < 1e-8
    assert law.masses[answers - law.start].tolist() == pytest.approx(
        (of_all * np.array(high) / inside).tolist(), rel=1e-6, abs=1e-14
    )
    assert 0 < least_case_scale(cases, "laplace", 1.0, 1e-6) < 1000


def test_a_million_rows_are_within_reach() -> None:
    assert case_delta(below(1_000_000, 100_000), "none", 0.0, 1.0) < 1e-6


def test_sums_of_whole_numbers() -> None:
    records = RecordLaws((0, 1, 3), ((0.1, 0.1), (0.3, 0.3), (0.6, 0.6)), ((0.6, 0.6), (0.3, 0.3), (0.1, 0.1)))
    small = CountCases(200, (((0, 19),), ((20, 200),)), 0.1, records)
    laws = case_laws(small, 0.0), case_laws(small, 1e-20)
    for whole, window in zip(*laws, strict=True):
        inside = whole.masses[window.start - whole.start : window.end - whole.start + 1]
        assert float(np.abs(inside - window.masses).sum()) <= 2 * (window.distance + whole.distance)
    assert case_delta(CountCases(5000, (((0, 499),), ((500, 5000),)), 0.1, records), "gaussian", 40.0, 1.0) < 0.1


# -------------------------------------------------------------------------------------------------- what floats cannot do


def test_pure_epsilon_needs_every_mass() -> None:
    """Of 3,000 rows the far masses underflow. Without noise nothing is claimed; with some, they do not matter."""
    cases = below(3000, 300)
    assert all(math.isinf(law.error) for law in case_laws(cases, 0.0))
    assert math.isinf(case_loss(cases, 0.0))
    assert math.isinf(case_loss(cases, 1.0))
    assert case_loss(cases, 100.0) < 0.1
    assert case_loss_lower(cases, 1.0) < case_loss_lower(cases, 0.5)


def test_beyond_some_size_nothing_is_claimed() -> None:
    large = below(100_000, 10_000)
    assert math.isinf(case_loss(large, 1000.0))
    assert case_loss_lower(large, 1000.0) == 0.0
    with pytest.raises(UsageError, match="point by point"):
        least_case_scale(large, "laplace", 1.0, 0.0)
    with pytest.raises(UsageError, match="out of reach"):
        case_laws(large, 0.0)
    with pytest.raises(UsageError, match="rows"):
        case_laws(below(20_000_000, 10), 1e-20)
    with pytest.raises(UsageError, match="delta"):
        least_case_scale(large, "laplace", 1.0, 1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cases": (((0, 2),),)}, "two or more"),
        ({"cases": (((0, 2),), ())}, "possible count"),
        ({"cases": (((0, 2),), ((2, 4),))}, "in common"),
        ({"cases": (((0, 2),), ((3, 5),))}, "between 0 and n"),
        ({"share": 0.0}, "share"),
        ({"share": 1.0}, "share"),
        ({"share": math.nan}, "share"),
        ({"records": event((0.1, 0.2), 0.3)}, "single law"),
    ],
)
def test_bad_sets_are_refused(change: dict[str, Any], message: str) -> None:
    stated: dict[str, Any] = {"n": 4, "cases": (((0, 1),), ((2, 4),)), "share": 0.5, "records": event(0.4, 0.2)}
    with pytest.raises(UsageError, match=message):
        CountCases(**(stated | change))


@pytest.mark.parametrize("budget", [(0.0, 0.1), (math.nan, 0.1), (1.0, -0.1), (1.0, 1.0), (1.0, math.nan)])
def test_bad_budgets_are_refused(budget: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="budget"):
        least_case_scale(below(4, 2), "laplace", *budget)


def test_bad_noise_is_refused() -> None:
    with pytest.raises(UsageError, match="delta above 0"):
        least_case_scale(below(4, 2), "gaussian", 1.0, 0.0)
    for scale in (-1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match="scale"):
            case_loss(below(4, 2), scale)


# ------------------------------------------------------------------------------------------------------------- evidence


def certificate(noise: Any, scale: float, delta: float) -> Certificate:
    check = CountCasesCheck(secret="count(x = 'a')", theta=0, sets=below(60, 8))
    return Certificate(
        epsilon=0.5, delta=delta, evidence=CountCasesEvidence(checks=(check,), noise=noise, scale=scale), assumes=()
    )


@pytest.mark.parametrize(("noise", "delta"), [("laplace", 0.0), ("laplace", 1e-6), ("gaussian", 1e-6)])
def test_a_certificate_holds_at_its_scale_and_not_below(noise: Any, delta: float) -> None:
    scale = least_case_scale(below(60, 8), noise, 0.5, delta)
    good = certificate(noise, scale, delta)
    good.verify()
    assert Certificate.model_validate_json(good.model_dump_json()) == good
    assert good.evidence.kind == "count_cases"
    told = Counted(60, 1, (0, 1), False, frozenset({"stay"}), "", "", noise, scale)
    assert good.evidence.covers_tally(told)
    assert not good.evidence.covers_tally(replace(told, scale=scale / 2))
    assert not good.evidence.covers_tally(replace(told, steps=(0, 2)))
    assert not good.evidence.covers_tally(replace(told, histogram=True))
    for bad in (certificate(noise, scale * 0.999, delta), certificate("none", 0.0, delta)):
        with pytest.raises(CertificateError):
            bad.verify()


def test_noise_that_is_not_drawn_proves_nothing() -> None:
    """A scale without noise, or noise without a scale, is no exact release."""
    with pytest.raises(CertificateError):
        certificate("none", 5.0, 0.0).verify()
    with pytest.raises(CertificateError):
        certificate("gaussian", 0.0, 1e-6).verify()


@pytest.mark.parametrize(("error", "floor"), [(0.0, 0.0), (0.05, 0.0), (0.0, 0.01), (0.05, 0.01)])
def test_what_masses_may_be_off_is_in_the_bounds_of_outputs(error: float, floor: float) -> None:
    """Against the sum over all counts: a share of each output, and what may have underflowed, and hardly more."""
    masses, scale = np.array([0.2, 0.0, 0.5, 0.3]), 1.7
    low, high = _log_outputs(MixedMasses(0, masses, error, floor), scale)
    for o in range(4):
        exact = sum(float(mass) * math.exp(-abs(o - f) / scale) for f, mass in enumerate(masses))
        assert math.log(exact * (1 + error) + floor) <= high[o] <= math.log(exact * (1 + error) + floor) + 1e-9
        assert math.log(exact * (1 - error) - floor) - 1e-9 <= low[o] <= math.log(exact * (1 - error) - floor)
