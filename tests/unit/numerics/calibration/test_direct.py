"""Direct calibration of counts: published numbers, the rules for pairs, blocks and known rows, and mutants of them."""

from __future__ import annotations

import math

import mpmath
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.direct import (
    continuous_gaussian_sigma,
    direct_delta,
    least_direct_scale,
    least_scale,
    noise_law,
)
from attrpriv.numerics.calibration.pair_families import Events, family_of, noisy_delta
from attrpriv.numerics.divergences.all_pairs import all_pairs_delta
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, discrete_gaussian, discrete_laplace
from attrpriv.numerics.laws.records import CountPairs, Interval01, RecordLaws

event = RecordLaws.event
NONE = LatticeLaw.of({0: 1.0})
FOUR = CountPairs.all_of(4)
SUMS = RecordLaws((0, 1, 3), ((0.1, 0.1), (0.3, 0.3), (0.6, 0.6)), ((0.6, 0.6), (0.3, 0.3), (0.1, 0.1)))


# --------------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("records", [event(0.4, 0.6), event(0.6, 0.4), event((0.4, 0.6), (0.4, 0.6))])
@pytest.mark.parametrize(("delta", "sigma"), [(1e-5, 2.446221), (1e-3, 1.593862)])
def test_the_first_example(records: RecordLaws, delta: float, sigma: float) -> None:
    found = least_direct_scale([records], FOUR, "gaussian", 1.0, delta)
    assert found == pytest.approx(sigma, abs=1e-6)
    assert direct_delta(records, FOUR, "gaussian", found, 1.0).upper <= delta
    assert direct_delta(records, FOUR, "gaussian", found * (1 - 1e-6), 1.0).upper > delta


def test_laplace_noise_needs_a_little_less_than_for_pure_epsilon() -> None:
    scale = least_direct_scale([event(0.4, 0.6)], FOUR, "laplace", 1.0, 1e-3)
    assert scale == pytest.approx(0.681864, abs=1e-6)
    assert scale < 0.686929


def test_many_rows_need_no_noise() -> None:
    """One row more or less in a thousand is hidden by the other rows."""
    pairs = CountPairs(1000, 0, 1000, 1)
    assert least_direct_scale([event(0.45, 0.55)], pairs, "gaussian", 1.0, 1e-6) == 0.0
    assert direct_delta(event(0.45, 0.55), pairs, "none", 0.0, 1.0).upper <= 1e-6
    assert least_direct_scale([event(0.45, 0.55)], pairs, "none", 1.0, 1e-6) == 0.0
    with pytest.raises(RefusedError, match="exact release"):
        least_direct_scale([event(0.45, 0.55)], CountPairs.all_of(1000), "none", 1.0, 1e-6)


def test_equal_laws_hide_everything() -> None:
    assert direct_delta(event(0.3, 0.3), FOUR, "none", 0.0, 0.0).upper == 0.0


# ------------------------------------------------------------------------------------------------------ continuous noise


@pytest.mark.parametrize(("delta", "sigma"), [(1e-5, 2.430088), (1e-3, 1.569241)])
def test_continuous_noise_needs_a_little_less(delta: float, sigma: float) -> None:
    laws = binomial_sum(0, 0.4, 4, 0.6), binomial_sum(4, 0.4, 0, 0.6)
    found = continuous_gaussian_sigma(*laws, 1.0, delta)
    assert found == pytest.approx(sigma, abs=1e-6)
    assert half_line(*laws, found, 1.0) <= delta < half_line(*laws, found * (1 - 1e-6), 1.0)
    assert half_line(*laws[::-1], found, 1.0) <= delta


def half_line(p: LatticeLaw, q: LatticeLaw, sigma: float, epsilon: float) -> mpmath.mpf:
    """H as the best half-line, in many digits: the crossing of the density ratio is found by bisection."""

    def density(law: LatticeLaw, x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.fsum(m * mpmath.exp(-(((x - law.start - k) / sigma) ** 2) / 2) for k, m in enumerate(law.masses.tolist()))

    def above(law: LatticeLaw, x: mpmath.mpf) -> mpmath.mpf:
        side = [m * mpmath.ncdf(sign * (law.start + k - x) / sigma) for k, m in enumerate(law.masses.tolist())]
        return mpmath.fsum(side)

    with mpmath.workdps(30):
        sign = 1 if p.mean > q.mean else -1
        growth = mpmath.exp(epsilon)
        low, high = mpmath.mpf(-60), mpmath.mpf(60)
        for _ in range(90):
            middle = (low + high) / 2
            if (density(p, middle) > growth * density(q, middle)) == (sign > 0):
                high = middle
            else:
                low = middle
        return above(p, low) - growth * above(q, low)


def test_continuous_noise_may_not_be_needed() -> None:
    laws = binomial_sum(500, 0.45, 500, 0.55), binomial_sum(501, 0.45, 499, 0.55)
    assert continuous_gaussian_sigma(*laws, 1.0, 1e-6) == 0.0
    with pytest.raises(UsageError, match="delta"):
        continuous_gaussian_sigma(*laws, 1.0, 0.0)


# ----------------------------------------------------------------------------------------------------- which pairs count


def brute(p1: float, p0: float, pairs: CountPairs, noise: LatticeLaw, epsilon: float) -> float:
    laws = [binomial_sum(a, p1, pairs.n - a, p0).convolve(noise, exact=True) for a in range(pairs.low, pairs.high + 1)]
    return all_pairs_delta(laws, epsilon, apart=pairs.apart).upper


@pytest.mark.parametrize("pairs", [CountPairs(9, 0, 9, 9), CountPairs(9, 2, 7, 2), CountPairs(30, 4, 25, 3)])
@pytest.mark.parametrize("noise", [NONE, discrete_laplace(0.8, tail=1e-25), discrete_gaussian(1.3, tail=1e-25)])
@pytest.mark.parametrize(("p1", "p0"), [(0.2, 0.6), (0.7, 0.65), (0.0, 0.5), (1.0, 0.9)])
def test_the_outermost_pairs_are_all_pairs(p1: float, p0: float, noise: LatticeLaw, pairs: CountPairs) -> None:
    """Only (k, k + apart) is looked at; brute force over all pairs finds nothing larger."""
    found = family_of(event(p1, p0), pairs, 0).worst(noise, 0.5, 0.0)
    assert found.upper == pytest.approx(brute(p1, p0, pairs, noise, 0.5), rel=1e-9, abs=1e-12)


def test_the_corner_in_the_range_of_the_secret_is_unsound() -> None:
    """The rule that looks at the corner (lo, hi) for counts of the range only: .06 certified where .45 is true."""
    n, top, low, high = 20, 3, 0.02, 0.5
    pairs = CountPairs(n, 0, top, top)
    mutant = brute(low, high, pairs, NONE, 1.0)
    truth = brute(high, low, pairs, NONE, 1.0)  # a law of the box
    assert mutant < 0.07
    assert truth > 0.4
    found = direct_delta(event((low, high), (low, high)), pairs, "none", 0.0, 1.0)
    assert found.upper >= truth * (1 - 1e-12)  # both are rounded up


def test_a_range_is_a_distance() -> None:
    """Between 100 and 400 of 1,000: pairs at most 300 apart, whatever the range, once the probabilities are a box."""
    records = event((0.49, 0.51), (0.49, 0.51))
    first, second = (family_of(records, CountPairs(1000, low, low + 300, 300), 0) for low in (100, 600))
    assert first == second == Events(0.51, 0.49, 1000, 300, (0, 700), 0)
    deltas = [direct_delta(records, CountPairs(1000, 100, 400, apart), "gaussian", 30.0, 1.0) for apart in (300, 100)]
    assert deltas[1].upper < deltas[0].attained <= deltas[0].upper <= deltas[0].attained * 1.001


def test_a_block_bounds_all_its_pairs() -> None:
    family = Events(0.5, 0.2, 60, 6, (0, 54), 0)
    noise = discrete_gaussian(1.0, tail=1e-20)
    whole = noisy_delta(family.laws((10, 20)), noise, 0.5)
    assert all(noisy_delta(family.laws((k, k)), noise, 0.5) <= whole for k in range(10, 21))
    # The mutant that keeps all common rows of one end.
    one_end = noisy_delta(family.laws((20, 20)), noise, 0.5)
    assert any(noisy_delta(family.laws((k, k)), noise, 0.5) > one_end for k in range(10, 21))


def test_blocks_of_many_rows_are_close_to_the_truth() -> None:
    family = Events(0.5, 0.2, 5000, 20, (0, 4980), 0)
    noise = discrete_gaussian(3.0, tail=1e-20)
    found = family.worst(noise, 0.5, 0.0)
    sampled = max(noisy_delta(family.laws((k, k)), noise, 0.5) for k in range(0, 4981, 83))
    assert sampled <= found.upper <= sampled * 1.01


def test_the_bound_stops_where_it_is_enough() -> None:
    records, pairs = event(0.4, 0.6), CountPairs(2000, 0, 2000, 40)
    sharp = direct_delta(records, pairs, "gaussian", 8.0, 1.0)
    loose = direct_delta(records, pairs, "gaussian", 8.0, 1.0, enough=sharp.upper * 3)
    assert sharp.upper <= loose.upper <= sharp.upper * 3
    below = direct_delta(records, pairs, "gaussian", 8.0, 1.0, enough=sharp.attained / 3)
    assert below.upper >= sharp.attained


@pytest.mark.parametrize("enough", [0.0, 0.81, 0.9, 1.0])
def test_a_search_that_ends_early_is_loose_and_not_wrong(enough: float) -> None:
    """The worst pair, k = 3, is none of those that are looked at first: the largest of these is no bound."""
    family = Events(0.95, 0.05, 30, 4, (0, 26), 0)
    singles = {k: noisy_delta(family.laws((k, k)), NONE, 1.0) for k in range(27)}
    truth = max(singles.values())
    assert max(singles[k] for k in (0, 13, 26)) < 0.805 < 0.82 < truth == pytest.approx(singles[3], rel=1e-14)
    found = family.worst(NONE, 1.0, enough)
    assert found.upper >= truth
    assert found.attained <= truth


# ------------------------------------------------------------------------------------------------------------ known rows


def test_known_rows_cost() -> None:
    pairs = CountPairs(100, 40, 60, 5)
    deltas = [direct_delta(event(0.3, 0.6), pairs, "gaussian", 1.0, 1.0, known=k).upper for k in (0, 5, 20, 40, 100)]
    assert deltas == sorted(deltas)
    assert deltas[0] < deltas[2]
    # All rows but those that differ are known: only those are left.
    alone = noisy_delta((binomial_sum(5, 0.3, 0, 0.6), binomial_sum(0, 0.3, 5, 0.6)), discrete_gaussian(1.0, tail=1e-20), 1.0)
    assert deltas[4] == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize("records", [event(0.3, 0.6), event((0.3, 0.6), (0.3, 0.6)), SUMS])
def test_known_rows_of_any_category_are_covered(records: RecordLaws) -> None:
    """i known members and j known others, i + j <= known, taken out of both laws of every pair."""
    pairs, known, epsilon = CountPairs(10, 3, 7, 2), 3, 0.5
    noise = discrete_laplace(1.0, tail=1e-25)
    certified = direct_delta(records, pairs, "laplace", 1.0, epsilon, known=known).upper
    ignorant = direct_delta(records, pairs, "laplace", 1.0, epsilon).upper
    member, rest = (LatticeLaw.of(dict(zip(records.values, [q for q, _ in law], strict=True))) for law in exact(records))
    worst = 0.0
    for low in range(pairs.low, pairs.high - 1):
        for i in range(known + 1):
            for j in range(known + 1 - i):
                laws = [summed(member, a - i, rest, pairs.n - a - j).convolve(noise, exact=True) for a in (low, low + 2)]
                worst = max(worst, all_pairs_delta(laws, epsilon).upper)
    assert ignorant < worst <= certified * (1 + 1e-9)


def exact(records: RecordLaws) -> tuple[tuple[Interval01, ...], tuple[Interval01, ...]]:
    return (records.member, records.rest) if records.exact else (event(0.3, 0.6).member, event(0.3, 0.6).rest)


def summed(member: LatticeLaw, a: int, rest: LatticeLaw, b: int) -> LatticeLaw:
    law = NONE
    for one in [member] * a + [rest] * b:
        law = law.convolve(one, exact=True)
    return law


def test_known_values_without_categories_are_covered() -> None:
    """The adversary knows what K rows add, not their categories: a mixture with weights that depend on the secret."""
    n, known, p1, p0, epsilon = 7, 2, 0.2, 0.7, 0.4
    pairs = CountPairs(n, 2, 5, 2)
    certified = direct_delta(event(p1, p0), pairs, "none", 0.0, epsilon, known=known).upper
    for values in ((0, 0), (0, 1), (1, 1)):
        laws = [given_values(n, a, values, p1, p0) for a in range(pairs.low, pairs.high + 1)]
        assert all_pairs_delta(laws, epsilon, apart=pairs.apart).upper <= certified * (1 + 1e-9)


def given_values(n: int, a: int, values: tuple[int, ...], p1: float, p0: float) -> LatticeLaw:
    """The law of the unknown rows' count, given that `a` of n rows are members and what the first rows add."""
    weights: dict[int, float] = {}
    for inside in range(2 ** len(values)):
        chosen = [bool(inside >> k & 1) for k in range(len(values))]
        m = sum(chosen)
        if 0 <= a - m <= n - len(values):
            likelihood = math.prod(p if v else 1 - p for v, c in zip(values, chosen, strict=True) for p in [p1 if c else p0])
            weights[m] = weights.get(m, 0.0) + likelihood * math.comb(n - len(values), a - m)
    total = math.fsum(weights.values())
    masses: dict[int, float] = dict.fromkeys(range(n + 1), 0.0)
    for m, weight in weights.items():
        law = binomial_sum(a - m, p1, n - len(values) - a + m, p0)
        for k, mass in enumerate(law.masses.tolist()):
            masses[law.start + k] += weight / total * mass
    return LatticeLaw.of(masses)


# --------------------------------------------------------------------------------------------------------- whole numbers


def test_whole_numbers_are_compared_pair_by_pair() -> None:
    pairs = CountPairs(12, 2, 9, 3)
    scale = least_direct_scale([SUMS], pairs, "gaussian", 0.5, 1e-4)
    noise = discrete_gaussian(scale, tail=1e-25)
    member, rest = (LatticeLaw.of(dict(zip(SUMS.values, [q for q, _ in law], strict=True))) for law in (SUMS.member, SUMS.rest))
    laws = [summed(member, a, rest, 12 - a).convolve(noise, exact=True) for a in range(2, 10)]
    assert all_pairs_delta(laws, 0.5, apart=3).upper <= 1e-4 * (1 + 1e-9)
    smaller = discrete_gaussian(scale * 0.999, tail=1e-25)
    laws = [summed(member, a, rest, 12 - a).convolve(smaller, exact=True) for a in range(2, 10)]
    assert all_pairs_delta(laws, 0.5, apart=3).upper > 1e-4
    assert direct_delta(SUMS, pairs, "gaussian", scale, 0.5).pair in {(a, b) for a in range(2, 10) for b in range(2, 10)}


def test_an_event_as_whole_numbers_is_the_event() -> None:
    as_sum = RecordLaws((0, 1, 2), ((0.6, 0.6), (0.4, 0.4), (0.0, 0.0)), ((0.4, 0.4), (0.6, 0.6), (0.0, 0.0)))
    assert least_direct_scale([as_sum], FOUR, "gaussian", 1.0, 1e-5) == pytest.approx(2.446221, abs=1e-6)


# ----------------------------------------------------------------------------------------------------------- what is refused


def test_bad_arguments() -> None:
    records = event(0.4, 0.6)
    for scale in (0.0, -1.0, math.nan):
        with pytest.raises(UsageError, match="scale"):
            direct_delta(records, FOUR, "gaussian", scale, 1.0)
    for epsilon in (-1.0, math.nan):
        with pytest.raises(UsageError, match="epsilon"):
            direct_delta(records, FOUR, "gaussian", 1.0, epsilon)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(UsageError, match="delta"):
            least_direct_scale([records], FOUR, "gaussian", 1.0, delta)
    with pytest.raises(UsageError, match="records_list"):
        least_direct_scale([], FOUR, "gaussian", 1.0, 1e-5)
    for known in (-1, 5):
        with pytest.raises(UsageError, match="known"):
            direct_delta(records, FOUR, "gaussian", 1.0, 1.0, known=known)


def test_whole_numbers_that_are_not_covered() -> None:
    box = RecordLaws((0, 1, 3), ((0.1, 0.4), (0.2, 0.5), (0.2, 0.5)), SUMS.rest)
    with pytest.raises(UsageError, match="records: intervals"):
        direct_delta(box, FOUR, "gaussian", 1.0, 1.0)
    with pytest.raises(UsageError, match="known: must leave"):
        direct_delta(SUMS, FOUR, "gaussian", 1.0, 1.0, known=1)
    with pytest.raises(UsageError, match="at most 20,000 outputs"):
        direct_delta(SUMS, CountPairs.all_of(10_000), "gaussian", 1.0, 1.0)
    with pytest.raises(UsageError, match="too many to compare"):
        direct_delta(SUMS, CountPairs.all_of(5000), "gaussian", 1.0, 1.0)


def test_a_delta_below_the_accuracy_of_floats_is_refused() -> None:
    with pytest.raises(UsageError, match="accuracy of floats"):
        least_direct_scale([event(0.4, 0.6)], FOUR, "gaussian", 1.0, 1e-18)


def test_where_no_noise_is_enough_the_search_says_so() -> None:
    with pytest.raises(UsageError, match="no finite noise"):
        least_scale(lambda scale: False, 1.0)


def test_no_noise_is_0_for_sure() -> None:
    law = noise_law("none", 0.0)
    assert (law.start, law.masses.tolist(), law.error, law.lost) == (0, [1.0], 0.0, 0.0)
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(UsageError, match="scale"):
            noise_law("laplace", scale)
