"""Averages that are normal within categories: never below the truth, for all counts, all categories of the rows, both ways."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from attrpriv.errors import RefusedError, UsageError
from attrpriv.frozen import FrozenModel
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.calibration.groups import (
    equalised_target,
    equalising_variance,
    least_group_noise,
    most_equalising,
    population_range,
    population_tail,
)
from attrpriv.numerics.divergences import groups as module
from attrpriv.numerics.divergences.gaussian import hockey_stick, unequal_delta
from attrpriv.numerics.divergences.groups import Form, group_delta_upper, pair_upper
from attrpriv.numerics.laws.binomial import binomial_above, binomial_below
from attrpriv.numerics.laws.gaussian import GaussianLaw
from attrpriv.numerics.laws.groups import GroupCase

HOURS = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0),), rest=((42.0, 12.0),))
# The variance differs so much that it tells more than the mean.
SPREAD = GroupCase(n=40, low=5, high=30, apart=8, members=((1.0, 6.0),), rest=((0.0, 1.0),))
Law = tuple[float, float]
Grid = NDArray[np.float64]


def twin(p: Law, q: Law, epsilon: float) -> float:
    """H of N(p) over N(q) by quadrature on a fine grid: nothing of the module's formulas."""
    spread = math.sqrt(p[1])
    x = np.linspace(p[0] - 12 * spread, p[0] + 12 * spread, 40_001)
    a, b = (np.exp(-((x - m) ** 2) / (2 * v)) / math.sqrt(2 * math.pi * v) for m, v in (p, q))
    return float(np.maximum(0.0, a - math.exp(epsilon) * b).sum() * (x[1] - x[0]))


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for others in compositions(total - first, parts - 1):
            yield (first, *others)


def tables(case: GroupCase, a: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every way to fill a rows inside and n - a outside with categories."""
    yield from itertools.product(compositions(a, len(case.members)), compositions(case.n - a, len(case.rest)))


Theta = tuple[list[Law], list[Law]]


def thetas(case: GroupCase, rng: np.random.Generator, count: int) -> Iterator[Theta]:
    """Members of the box: its centre, corners, and points inside."""
    t, r = case.mean_tolerance, case.sd_tolerance

    def moved(mean: float, sd: float, kind: int) -> Law:
        u, w = (rng.uniform(-1, 1, size=2) if kind else rng.choice([-1.0, 1.0], size=2)).tolist()
        true_sd = sd * (1 + w * r)
        return mean + u * t * sd * (1 + r), true_sd**2

    yield [(m, s * s) for m, s in case.members], [(m, s * s) for m, s in case.rest]
    for k in range(count):
        yield [moved(*law, k % 3) for law in case.members], [moved(*law, k % 3) for law in case.rest]


def law_of(case: GroupCase, theta: Theta, members: tuple[int, ...], rest: tuple[int, ...]) -> Law:
    rows = list(zip((*members, *rest), (*theta[0], *theta[1]), strict=True))
    return sum(k * m for k, (m, _) in rows) / case.n, sum(k * v for k, (_, v) in rows) / case.n**2


Table = tuple[tuple[int, ...], tuple[int, ...]]


def neighbours(case: GroupCase) -> list[tuple[Table, Table]]:
    """Pairs of tables that share all rows but those that change sides."""
    found: list[tuple[Table, Table]] = []
    for a in range(case.low, case.high + 1):
        for b in range(a + 1, min(case.high, a + case.apart) + 1):
            d = b - a
            for members, rest in itertools.product(
                compositions(a, len(case.members)), compositions(case.n - b, len(case.rest))
            ):
                for inside, outside in itertools.product(compositions(d, len(case.members)), compositions(d, len(case.rest))):
                    one = members, tuple(np.add(rest, outside).tolist())
                    two = tuple(np.add(members, inside).tolist()), rest
                    found.append((one, two))
    return found


def brute(
    case: GroupCase, noise: float, epsilon: float, form: Form, theta: Theta, pairs: list[tuple[Table, Table]] | None = None
) -> float:
    """The largest H over all pairs of tables, by the closed form in floats (itself checked by quadrature below)."""
    worst = 0.0
    for one, two in pairs or neighbours(case):
        laws = []
        for table in (one, two):
            mean, variance = law_of(case, theta, *table)
            extra = noise if form == "direct" else equalising_variance(case, *table, noise)
            laws.append(GaussianLaw(mean, variance + extra))
        if abs(laws[0].variance / laws[1].variance - 1) < 1e-12:
            laws[1] = GaussianLaw(laws[1].mean, laws[0].variance)
        one_law, two_law = laws
        worst = max(worst, hockey_stick(one_law, two_law, epsilon), hockey_stick(two_law, one_law, epsilon))
    return worst


# ------------------------------------------------------------------------------------------------------------- the lemma


@given(
    gap=st.floats(0, 4),
    least=st.sampled_from([0.3, 1.0, 7.0]),
    ends=st.tuples(st.floats(0, 3), st.floats(0, 3)).map(sorted),
    where=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 2)),
    epsilon=st.sampled_from([0.0, 0.2, 1.0, 3.0]),
)
@settings(max_examples=300)
def test_the_corners_bound_everything_between(
    gap: float, least: float, ends: list[float], where: tuple[float, float, float], epsilon: float
) -> None:
    low, high = (end * least for end in ends)
    nearer, part, more = where
    narrow = GaussianLaw(0.0, least + more)
    wide = GaussianLaw(gap * nearer, least + more + low + part * (high - low))
    upper = pair_upper(gap, least, (low, high), epsilon)
    for pair in ((narrow, wide), (wide, narrow)):
        assert hockey_stick(*pair, epsilon) <= upper * (1 + 1e-9) + 1e-13


@given(gap=st.floats(0.01, 6), epsilon=st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 4.0]), narrow_first=st.booleans())
@settings(max_examples=100)
def test_h_falls_and_then_rises_with_the_larger_variance(gap: float, epsilon: float, narrow_first: bool) -> None:
    """The one step of the proof that is calculus: once it rises it never falls again."""
    values = []
    for v in np.exp(np.linspace(1e-3, 4, 160)):
        laws = (GaussianLaw(0.0, 1.0), GaussianLaw(gap, float(v)))
        values.append(unequal_delta(*(laws if narrow_first else laws[::-1]), epsilon))
    rises = [b > a + 1e-13 for a, b in itertools.pairwise(values)]
    falls = [b < a - 1e-13 for a, b in itertools.pairwise(values)]
    first = rises.index(True) if True in rises else len(rises)
    assert not any(falls[first:])


def test_upper_agrees_with_quadrature_in_many_digits() -> None:
    for case, noise, epsilon in ((HOURS, 0.5, 1.0), (SPREAD, 0.1, 0.3), (SPREAD, 0.0, 2.0)):
        least, (low, high) = case.least_variance + noise, case.spread
        exact = max(by_mpmath((0, least), (case.gap, least + e), epsilon, flip) for e in (low, high) for flip in (0, 1))
        found = group_delta_upper(case, noise, epsilon)
        assert exact <= found <= exact * (1 + 1e-8)


def by_mpmath(p: Law, q: Law, epsilon: float, flip: int) -> float:
    """The integral of (p - e^eps q)_+, cut at the crossings, in 30 digits."""
    with mpmath.workdps(30):
        laws = [(mpmath.mpf(m), mpmath.mpf(v)) for m, v in (p, q)][:: -1 if flip else 1]
        (m1, v1), (m2, v2) = laws

        def excess(x: mpmath.mpf) -> mpmath.mpf:
            one, two = (mpmath.exp(-((x - m) ** 2) / (2 * v)) / mpmath.sqrt(2 * mpmath.pi * v) for m, v in laws)
            return max(mpmath.mpf(0), one - mpmath.exp(epsilon) * two)

        a, b = v2 - v1, -2 * (m1 * v2 - m2 * v1)
        c = m1**2 * v2 - m2**2 * v1 + 2 * v1 * v2 * (epsilon + mpmath.log(v1 / v2) / 2)
        disc = b * b - 4 * a * c
        cuts = [] if disc < 0 or a == 0 else [(-b + s * mpmath.sqrt(disc)) / (2 * a) for s in (1, -1)]
        reach = 14 * mpmath.sqrt(max(v1, v2))
        points = sorted([m1 - reach, m1, m1 + reach, *(x for x in cuts if abs(x - m1) < reach)])
        return float(mpmath.quad(excess, points))


# ------------------------------------------------------------------------------------------------------------ two groups


@pytest.mark.parametrize("case", [HOURS, SPREAD, replace(SPREAD, members=((1.0, 0.2),)), replace(HOURS, apart=4)])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_without_tolerance_the_bound_is_the_largest_over_all_pairs(case: GroupCase, noise: float) -> None:
    assert case.exact
    theta = next(thetas(case, np.random.default_rng(0), 0))
    for epsilon in (0.1, 1.0):
        worst = brute(case, noise, epsilon, "direct", theta)
        assert worst * (1 - 1e-9) <= group_delta_upper(case, noise, epsilon) <= worst * (1 + 1e-9) + 1e-15
        # The same by quadrature, at the pair of counts where the variance is least.
        start = case.low if case.members[0][1] > case.rest[0][1] else case.high - case.apart
        laws = [law_of(case, theta, (a,), (case.n - a,)) for a in (start, start + case.apart)]
        one, two = ((mean, variance + noise) for mean, variance in laws)
        assert max(twin(one, two, epsilon), twin(two, one, epsilon)) == pytest.approx(worst, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("case", [HOURS, SPREAD])
def test_the_high_variance_end_is_not_the_worst(case: GroupCase) -> None:
    """The mutant: the pair at the other end of the range, `within` apart."""
    near = replace(case, apart=5)
    right = group_delta_upper(near, 0.0, 1.0)
    rest_is_wider = near.rest[0][1] > near.members[0][1]
    end = replace(near, low=near.low, high=near.low + 5) if rest_is_wider else replace(near, low=near.high - 5)
    assert group_delta_upper(end, 0.0, 1.0) < right * 0.999


def test_one_direction_would_miss() -> None:
    """The mutant: only the narrow law over the wide one, or the other way round."""
    least, e = SPREAD.least_variance, SPREAD.spread[1]
    narrow, wide = GaussianLaw(0.0, least), GaussianLaw(SPREAD.gap, least + e)
    one_way = hockey_stick(narrow, wide, 1.0)
    assert one_way < 0.9 * group_delta_upper(SPREAD, 0.0, 1.0)
    noise = max(0.0, least_group_noise(SPREAD, 1.0, 1e-3))
    weaker = next(s for s in np.geomspace(1e-6, 10 * noise, 400) if _one_way(SPREAD, float(s)) <= 1e-3)
    assert brute(SPREAD, float(weaker), 1.0, "direct", next(thetas(SPREAD, np.random.default_rng(0), 0))) > 2e-3


def _one_way(case: GroupCase, noise: float) -> float:
    least = case.least_variance + noise
    return hockey_stick(GaussianLaw(0.0, least), GaussianLaw(case.gap, least + case.spread[1]), 1.0)


def test_without_the_spread_of_variances_it_would_not_be_private() -> None:
    """The mutant: eta dropped, as if the variances were equal."""
    mu = gaussian_mu(1.0, 1e-6)
    mutant = max(0.0, (SPREAD.gap / mu) ** 2 - SPREAD.least_variance)
    theta = next(thetas(SPREAD, np.random.default_rng(0), 0))
    assert brute(SPREAD, mutant, 1.0, "direct", theta) > 2e-6
    assert brute(SPREAD, least_group_noise(SPREAD, 1.0, 1e-6), 1.0, "direct", theta) <= 1e-6


# --------------------------------------------------------------------------------------- tolerance, many categories, known


@st.composite
def cases(draw: st.DrawFn) -> GroupCase:
    n = draw(st.integers(3, 6))
    low = draw(st.integers(0, n - 1))
    high = draw(st.integers(low + 1, n))
    laws = st.tuples(st.integers(-200, 200).map(lambda k: k / 100), st.sampled_from([0.5, 1.0, 1.5, 3.0]))
    sides = [tuple(draw(st.lists(laws, min_size=1, max_size=2))) for _ in range(2)]
    return GroupCase(
        n=n,
        low=low,
        high=high,
        apart=draw(st.integers(1, high - low)),
        members=sides[0],
        rest=sides[1],
        mean_tolerance=draw(st.sampled_from([0.0, 0.05, 0.3])),
        sd_tolerance=draw(st.sampled_from([0.0, 0.05, 0.3])),
    )


@given(case=cases(), noise=st.sampled_from([0.0, 0.2, 2.0]), epsilon=st.sampled_from([0.1, 1.0]), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_no_table_and_no_member_of_the_box_exceeds_the_bound(case: GroupCase, noise: float, epsilon: float, seed: int) -> None:
    pairs = neighbours(case)
    for theta in thetas(case, np.random.default_rng(seed), 2):
        assert brute(case, noise, epsilon, "direct", theta, pairs) <= group_delta_upper(case, noise, epsilon) * (1 + 1e-9)
        if case.sd_tolerance == 0:
            upper = group_delta_upper(case, noise, epsilon, "equalised")
            assert brute(case, noise, epsilon, "equalised", theta, pairs) <= upper * (1 + 1e-9)


@given(case=cases(), data=st.data())
@settings(max_examples=12, deadline=None)
def test_the_real_law_given_the_count_is_a_mixture_and_is_bounded(case: GroupCase, data: st.DataObject) -> None:
    """No coupling here: F given a is a mixture over all categories of the rows, compared by quadrature."""
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    theta = list(thetas(case, rng, 1))[-1]
    shares = [rng.dirichlet(np.ones(len(side))) for side in theta]
    a = data.draw(st.integers(case.low, case.high - 1))
    b = data.draw(st.integers(a + 1, min(case.high, a + case.apart)))
    x = np.linspace(-40, 40, 20_001)
    densities = [_mixture(case, theta, shares, count, x, 0.4) for count in (a, b)]
    for p, q in (densities, densities[::-1]):
        h = float(np.maximum(0.0, p - math.exp(0.5) * q).sum() * (x[1] - x[0]))
        assert h <= group_delta_upper(case, 0.4, 0.5) + 5e-6  # of the grid, at the two crossings


def _mixture(case: GroupCase, theta: Theta, shares: list[Grid], a: int, x: Grid, noise: float) -> Grid:
    total = np.zeros_like(x)
    for members, rest in tables(case, a):
        weight = 1.0
        for counts, share in ((members, shares[0]), (rest, shares[1])):
            weight *= math.factorial(sum(counts)) / math.prod(map(math.factorial, counts)) * float(np.prod(share**counts))
        mean, variance = law_of(case, theta, members, rest)
        variance += noise
        total += weight * np.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return total


@pytest.mark.parametrize("form", ["direct", "equalised"])
@pytest.mark.parametrize("what", ["rows", "values"])
def test_an_adversary_who_knows_rows(form: Form, what: str) -> None:
    """Exact law of F given the count and some rows, known completely or by value alone, by adding up all categories."""
    case = GroupCase(n=6, low=1, high=5, apart=4, members=((1.0, 2.0),), rest=((0.0, 1.0),), known=2)
    x = np.linspace(-15, 15, 20_001)
    values = (3.0, -0.5)
    for noise, epsilon in itertools.product((0.3, 1.0), (0.2, 1.0)):
        upper = group_delta_upper(case, noise, epsilon, form)
        assert upper >= group_delta_upper(replace(case, known=0), noise, epsilon, form)
        for kinds in itertools.product((0, 1), repeat=2) if what == "rows" else (None,):
            found = [_known(case, form, noise, a, x, values, kinds) for a in range(case.low, case.high + 1)]
            for p, q in itertools.permutations([density for density in found if density is not None], 2):
                assert float(np.maximum(0.0, p - math.exp(epsilon) * q).sum() * (x[1] - x[0])) <= upper + 1e-7


def _known(
    case: GroupCase, form: Form, noise: float, a: int, x: Grid, values: tuple[float, ...], kinds: tuple[int, ...] | None
) -> Grid | None:
    """The density of F given a members in all and the values of two rows (and their kinds, if known); a prior of 0.3."""
    total, mass = np.zeros_like(x), 0.0
    for guess in itertools.product((0, 1), repeat=2):
        left = a - sum(guess)
        if (kinds is not None and guess != kinds) or not 0 <= left <= case.n - 2:
            continue
        weight = math.comb(case.n - 2, left) * 0.3**a * 0.7 ** (case.n - a)
        for value, kind in zip(values, guess, strict=True):
            mean, sd = (case.members if kind else case.rest)[0]
            weight *= math.exp(-((value - mean) ** 2) / (2 * sd * sd)) / sd
        mean = (sum(values) + left * case.members[0][0] + (case.n - 2 - left) * case.rest[0][0]) / case.n
        own = (left * case.members[0][1] ** 2 + (case.n - 2 - left) * case.rest[0][1] ** 2) / case.n**2
        own += noise if form == "direct" else equalising_variance(case, (a,), (case.n - a,), noise)
        total, mass = total + weight * np.exp(-((x - mean) ** 2) / (2 * own)) / math.sqrt(2 * math.pi * own), mass + weight
    return total / mass if mass else None


def test_known_rows_that_leave_nothing_are_refused() -> None:
    with pytest.raises(RefusedError, match="known_rows"):
        group_delta_upper(replace(SPREAD, known=36), 1.0, 1.0)


# ------------------------------------------------------------------------------------------------------------- the noise


@given(case=cases(), delta=st.sampled_from([1e-8, 1e-4, 0.05]), epsilon=st.sampled_from([0.2, 1.0]))
@settings(max_examples=40, deadline=None)
def test_noise_is_on_the_private_side_and_no_more_than_needed(case: GroupCase, delta: float, epsilon: float) -> None:
    forms: list[Form] = ["direct"] if case.sd_tolerance else ["direct", "equalised"]
    for form in forms:
        noise = least_group_noise(case, epsilon, delta, form)
        assert group_delta_upper(case, noise, epsilon, form) <= delta
        if noise > 0:
            assert group_delta_upper(case, noise * (1 - 1e-6), epsilon, form) > delta * (1 - 1e-4)
        assert least_group_noise(case, epsilon, delta, form, noise + 1.0) == noise + 1.0


def test_equal_variances_are_algorithm_1() -> None:
    case = replace(HOURS, rest=((42.0, 11.0),))
    wanted = (case.gap / gaussian_mu(1.0, 1e-6)) ** 2 - 1.21
    forms: list[Form] = ["direct", "equalised"]
    for form in forms:
        assert least_group_noise(case, 1.0, 1e-6, form) == pytest.approx(wanted, rel=1e-6)


def test_equalised_outputs_have_one_variance() -> None:
    case = GroupCase(n=8, low=2, high=6, apart=4, members=((1.0, 2.0), (0.5, 1.0)), rest=((0.0, 1.5), (1.0, 0.5)))
    most = 0.0
    for a in range(case.low, case.high + 1):
        for members, rest in tables(case, a):
            extra = equalising_variance(case, members, rest, 0.25)
            own = law_of(case, next(thetas(case, np.random.default_rng(0), 0)), members, rest)[1]
            assert own + extra == pytest.approx(equalised_target(case) + 0.25, rel=1e-14)
            most = max(most, extra - 0.25)
    assert most == pytest.approx(most_equalising(case), rel=1e-12)
    assert equalising_variance(case, (8, 0), (0, 0), 0.25) == 0.25  # outside of the range: noise, not a failure
    with pytest.raises(UsageError, match="counts"):
        equalising_variance(case, (8, 0), (1, 0), 0.25)


def test_equalising_under_a_tolerance_of_sds_is_refused() -> None:
    loose = replace(HOURS, sd_tolerance=0.01)
    refusals: list[Callable[[], float]] = [
        lambda: group_delta_upper(loose, 1.0, 1.0, "equalised"),
        lambda: equalised_target(loose),
        lambda: equalising_variance(loose, (30,), (70,), 1.0),
    ]
    for refused in refusals:
        with pytest.raises(RefusedError, match=r"tolerance\.sd"):
            refused()
    with pytest.raises(RefusedError, match="delta: equalising needs more"):
        least_group_noise(HOURS, 1.0, 1e-14, "equalised")


def test_more_tolerance_needs_more_noise() -> None:
    noises = [least_group_noise(replace(HOURS, mean_tolerance=t, sd_tolerance=t), 1.0, 1e-6) for t in (0, 0.01, 0.05)]
    assert noises[0] < noises[1] < noises[2]


# ------------------------------------------------------------------------------------------------------------ population


def exact_tail(n: int, p: float, ks: range) -> mpmath.mpf:
    with mpmath.workdps(40):
        return sum((mpmath.binomial(n, k) * mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k) for k in ks), mpmath.mpf(0))


@pytest.mark.parametrize("n", [1, 7, 60])
@pytest.mark.parametrize("p", [0.0, 1e-9, 0.03, 0.5, 0.97, 1 - 1e-9, 1.0])
def test_binomial_tails_are_rounded_up_and_sharp(n: int, p: float) -> None:
    for k in range(-1, n + 2):
        for found, exact in (
            (binomial_below(n, p, k), exact_tail(n, p, range(max(0, k)) if k <= n else range(n + 1))),
            (binomial_above(n, p, k), exact_tail(n, p, range(max(0, k + 1), n + 1))),
        ):
            assert mpmath.mpf(found) >= min(exact, 1) * (1 - mpmath.mpf(10) ** -30)
            assert found <= float(exact) * (1 + 1e-6) + 1e-100


@pytest.mark.parametrize(
    ("n", "p", "q"), [(1000, 0.25, 0.4), (50, 0.0, 1.0), (20, 0.5, 0.51), (2, 0.1, 0.2), (100_000, 0.3, 0.31)]
)
@pytest.mark.parametrize("budget", [1e-9, 1e-3, 0.5])
def test_a_range_for_a_population(n: int, p: float, q: float, budget: float) -> None:
    found = population_range(n, p, q, budget)
    assert 0 <= found.low < found.high <= n
    assert 1 <= found.apart <= found.high - found.low
    assert found.tail == population_tail(n, p, q, found.low, found.high, found.apart) <= budget
    GroupCase(n, found.low, found.high, found.apart, ((0.0, 1.0),), ((1.0, 1.0),))


def test_the_population_share_is_hidden() -> None:
    """F given the share is a mixture over all counts: compared by quadrature, at small n, where tails matter."""
    n, p, q, epsilon, budget = 30, 0.2, 0.5, 1.0, 0.02
    found = population_range(n, p, q, budget)
    case = GroupCase(n, found.low, found.high, found.apart, ((1.0, 1.0),), ((0.0, 0.5),))
    noise = least_group_noise(case, epsilon, 0.01)
    x = np.linspace(-4, 5, 20_001)
    densities = []
    for share in (p, 0.37, q):
        total = np.zeros_like(x)
        for a in range(n + 1):
            v = (a + 0.25 * (n - a)) / n**2 + noise
            total += (
                math.comb(n, a)
                * share**a
                * (1 - share) ** (n - a)
                * np.exp(-((x - a / n) ** 2) / (2 * v))
                / math.sqrt(2 * math.pi * v)
            )
        densities.append(total)
    for one, two in itertools.permutations(densities, 2):
        h = float(np.maximum(0.0, one - math.exp(epsilon) * two).sum() * (x[1] - x[0]))
        assert h <= 0.01 + found.tail


# --------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"n": 0}, "counts"),
        ({"low": 41}, "counts"),
        ({"high": 101}, "counts"),
        ({"apart": 0}, "apart"),
        ({"apart": 16}, "apart"),
        ({"known": 100}, "known"),
        ({"known": -1}, "known"),
        ({"members": ()}, "categories"),
        ({"members": ((math.nan, 1.0),)}, "categories"),
        ({"rest": ((0.0, 0.0),)}, "categories"),
        ({"rest": ((0.0, math.inf),)}, "categories"),
        ({"mean_tolerance": -0.1}, "tolerance"),
        ({"mean_tolerance": math.nan}, "tolerance"),
        ({"sd_tolerance": 1.0}, "tolerance"),
    ],
)
def test_what_is_no_case(changed: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=f"^{says}"):
        replace(HOURS, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="noise"):
        group_delta_upper(HOURS, bad, 1.0)
    with pytest.raises(UsageError, match="epsilon"):
        group_delta_upper(HOURS, 1.0, bad)
    with pytest.raises(UsageError, match="form"):
        group_delta_upper(HOURS, 1.0, 1.0, "other")  # type: ignore[arg-type]


def test_a_certificate_can_hold_a_case() -> None:
    class Evidence(FrozenModel):
        case: GroupCase

    held = Evidence(case=replace(SPREAD, mean_tolerance=0.1))
    assert Evidence.from_json(held.to_json()) == held


def test_the_mutant_without_the_lower_end_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: only the largest difference of variances is looked at, where variances may also be equal."""
    case = GroupCase(n=10, low=2, high=8, apart=6, members=((3.0, 1.0), (3.0, 4.0)), rest=((0.0, 1.0),))
    right = group_delta_upper(case, 0.2, 1.0)
    monkeypatch.setattr(module, "pair_upper", lambda g, v, ends, e: pair_upper(g, v, (ends[1], ends[1]), e))
    wrong = group_delta_upper(case, 0.2, 1.0)
    theta = next(thetas(case, np.random.default_rng(0), 0))
    worst = brute(case, 0.2, 1.0, "direct", theta)
    assert wrong < worst <= right
