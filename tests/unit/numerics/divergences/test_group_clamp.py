"""What the counts tell is taken back beyond a clamp: the promise against plain integration of the outputs' laws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.group_transport.clamp import Moves, best_clamp, widest_reach
from attrpriv.numerics.divergences.groups import (
    Between,
    Form,
    clamped_gap,
    clamped_group_delta_upper,
    coupled_upper,
    group_delta_upper,
    pair_upper,
)
from attrpriv.numerics.laws.groups import GroupCase

EPSILON, DELTA = 1.0, 1e-4
CASE = GroupCase(n=100, low=20, high=45, apart=25, members=((36.0, 8.0),), rest=((42.0, 12.0),))
CENTRE = 40.0
Law = tuple[float, float]


def told(case: GroupCase, a: int) -> float:
    return (a * case.members[0][0] + (case.n - a) * case.rest[0][0]) / case.n


def output(
    case: GroupCase, a: int, reach: float, noise: float, form: Form, mutant: str = "", true: GroupCase | None = None
) -> Law:
    """The twin: mean and variance of the answer given a rows inside, by the formula of the release; truth may be another."""
    stated, real = told(case, a), true or case
    y = stated - CENTRE
    low = -math.inf if mutant == "one side" else -reach
    kept = min(max(y, low), 2 * reach if mutant == "half tau" else reach)
    kept = max(kept, -2 * reach) if mutant == "half tau" else kept
    own = (a * real.members[0][1] ** 2 + (case.n - a) * real.rest[0][1] ** 2) / case.n**2
    counted = case.high + case.low - a if mutant == "wrong pair" else a
    ends = [(c * case.members[0][1] ** 2 + (case.n - c) * case.rest[0][1] ** 2) / case.n**2 for c in (case.low, case.high)]
    stated_own = (counted * case.members[0][1] ** 2 + (case.n - counted) * case.rest[0][1] ** 2) / case.n**2
    extra = max(ends) - stated_own if form == "equalised" else 0.0
    return told(real, a) - y + kept, own + extra + noise


def integrated(p: Callable[[np.ndarray], np.ndarray], q: Callable[[np.ndarray], np.ndarray], reach: float) -> float:
    """The positive part of p - e^eps q, added up."""
    axis = np.linspace(CENTRE - reach, CENTRE + reach, 40_001)
    return float(np.maximum(p(axis) - math.exp(EPSILON) * q(axis), 0).sum() * (axis[1] - axis[0]))


def density(law: Law) -> Callable[[np.ndarray], np.ndarray]:
    mean, variance = law
    return lambda x: np.asarray(np.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance))


def worst(case: GroupCase, reach: float, noise: float, form: Form, mutant: str = "", step: int = 1) -> float:
    laws = {a: output(case, a, reach, noise, form, mutant) for a in range(case.low, case.high + 1, step)}
    pairs = [(a, b) for a, b in itertools.permutations(laws, 2) if abs(a - b) <= case.apart]
    return max(integrated(density(laws[a]), density(laws[b]), 25.0) for a, b in pairs)


# ------------------------------------------------------------------------------------------------------------ the promise


@pytest.mark.parametrize("form", ["direct", "equalised"])
def test_every_pair_is_as_close_as_promised_and_mutants_are_not(form: Form) -> None:
    # Unequal variances alone would use up most of what direct noise may tell, were they as unequal as for the other form.
    case = CASE if form == "equalised" else replace(CASE, members=((36.0, 11.0),))
    noise = 0.02
    reach = widest_reach(case, noise, EPSILON, DELTA, form)
    assert reach is not None
    assert math.isfinite(reach)
    certified = clamped_group_delta_upper(case, reach, noise, EPSILON, form)
    found = worst(case, reach, noise, form, step=5)
    assert found <= certified * (1 + 1e-6) <= DELTA * (1 + 1e-6)
    assert found > 0.5 * DELTA, "nor is the promise much more than needed"
    for mutant in ("one side", "half tau", *(["wrong pair"] if form == "equalised" else [])):
        assert worst(case, reach, noise, form, mutant, step=5) > 1.5 * DELTA, mutant


@pytest.mark.parametrize("form", ["direct", "equalised"])
def test_a_tolerance_is_covered_at_its_corners(form: Form) -> None:
    case = replace(CASE, mean_tolerance=0.01, sd_tolerance=0.01)
    noise = 0.6
    reach = widest_reach(case, noise, EPSILON, DELTA, form)
    assert reach is not None
    largest = 0.0
    for signs in itertools.product((-1, 1), repeat=4):
        (m1, s1), (m0, s0) = case.members[0], case.rest[0]
        s1, s0 = s1 * (1 + 0.01 * signs[2]), s0 * (1 + 0.01 * signs[3])
        true = replace(CASE, members=((m1 + signs[0] * 0.01 * s1, s1),), rest=((m0 + signs[1] * 0.01 * s0, s0),))
        laws = [output(CASE, a, reach, noise, form, true=true) for a in (case.low, case.high)]
        largest = max(largest, *(integrated(density(p), density(q), 25.0) for p, q in itertools.permutations(laws)))
    assert 0.3 * DELTA < largest <= DELTA
    exact = widest_reach(CASE, noise, EPSILON, DELTA, form)
    assert exact is None or exact > reach


def test_a_population_is_covered_by_its_mixtures() -> None:
    """The exact laws of two populations, mixed over binomial counts, for several pairs of shares of the range."""
    shares, n = (0.25, 0.3), CASE.n
    case = replace(CASE, low=5, high=60, apart=20)
    between = Between(n, 0.05)
    noise = 0.02
    reach = widest_reach(case, noise, EPSILON, DELTA, "equalised", between)
    plain = widest_reach(case, noise, EPSILON, DELTA, "equalised")
    assert reach is not None
    assert plain is not None
    assert reach > 1.05 * plain, "chances are worth something"
    a = np.arange(case.low, case.high + 1)

    def mixture(share: float, reach: float = reach) -> Callable[[np.ndarray], np.ndarray]:
        chances = np.exp(
            gammaln(n + 1) - gammaln(a + 1) - gammaln(n - a + 1) + a * math.log(share) + (n - a) * math.log(1 - share)
        )
        laws = [output(case, int(k), reach, noise, "equalised") for k in a]
        return lambda x: np.asarray(sum(c * density(law)(x) for c, law in zip(chances, laws, strict=True)))

    for p, q in ((0.25, 0.3), (0.27, 0.3), (0.25, 0.28), (0.265, 0.285)):
        assert shares[0] <= p < q <= shares[1]
        for one, other in ((p, q), (q, p)):
            assert integrated(mixture(one), mixture(other), 15.0) <= DELTA
    assert integrated(mixture(0.25, 9.0), mixture(0.4, 9.0), 15.0) > 10 * DELTA, "the mutant that takes nothing back"


def test_chances_of_distances_are_summed_from_above() -> None:
    """U(d) = (d/10)^2 up to 10, d ~ Bin(20, 0.2): the exact mean, and what a coarse list of distances makes of it."""
    between = Between(20, 0.2)
    chances = [math.comb(20, d) * 0.2**d * 0.8 ** (20 - d) for d in range(21)]
    exact = sum(c * (min(d, 10) / 10) ** 2 for d, c in enumerate(chances))
    fine = coupled_upper(between, [(d, (d / 10) ** 2) for d in range(11)])
    coarse = coupled_upper(between, [(d, (d / 10) ** 2) for d in (2, 5, 10)])
    assert exact * (1 - 1e-12) <= fine <= exact * (1 + 1e-6) < coarse < 1
    assert coupled_upper(None, [(1, 0.3), (2, 0.2)]) == pytest.approx(0.3)
    assert coupled_upper(between, [(3, 0.5), (10, 0.1)]) >= 0.5, "what falls is taken as constant"


# ------------------------------------------------------------------------------------------------------------- known rows


def test_rows_of_known_value_are_taken_back_amiss() -> None:
    """Five known values that fit both categories, and a share that is nearly 0: then the rows inside are the known ones.

    F' moves by what is taken back and by nothing else. A tolerance of k times the slope (5 of 100 rows: a twentieth) would not
    cover that: the whole of it is needed.
    """
    case = replace(CASE, low=0, high=5, apart=5, known=5)
    between_rows = 5 / 100 * 6.0
    assert case.taken_amiss == pytest.approx(between_rows)
    for reach in (0.0, 0.05):
        moved = between_rows - min(2 * reach, between_rows)  # mean given 0 rows inside, less that given 5: all of them known
        assert moved <= clamped_gap(case, reach)
        assert moved > min(2 * reach, between_rows) + 0.05 * between_rows
    assert clamped_gap(case, math.inf) == case.gap


def test_known_rows_leave_less_to_gain() -> None:
    reaches = [widest_reach(replace(CASE, known=known), 1.0, EPSILON, DELTA, "equalised") for known in (0, 2, 4)]
    assert None not in reaches
    assert reaches == sorted(reaches, key=lambda reach: -(reach or 0.0))
    assert len(set(reaches)) == 3


# ----------------------------------------------------------------------------------------------------- without and within


@pytest.mark.parametrize("form", ["direct", "equalised"])
def test_without_a_clamp_it_is_the_plain_promise(form: Form) -> None:
    for case in (CASE, replace(CASE, mean_tolerance=0.02), replace(CASE, known=3)):
        for reach in (math.inf, *([case.told] if not case.known else [])):
            ours = clamped_group_delta_upper(case, reach, 0.5, EPSILON, form)
            assert ours == pytest.approx(group_delta_upper(case, 0.5, EPSILON, form), rel=1e-9)


def test_means_that_are_equal_tell_nothing() -> None:
    """Nothing is there to be taken back, whatever the reach; what variances tell stays."""
    case = replace(CASE, members=((42.0, 8.0),))
    assert case.told == 0
    plain = group_delta_upper(case, 0.5, EPSILON, "direct")
    assert plain > 0
    for reach in (0.0, 0.1, 10.0, math.inf):
        assert clamped_group_delta_upper(case, reach, 0.5, EPSILON, "direct") == pytest.approx(plain, rel=1e-9, abs=0)


def test_how_much_variances_differ_goes_with_what_is_taken_back() -> None:
    """Where the least difference counts: as many rows change as the reach lets through, and with them the variance."""
    case = replace(CASE, members=((30.0, 11.0),))
    low, high = case.spread
    assert low > 0
    least, more = case.least_variance + 0.05, 0
    for share in (0.25, 0.5, 0.8, 1.0, 2.0):
        reach = share * case.told / 2
        part = min(1.0, share)
        wanted = pair_upper(part * case.told, least, (part * low, high), EPSILON)
        assert clamped_group_delta_upper(case, reach, 0.05, EPSILON, "direct") == pytest.approx(wanted, rel=1e-6, abs=0)
        more += wanted < 0.999 * pair_upper(part * case.told, least, (0.0, high), EPSILON)
        known = replace(case, known=3)
        amiss = pair_upper(clamped_gap(known, reach), known.least_variance + 0.05, (0.0, known.spread[1]), EPSILON)
        assert clamped_group_delta_upper(known, reach, 0.05, EPSILON, "direct") == pytest.approx(amiss, rel=1e-6, abs=0)
    assert more >= 3, "or the test would be of nothing"


def test_the_clamp_is_monotone() -> None:
    for form in ("direct", "equalised"):
        uppers = [clamped_group_delta_upper(CASE, reach, 0.1, EPSILON, form) for reach in np.linspace(0, 1, 21)]
        assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(uppers)), form


def test_the_best_pair_is_never_worse_than_noise_alone_and_is_private() -> None:
    a = np.arange(CASE.n + 1)
    y = np.array([told(CASE, int(k)) - CENTRE for k in a])
    for centre in (20, 33, 45):
        weights = np.exp(-((a - centre) ** 2) / 20.0)
        moves = Moves(y, weights / weights.sum(), np.zeros(len(a)))
        for form in ("direct", "equalised"):
            best = best_clamp(CASE, EPSILON, DELTA, form, [moves], 1e-4)
            alone = 1e-4
            while group_delta_upper(CASE, alone, EPSILON, form) > DELTA:
                alone *= 1.02
            assert best.squared <= alone * 1.03
            assert clamped_group_delta_upper(CASE, best.reach, best.noise_variance, EPSILON, form) <= DELTA


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="reach"):
        clamped_group_delta_upper(CASE, math.nan, 0.1, EPSILON, "direct")
    with pytest.raises(UsageError, match="noise"):
        clamped_group_delta_upper(CASE, 0.1, math.inf, EPSILON, "direct")
    with pytest.raises(RefusedError, match="delta"):
        best_clamp(CASE, 20.0, 1e-6, "equalised", [], 1e-4)
