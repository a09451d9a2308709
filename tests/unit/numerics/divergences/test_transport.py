"""Moving laws on the line: exact weights, couplings and matchings by brute force, also of laws that begin anywhere."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.transport import Measure, exact_measure, largest_matching, monotone_coupling, unmatched
from attrpriv.numerics.divergences.wasserstein import _tails, close_distance, wasserstein_inf
from attrpriv.numerics.laws.binomial import binomial_tails
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum
from tests.unit.numerics.divergences.test_wasserstein import by_all_sets, by_quantiles
from tests.unit.numerics.divergences.test_wasserstein import exact as binomial


def some_measure(rng: np.random.Generator) -> Measure:
    """Unequal gaps and weights, values on both sides of 0."""
    size = int(rng.integers(1, 6))
    places = sorted(rng.choice(np.arange(-9, 10), size, replace=False).tolist())
    weights = [Fraction(int(w)) for w in rng.integers(1, 9, size)]
    return Measure([Fraction(x, 2) for x in places], [w / sum(weights) for w in weights])


@pytest.mark.parametrize("seed", range(30))
def test_couplings_and_matchings_of_measures_by_brute_force(seed: int) -> None:
    """All mass is used, of each what it has; the longest move is W_inf; a matching leaves what some set cannot keep near."""
    rng = np.random.default_rng(seed)
    p, q = some_measure(rng), some_measure(rng)
    rows = monotone_coupling(p, q)
    for which, law in ((0, p), (1, q)):
        used = [sum((row[2] for row in rows if row[which] == x), Fraction(0)) for x in law.positions]
        assert used == list(law.weights)
    assert all(mass > 0 for _, _, mass in rows)
    assert rows == sorted(rows)
    longest = max(Fraction(x) - Fraction(y) if x > y else Fraction(y) - Fraction(x) for x, y, _ in rows)
    assert longest == by_quantiles(p, q)
    for within in (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(4), longest):
        kept = largest_matching(p, q, within)
        assert all(-within <= x - y <= within and mass > 0 for x, y, mass in kept)
        for which, law in ((0, p), (1, q)):
            for x, weight in zip(law.positions, law.weights, strict=True):
                assert sum((row[2] for row in kept if row[which] == x), Fraction(0)) <= weight
        assert unmatched(p, q, within) == by_all_sets(p, q, within) == 1 - sum(mass for _, _, mass in kept)
    assert unmatched(p, q, longest) == 0


def test_a_law_is_divided_by_its_sum() -> None:
    """In order of the values, without those that cannot be, decimals as they are written."""
    found = exact_measure({2.5: 0.3, -1: Fraction(1, 5), 0.1: 0.5, 7: 0.0})
    assert found.positions == [-1, Fraction(1, 10), Fraction(5, 2)]
    assert found.weights == [Fraction(1, 5), Fraction(1, 2), Fraction(3, 10)]
    for total in (1 + 9e-10, 1 - 9e-10):
        nearly = exact_measure({0: 0.25, 1: total - 0.25})
        assert sum(nearly.weights) == 1
        assert nearly.weights[0] == Fraction(1, 4) / (Fraction(1, 4) + Fraction(repr(total - 0.25)))


@pytest.mark.parametrize(
    "law",
    [
        {},
        {0: 1 + 1.1e-9},
        {0: 1 - 1.1e-9},
        {0: 0.5, 1: 0.6},
        {0: 0.5},
        {0: 2.0},
        {0: 1.2, 1: -0.2},
        {0: math.inf},
        {math.inf: 1.0},
    ],
)
def test_what_is_no_law(law: dict[float, float]) -> None:
    with pytest.raises(UsageError, match="law: "):
        exact_measure(law)


# ------------------------------------------------------------------------------------------------- laws on whole numbers


def some_lattice(rng: np.random.Generator) -> LatticeLaw:
    return LatticeLaw(int(rng.integers(-6, 7)), rng.dirichlet(np.ones(int(rng.integers(2, 7)))), 0.0, 0.0)


def measured(law: LatticeLaw) -> Measure:
    return Measure([law.start + k for k in range(len(law.masses))], [Fraction(float(mass)) for mass in law.masses])


def level(law: LatticeLaw, x: float) -> tuple[float, float]:
    """The levels u at which x is the quantile."""
    sums = np.cumsum(law.masses)
    k = int(x) - law.start
    return (float(sums[k - 1]) if k else 0.0), float(sums[k])


@pytest.mark.parametrize("seed", range(30))
def test_laws_that_begin_anywhere_are_as_far_apart_as_their_quantiles(seed: int) -> None:
    rng = np.random.default_rng([1, seed])
    p, q = some_lattice(rng), some_lattice(rng)
    found = wasserstein_inf(p, q)
    x, y = found.longest
    assert abs(y - x) == found.distance
    shared = min(level(p, x)[1], level(q, y)[1]) - max(level(p, x)[0], level(q, y)[0])
    assert shared > 0
    assert found.distance == by_quantiles(_whole(p), _whole(q))
    # A mapping is the same law; a law that may be off needs no less.
    mapping = {q.start + k: mass for k, mass in enumerate(q.masses.tolist())}
    assert wasserstein_inf(p, mapping).distance == found.distance
    rows = found.coupling()
    assert max(abs(one - other) for one, other, _ in rows) == found.distance
    for which, law in ((0, p), (1, q)):
        for k, mass in enumerate(law.masses.tolist()):
            assert math.fsum(row[2] for row in rows if row[which] == law.start + k) == pytest.approx(mass, abs=1e-14)


def _whole(law: LatticeLaw) -> Measure:
    exact = measured(law)
    total = sum(exact.weights, Fraction(0))
    return Measure(exact.positions, [Fraction(weight) / total for weight in exact.weights])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.35])
def test_close_laws_that_begin_anywhere_by_all_sets(seed: int, delta: float) -> None:
    rng = np.random.default_rng([2, seed])
    p, q = some_lattice(rng), some_lattice(rng)
    found = close_distance(p, q, delta)
    one, other = measured(p), measured(q)
    assert by_all_sets(one, other, Fraction(found.distance)) <= delta
    if found.distance:
        assert by_all_sets(one, other, Fraction(found.distance) - 1) > delta * (1 - 1e-12)
    assert found.delta == delta
    assert found.ignored <= delta
    assert found.ignored == pytest.approx(float(by_all_sets(one, other, Fraction(found.distance))), abs=1e-13)
    mappings = [{law.start + k: mass for k, mass in enumerate(law.masses.tolist())} for law in (p, q)]
    for again in (close_distance(p, mappings[1], delta), close_distance(mappings[0], q, delta)):
        assert again.distance == found.distance
        assert again.ignored == pytest.approx(found.ignored, abs=1e-12)
    rows = found.matching()
    assert all(abs(x - y) <= found.distance for x, y, _ in rows)
    assert math.fsum(mass for _, _, mass in rows) == pytest.approx(1 - found.ignored, abs=1e-13)


def test_what_laws_lost_is_charged_to_what_may_be_ignored() -> None:
    """Of both laws; where it is more than what may be ignored nothing is said, where it is as much only a move of all."""
    p, q = LatticeLaw(0, np.array([0.5, 0.5]), math.inf, 0.01), LatticeLaw(3, np.array([0.5, 0.5]), math.inf, 0.02)
    for delta, distance in ((0.6, 2.0), (0.52, 3.0), (0.04, 3.0)):
        found = close_distance(p, q, delta)
        assert found.distance == distance
        assert found.ignored == pytest.approx(0.03 + (0.5 if distance == 2 else 0.0), abs=1e-12)
    with pytest.raises(UsageError, match="leave out"):
        close_distance(p, q, 0.0299)
    with pytest.raises(UsageError, match="leave out"):
        close_distance(q, p, 0.0299)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 1.5, math.inf])
def test_what_is_no_share_to_ignore(delta: float) -> None:
    with pytest.raises(UsageError, match="delta: must be at least 0"):
        close_distance({0: 1.0}, {1: 1.0}, delta)


def test_nothing_is_ignored_where_nothing_may_be() -> None:
    found = close_distance({0: 0.5, 1: 0.5}, {0: 0.5, 2: 0.5}, 0.0)
    assert (found.distance, found.ignored) == (1.0, 0.0)
    assert close_distance({0: 1.0}, {0: 1.0}, 0.99).distance == 0.0


def test_tails_have_no_coupling_whichever_law_they_are() -> None:
    law, tails = binomial_sum(5, 0.25, 0, 0.5), binomial_tails(5, 0.75)
    for p, q in ((law, tails), (tails, law), (tails, tails)):
        with pytest.raises(UsageError, match="coupling"):
            wasserstein_inf(p, q).coupling()
    assert wasserstein_inf(law, tails).distance == wasserstein_inf(tails, law).distance
    exact = [binomial(5, x) for x in (0.25, 0.75)]
    assert by_quantiles(*exact) <= wasserstein_inf(law, tails).distance <= by_quantiles(*exact) + 1


@pytest.mark.parametrize("which", [0, 1])
def test_a_value_between_whole_numbers_is_never_put_on_one(which: int) -> None:
    """Against a law on whole numbers, wherever in the mapping it is."""
    law = binomial_sum(4, 0.5, 0, 0.5)
    for mapping in ({0: 0.5, 1.5: 0.5}, {-0.5: 0.5, 1: 0.5}):
        pair = (law, mapping) if which else (mapping, law)
        for compared in (wasserstein_inf, lambda p, q: close_distance(p, q, 0.1)):
            with pytest.raises(UsageError, match="whole numbers"):
                compared(*pair)


@pytest.mark.parametrize("error", [0.0, 0.01, 0.1])
def test_logarithms_of_tails_are_off_by_what_masses_are(error: float) -> None:
    """A share e of a sum is -log(1 - e) of its logarithm at most, which is more than e."""
    found = _tails(LatticeLaw(3, np.array([0.2, 0.3, 0.5]), error, 0.0))
    assert found.start == 3
    assert np.exp(found.log_below) == pytest.approx([0.2, 0.5, 1.0], rel=1e-12)
    assert np.exp(found.log_above) == pytest.approx([0.8, 0.5, 0.0], rel=1e-12)
    assert -math.log1p(-error) + 1e-14 < found.error <= 2 * error + 1e-12
