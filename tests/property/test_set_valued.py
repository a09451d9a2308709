"""Set-valued secrets on random problems, against twins that share no code with them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attrpriv.numerics.calibration.set_valued import moving_variance, set_valued_lam
from attrpriv.numerics.divergences.mixture import anchor_of, set_law
from attrpriv.numerics.divergences.moving_sets import moving_upper
from attrpriv.numerics.divergences.set_valued import mixture_hockey_stick, pointwise_hockey_stick
from attrpriv.numerics.laws.intervals import Interval, IntervalUnion
from attrpriv.numerics.laws.law_box import Cell, MovingCases
from tests.property.set_twin import Parts, brute, exact, exact_density

Pair = tuple[IntervalUnion, IntervalUnion]


@st.composite
def pairs(draw: st.DrawFn, spread: float = 3.0, most: int = 5, least_width: float = 0.05) -> Pair:
    """Two disjoint sets: random ends, the intervals between them dealt out, some left out."""
    steps = draw(st.lists(st.floats(least_width, spread), min_size=1, max_size=most))
    ends = np.cumsum([draw(st.floats(-2 * spread, spread)), *steps]).tolist()
    cells = [Interval(a, b) for a, b in zip([-math.inf, *ends], [*ends, math.inf], strict=True)]
    labels = draw(st.lists(st.sampled_from([0, 1, 2]), min_size=len(cells), max_size=len(cells)))
    assume({0, 1} <= set(labels))
    sets = [tuple(cell for cell, label in zip(cells, labels, strict=True) if label == which) for which in (0, 1)]
    return IntervalUnion(sets[0]), IntervalUnion(sets[1])


def parts(union: IntervalUnion) -> Parts:
    return [(part.low, part.high) for part in union.parts]


@given(sets=pairs(), lam=st.floats(0.02, 5), epsilon=st.floats(0, 3))
@settings(max_examples=40)
def test_brute_force_agrees(sets: Pair, lam: float, epsilon: float) -> None:
    a, b = sets
    found = mixture_hockey_stick(a, b, lam, epsilon)
    truth = brute(parts(a), parts(b), lam, epsilon, count=3001)
    assert found.value == pytest.approx(truth, rel=1e-3, abs=1e-7)
    assert found.value <= found.upper <= found.value * (1 + 1e-7) + 1e-14
    assert found.upper >= truth * (1 - 1e-3) - 1e-9


@given(sets=pairs(spread=8.0, most=3), lam=st.floats(0.02, 2), epsilon=st.floats(0, 2))
@settings(max_examples=4)
def test_many_digits_agree(sets: Pair, lam: float, epsilon: float) -> None:
    a, b = sets
    found = mixture_hockey_stick(a, b, lam, epsilon)
    truth = exact(parts(a), parts(b), lam, epsilon, digits=20, panels=40)
    assert found.value == pytest.approx(float(truth), rel=1e-8, abs=1e-15)
    assert found.upper >= truth * (1 - 1e-15)


@given(sets=pairs(spread=40.0), lam=st.floats(-4, 1.5).map(lambda x: 10**x), share=st.floats(0, 1), own=st.booleans())
@settings(max_examples=300)
def test_the_density_is_within_its_error(sets: Pair, lam: float, share: float, own: bool) -> None:
    import mpmath

    union = sets[0]
    reference = anchor_of(union.parts[0]) if own else 0.0
    law = set_law(union, lam, reference)
    low, high = law.ranges()[-1]
    y = low + share * (high - low)
    value, error = law.log_density(np.array([y]))
    with mpmath.workdps(60):
        truth = mpmath.log(exact_density(parts(union), lam, mpmath.mpf(y) + mpmath.mpf(lam) * mpmath.mpf(reference)))
        assert abs(mpmath.mpf(float(value[0])) - truth) <= float(error[0])


@given(sets=pairs(), lam=st.floats(0.02, 3), factor=st.floats(1.01, 2), epsilon=st.floats(0, 2))
@settings(max_examples=40)
def test_more_noise_shows_less(sets: Pair, lam: float, factor: float, epsilon: float) -> None:
    less, more = (mixture_hockey_stick(*sets, x, epsilon) for x in (lam, lam * factor))
    assert less.value <= more.upper


@given(sets=pairs(spread=1.0), lam=st.floats(0.02, 3), epsilon=st.floats(0, 2))
@settings(max_examples=40)
def test_never_more_than_the_pointwise_rule(sets: Pair, lam: float, epsilon: float) -> None:
    a, b = sets
    assert mixture_hockey_stick(a, b, lam, epsilon).value <= pointwise_hockey_stick(a.gap(b), lam, epsilon)


@given(
    sets=pairs(least_width=0.3),
    lam=st.floats(0.05, 1),
    width=st.tuples(st.sampled_from([0.0, 0.01, 0.1]), st.sampled_from([0.0, 0.01, 0.1])),
    at=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    share=st.floats(0.2, 1),
)
@settings(max_examples=60)
def test_a_cell_s_bound_holds_for_its_members(
    sets: Pair, lam: float, width: tuple[float, float], at: tuple[float, float], share: float
) -> None:
    cell = Cell((0.0, width[0]), (1.0, 1.0 + width[1]))
    bound, _ = moving_upper(sets, cell, lam, 0.7)
    mean, sd = at[0] * width[0], 1.0 + at[1] * width[1]
    a, b = (case.standardised(mean, sd) for case in sets)
    for x, y in ((a, b), (b, a)):
        assert mixture_hockey_stick(x, y, share * lam, 0.7).value <= bound


@given(sets=pairs(least_width=0.3, most=3), epsilon=st.sampled_from([0.3, 1.0]), delta=st.sampled_from([1e-3, 1e-6]))
@settings(max_examples=6)
def test_the_calibrated_lam_is_private(sets: Pair, epsilon: float, delta: float) -> None:
    lam, pair = set_valued_lam(sets, epsilon, delta)
    shown = [brute(parts(x), parts(y), lam, epsilon) for x, y in (sets, sets[::-1])]
    assert max(shown) <= delta * (1 + 1e-3)
    if lam < 1e3:
        a, b = sets[pair[0]], sets[pair[1]]
        assert mixture_hockey_stick(a, b, lam * (1 + 1e-8), epsilon).upper > delta * (1 - 1e-12)


@pytest.mark.slow
@given(
    sets=pairs(least_width=0.3, most=3),
    width=st.tuples(st.floats(0, 1), st.floats(0, 0.1)),
    form=st.sampled_from(["slope", "correlation", "itself"]),
    strength=st.floats(0.1, 1),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25)
def test_noise_for_a_box_holds_for_random_members(
    sets: Pair, width: tuple[float, float], form: str, strength: float, seed: int
) -> None:
    box = Cell((-width[0], width[0]), (1.0, 1.0 + width[1]))
    secret = MovingCases(sets, box, form, strength, (1.0, 1.1))  # type: ignore[arg-type]
    noise = moving_variance(secret, 1.0, 1e-4)
    assert noise.attained <= noise.variance
    rng = np.random.default_rng(seed)
    for _ in range(10):
        mean, sd = rng.uniform(*box.means), rng.uniform(*box.sds)
        total = rng.uniform(1.0, 1.1) ** 2
        explained = {"slope": (strength * sd) ** 2, "correlation": strength**2 * total, "itself": sd**2}[form]
        residual = 0.0 if form == "itself" else total - explained
        if residual < 0 or residual + noise.variance <= 0:
            continue
        lam = math.sqrt(explained / (residual + noise.variance))
        a, b = (case.standardised(mean, sd) for case in sets)
        for x, y in ((a, b), (b, a)):
            assert brute(parts(x), parts(y), lam, 1.0) <= 1e-4 * (1 + 1e-3)
