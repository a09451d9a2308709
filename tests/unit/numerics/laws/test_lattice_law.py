"""Laws on whole numbers with large errors: what an operation says of its result holds for every law that was meant.

Floats are off by 2^-53 and no test can see whether a bound on that is right. So here laws are given errors of a tenth, and the
bounds of results are compared with the worst that such laws can do, which must be below, and with the formula, which is near.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import lattice_law
from attrpriv.numerics.laws.gaussian import GaussianMixture
from attrpriv.numerics.laws.lattice_law import SMALLEST, LatticeLaw, mixture, require_probabilities, up


def law(masses: Any, start: int = 0, error: float = 0.0, lost: float = 0.0) -> LatticeLaw:
    return LatticeLaw(start, np.array(masses, dtype=np.float64), error, lost)


P, Q = [0.2, 0.5, 0.3], [0.6, 0.4]


def furthest(made: LatticeLaw, true: np.ndarray) -> float:
    """The largest |true(T) - masses(T)| over sets, both on the same window."""
    gaps = true - made.masses
    return float(max(gaps[gaps > 0].sum(), -gaps[gaps < 0].sum()))


def test_of_probabilities() -> None:
    made = LatticeLaw.of({3: 0.25, 5: 0.5, 4: Fraction(1, 4), 9: 0.0})
    assert made.start == 3
    assert made.end == 5
    assert made.masses.tolist() == [0.25, 0.25, 0.5]
    assert made.pointwise
    assert 0 < made.error < 1e-14
    assert LatticeLaw.of({0: 0.5, 1: 0.5}).error < made.error
    assert LatticeLaw.of({0: 1.0, 4: 1e-310}).lost > 0  # too small a mass to be accurate
    assert not LatticeLaw.of({0: 1.0, 4: 1e-310}).pointwise
    gap = LatticeLaw.of({0: 0.5, 2: 0.5})
    assert gap.masses.tolist() == [0.5, 0.0, 0.5]
    assert gap.pointwise


def test_moments_and_moves() -> None:
    made = law(P, start=4, error=0.01, lost=0.001)
    assert made.mean == pytest.approx(4 * 0.2 + 5 * 0.5 + 6 * 0.3)
    assert made.variance == pytest.approx(0.2 * 1.1**2 + 0.5 * 0.1**2 + 0.3 * 0.9**2)
    assert made.cdf().tolist() == pytest.approx([0.2, 0.7, 1.0])
    moved = made.shifted(-7)
    assert (moved.start, moved.end, moved.error, moved.lost) == (-3, -1, 0.01, 0.001)
    back = made.mirrored()
    assert (back.start, back.end, back.error, back.lost) == (-6, -4, 0.01, 0.001)
    assert back.masses.tolist() == P[::-1]


def test_distance_is_error_and_lost() -> None:
    made = law([0.2, 0.4], error=0.1, lost=0.05)
    assert made.distance == pytest.approx(0.1 * 0.6 + 0.05, rel=1e-12)
    assert made.distance >= 0.11
    assert not made.pointwise
    assert law(P, error=0.1).pointwise
    assert law(P, error=math.inf, lost=0.05).distance == 0.05


def test_a_large_error_becomes_a_total() -> None:
    """From a half on; just below it stays."""
    kept = law([0.2, 0.4], error=0.4999)
    assert kept.error == 0.4999
    made = law([0.2, 0.4], error=0.5, lost=0.01)
    assert made.error == math.inf
    assert made.lost == pytest.approx(0.01 + 0.3, rel=1e-12)


@pytest.mark.parametrize(
    ("masses", "error", "lost"),
    [([], 0, 0), ([[0.5, 0.5]], 0, 0), ([-0.1, 1.1], 0, 0), ([math.nan], 0, 0), ([math.inf], 0, 0), (P, -1, 0),
     (P, math.nan, 0), (P, 0, -1), (P, 0, math.inf), (P, 0, math.nan)],
)  # fmt: skip
def test_what_is_no_law(masses: Any, error: float, lost: float) -> None:
    with pytest.raises(UsageError):
        law(masses, 0, error, lost)


def test_what_are_no_probabilities() -> None:
    assert require_probabilities("p", [0.25, 0.75]) == 1.0
    assert require_probabilities("p", [0.25, 0.75 + 9e-10]) == pytest.approx(1.0)
    for wrong in ([], [0.5, 0.5 + 2e-9], [0.5, 0.5 - 2e-9], [1.5, -0.5], [math.nan, 1.0]):
        with pytest.raises(UsageError):
            require_probabilities("p", wrong)
    with pytest.raises(UsageError, match="whole numbers"):
        LatticeLaw.of({0.5: 1.0})  # type: ignore[dict-item]


# ------------------------------------------------------------------------------------------------------------------- sums


@pytest.mark.parametrize(("e", "f"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.2), (0.1, 0.2)])
def test_a_sum_of_pointwise_laws(e: float, f: float) -> None:
    """Each mass may be off by both factors: that is the bound, and the worst laws reach it."""
    made = law(P, 2, error=e).convolve(law(Q, -1, error=f), exact=True)
    assert (made.start, made.end) == (1, 4)
    assert made.masses == pytest.approx(np.convolve(P, Q))
    assert made.pointwise
    exact = (1 + e) * (1 + f) - 1
    assert exact <= made.error <= exact * (1 + 1e-9) + 1e-14
    true = np.convolve(np.array(P) * (1 + e), np.array(Q) * (1 + f))
    assert (np.abs(true - made.masses) <= made.error * made.masses + 1e-15).all()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0.0, 0.05), (0.0, 0.0)), ((0.0, 0.0), (0.0, 0.05)), ((0.1, 0.05), (0.2, 0.01)),
        ((math.inf, 0.05), (0.0, 0.0)), ((0.0, 0.0), (math.inf, 0.07)), ((math.inf, 0.03), (math.inf, 0.05)),
    ],
)  # fmt: skip
def test_a_sum_of_laws_of_which_some_is_lost(one: tuple[float, float], other: tuple[float, float], exact: bool) -> None:
    """Directly and by the transform: the one's distance, and the other's times the mass of the first."""
    p, q = law(P, error=one[0], lost=one[1]), law([0.3, 0.2], error=other[0], lost=other[1])
    made = p.convolve(q, exact=exact, direct=None if exact else 0)
    assert made.masses == pytest.approx(np.convolve(P, [0.3, 0.2]), abs=1e-12)
    assert made.error == math.inf
    bound = p.distance + q.distance * 1.0
    assert bound <= made.lost <= bound * (1 + 1e-9) + 1e-12


def test_where_a_sum_has_mass() -> None:
    """Holes stay holes; a product too small to be accurate makes the whole a total."""
    holes = law([0.5, 0.0, 0.5]).convolve(law([0.5, 0.0, 0.0, 0.5]), exact=True)
    assert holes.masses.tolist() == [0.25, 0.0, 0.25, 0.25, 0.0, 0.25]
    assert holes.pointwise
    tiny = law([1.0, 2.0**-600]).convolve(law([1.0, 2.0**-600]), exact=True)
    assert tiny.error == math.inf
    assert 0 < tiny.lost < 1e-14
    fine = law([1.0, 2.0**-499]).convolve(law([1.0, 2.0**-499]), exact=True)
    assert fine.pointwise
    least = law([1.0, SMALLEST]).convolve(law([1.0]), exact=True)
    assert least.pointwise
    below = law([1.0, SMALLEST * 0.999]).convolve(law([1.0]), exact=True)
    assert not below.pointwise


def test_long_sums_are_transforms_and_too_long_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = law([1 / 64] * 64)
    direct, transform = flat.convolve(flat, exact=False, direct=64 * 64), flat.convolve(flat, exact=False, direct=64 * 64 - 1)
    assert direct.pointwise
    assert transform.error == math.inf
    assert transform.masses == pytest.approx(direct.masses, abs=1e-15)
    # kappa = 16 * 8 units for 128 points; norms 1/8 and 1, twice; and sqrt(128) on the way back.
    kappa = 16 * 2.0**-53 * 8
    wanted = math.sqrt(128) * (2 / 8) * (2 * kappa + 8 * 2.0**-53)
    assert transform.lost == pytest.approx(wanted, rel=1e-6, abs=0)
    assert furthest(transform, direct.masses) <= transform.lost
    monkeypatch.setattr(lattice_law, "_LARGEST", 64 * 64 - 1)
    with pytest.raises(UsageError, match="too many"):
        flat.convolve(flat, exact=True)
    monkeypatch.setattr(lattice_law, "_LARGEST", 64 * 64)
    assert flat.convolve(flat, exact=True).pointwise
    monkeypatch.setattr(lattice_law, "DIRECT", 64 * 64)
    assert flat.convolve(flat, exact=False).pointwise
    monkeypatch.setattr(lattice_law, "DIRECT", 64 * 64 - 1)
    assert not flat.convolve(flat, exact=False).pointwise


def test_transforms_of_any_length_are_sums() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 3, 31, 32, 33, 100):
        p, q = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(7))
        made = law(p, 5).convolve(law(q, -2), exact=False, direct=0)
        assert made.start == 3
        assert made.masses == pytest.approx(np.convolve(p, q), abs=1e-14)
        assert len(made.masses) == size + 6
        assert float(made.masses.min()) >= 0


def test_a_hole_in_one_of_both_may_be_one_in_the_sum() -> None:
    """What is impossible is no mass that is too small."""
    hole, whole = law([0.5, 0.0, 0.0, 0.5]), law([0.5, 0.5])
    for made in (hole.convolve(whole, exact=True), whole.convolve(hole, exact=True)):
        assert made.masses.tolist() == [0.25, 0.25, 0.0, 0.25, 0.25]
        assert made.pointwise


@pytest.mark.parametrize(("sizes", "points"), [((65, 64), 128), ((65, 65), 256), ((64, 66), 256)])
def test_a_transform_has_as_many_points_as_a_power_of_two_has(sizes: tuple[int, int], points: int) -> None:
    wholes = (0.6, 0.25)  # parts of laws, so that a norm is not the same as its product with a sum
    one, other = (law([whole / size] * size) for whole, size in zip(wholes, sizes, strict=True))
    kappa = 16 * 2.0**-53 * points.bit_length()
    norms = sum(0.6 * 0.25 / math.sqrt(size) for size in sizes)
    made = one.convolve(other, exact=False, direct=0)
    assert made.lost == pytest.approx(math.sqrt(points) * norms * (2 * kappa + 8 * 2.0**-53), rel=1e-6, abs=0)


# ------------------------------------------------------------------------------------------------------------ ends and mixtures


@pytest.mark.parametrize("tail", [0.0, 0.05, 0.1001, 0.31, 0.8])
def test_ends_are_cut_by_half_of_the_tail_each(tail: float) -> None:
    masses = [0.02, 0.03, 0.4, 0.4, 0.1, 0.05]
    made = law(masses, start=10, error=0.1, lost=0.01).trimmed(tail)
    left = sum(1 for k in range(1, 7) if sum(masses[:k]) <= tail / 2)
    right = sum(1 for k in range(1, 7) if sum(masses[-k:]) <= tail / 2)
    assert made.start == 10 + left
    assert made.masses.tolist() == masses[left : 6 - right]
    cut = sum(masses[:left]) + (sum(masses[6 - right :]) if right else 0.0)
    assert made.lost == pytest.approx(0.01 + cut * 1.1, rel=1e-12)
    assert made.error == 0.1
    total = law(masses, error=math.inf, lost=0.01).trimmed(0.1001)
    assert total.lost == pytest.approx(0.01 + 0.05 + 0.05, rel=1e-12)


def test_a_law_is_never_cut_away() -> None:
    even = law([0.5, 0.5])
    assert even.trimmed(1.0) is even
    assert even.trimmed(1.0 + 1e-9) is even  # each of both is at most half of it
    assert even.trimmed(3.0) is even


@pytest.mark.parametrize("weights", [(0.25, 0.75), (0.5, 0.5), (1.0, 0.0)])
def test_mixtures(weights: tuple[float, float]) -> None:
    one, other = law(P, 2, error=0.1), law(Q, 4, error=0.2)
    made = mixture([one, other], weights)
    wanted = np.zeros(4 if weights[1] else 3)
    wanted[:3] += weights[0] * np.array(P)
    if weights[1]:
        wanted[2:4] += weights[1] * np.array(Q)
    assert made.start == 2
    assert made.masses == pytest.approx(wanted)
    assert made.pointwise
    assert made.error == pytest.approx(0.2 if weights[1] else 0.1, rel=1e-12)
    lossy = mixture([law(P, 2, error=0.1, lost=0.05), law([0.3, 0.2], 4, error=0.2)], weights)
    assert lossy.error == math.inf
    assert lossy.lost == pytest.approx(weights[0] * 0.15 + weights[1] * 0.1, rel=1e-9)


def test_a_mixture_has_mass_where_any_part_has() -> None:
    made = mixture([law([1.0, 0.0, 1e-300]), law([0.0, 1.0])], (0.5, 0.5))
    assert made.masses.tolist() == pytest.approx([0.5, 0.5, 5e-301], rel=1e-15, abs=0)
    assert made.pointwise
    hole = mixture([law([0.5, 0.0, 0.5]), law([1.0, 0.0])], (0.5, 0.5))
    assert hole.masses.tolist() == [0.75, 0.0, 0.25]
    assert hole.pointwise  # what is impossible under both
    tiny = mixture([law([1.0, 0.0, SMALLEST]), law([0.0, 1.0])], (0.5, 0.5))
    assert not tiny.pointwise
    for laws, weights in (([], []), ([law(P)], [0.5, 0.5]), ([law(P), law(Q)], [0.5, 0.6])):
        with pytest.raises(UsageError):
            mixture(laws, weights)


def test_up_is_above_and_near() -> None:
    assert up(0.0) == 0.0
    for x in (1e-320, 1e-10, 1.0, 1e10):
        assert x < up(x) <= x * (1 + 1e-14) + 1e-323


def test_a_mass_that_is_too_small_makes_all_of_them_a_total() -> None:
    """Each is off by its error, what is lost is lost, and of each one twice the least may be missing."""
    there = np.array([True, False, True])
    made = lattice_law.accurate(2, np.array([0.5, 0.0, SMALLEST / 2]), there, error=0.0, lost=0.0)
    assert made.error == math.inf
    assert made.lost == pytest.approx(3 * 2 * SMALLEST, rel=1e-12, abs=0)
    open_ = lattice_law.accurate(2, np.array([0.5, 0.25, 0.0]), there, error=0.1, lost=0.03)
    assert open_.lost == pytest.approx(0.1 * 0.75 + 0.03, rel=1e-12)
    kept = lattice_law.accurate(2, np.array([0.5, 0.0, SMALLEST]), there, error=0.1, lost=0.03)
    assert (kept.start, kept.error, kept.lost) == (2, 0.1, 0.03)


def test_laws_whose_masses_do_not_sum_to_one() -> None:
    """Of a window that lost a part: moments are those of what is there, and another law's distance counts with its mass."""
    part = law([0.2, 0.4, 0.1], start=-3)
    assert part.mean == pytest.approx(-3 + 0.6 / 0.7, rel=1e-14)
    assert part.variance == pytest.approx(0.8 / 0.7 - (0.6 / 0.7) ** 2, rel=1e-13)
    p, q = law([0.2, 0.4], error=math.inf, lost=0.05), law([0.1, 0.2], error=math.inf, lost=0.03)
    for exact in (True, False):
        made = p.convolve(q, exact=exact, direct=None if exact else 0)
        assert 0.05 + 0.03 * 0.6 <= made.lost <= (0.05 + 0.03 * 0.6) * (1 + 1e-9)


def test_probabilities_are_divided_by_their_sum() -> None:
    """Where it is off by rounding; and all values are whole numbers, wherever they begin."""
    off = 8e-10
    made = LatticeLaw.of({7: 0.25, 9: 0.5 + off, 12: 0.25})
    assert (made.start, made.end) == (7, 12)
    assert made.masses == pytest.approx(np.array([0.25, 0, 0.5 + off, 0, 0, 0.25]) / (1 + off), rel=1e-15, abs=0)
    for start in (-3, 0, 5):
        assert LatticeLaw.of({start: 1.0, start + 2: 1e-300}).pointwise
        assert not LatticeLaw.of({start: 1.0, start + 2: 1e-310}).pointwise
    mixed = mixture([law(P, 2), law(Q, 4)], (0.5, 0.5 + off))
    assert float(mixed.masses.sum()) == pytest.approx(1.0, rel=1e-15)
    for values in ((0, 0.5), (0.5, 0), (0.5, 1.5)):
        with pytest.raises(UsageError, match="whole numbers"):
            LatticeLaw.of(dict.fromkeys(values, 0.5))  # type: ignore[arg-type]


def test_errors_that_say_nothing_and_that_cannot_be() -> None:
    for error in (0.5, 0.6, 2.0):
        assert law([0.2, 0.4], error=error, lost=0.05).error == math.inf
        assert law([0.2, 0.4], error=error, lost=0.05).lost == pytest.approx(0.05 + 0.6 * error, rel=1e-12)
    assert law([0.2, 0.4], error=0.499).error == 0.499
    for error, lost in ((-0.1, 0.0), (math.nan, 0.0), (0.0, -0.1), (0.0, math.nan), (0.0, math.inf)):
        with pytest.raises(UsageError):
            law([0.2, 0.4], error=error, lost=lost)
    for masses in ([[0.5, 0.5]], [], [0.5, math.inf], [0.5, -0.1], [math.nan]):
        with pytest.raises(UsageError):
            law(masses)


# ------------------------------------------------------------------------------------------------------------- normal noise


def test_normal_noise_keeps_what_is_lost() -> None:
    made = GaussianMixture.of(law([0.2, 0.8], start=3, error=0.1, lost=0.05), 2.5)
    assert made.means.tolist() == [3.0, 4.0]
    assert made.weights.tolist() == [0.2, 0.8]
    assert made.variance == 2.5
    assert made.lost == pytest.approx(0.15, rel=1e-12)


@pytest.mark.parametrize(
    "changes",
    [{"weights": []}, {"weights": [0.5, math.nan]}, {"weights": [[0.5, 0.5]]}, {"weights": [0.5]}, {"weights": [-0.1, 1.1]},
     {"means": [1.0, 1.0]}, {"means": [2.0, 1.0]}, {"means": [1.0, math.inf]}, {"variance": 0.0}, {"variance": math.inf},
     {"variance": math.nan}, {"lost": -0.1}, {"lost": math.inf}],
)  # fmt: skip
def test_what_is_no_mixture(changes: dict[str, Any]) -> None:
    told: dict[str, Any] = {"weights": [0.5, 0.5], "means": [1.0, 2.0], "variance": 1.0, "lost": 0.0}
    assert GaussianMixture(**told).lost == 0.0
    with pytest.raises(UsageError):
        GaussianMixture(**(told | changes))
