"""Written laws against a slow twin: every vertex of every box in fractions, noise with 60 digits, distances by definition."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.calibration import stated_laws
from attrpriv.numerics.calibration.coupling import slices_loss
from attrpriv.numerics.calibration.direct import noise_law
from attrpriv.numerics.calibration.stated_laws import (
    least_stated_scale,
    secret_laws_of,
    stated_coupling,
    stated_delta,
    stated_distance,
    stated_kernel,
    stated_kernel_loss,
    stated_loss,
    stated_transport,
)
from attrpriv.numerics.laws.records import exactly
from attrpriv.numerics.laws.stated import StatedLaws, WholeLaw

Vertex = tuple[Fraction, ...]
Box = tuple[tuple[float, float], ...]


def law(*probabilities: float) -> Box:
    return tuple((p, p) for p in probabilities)


FLU = StatedLaws((0, 1, 2, 3, 4), (law(0.2, 0.225, 0.5, 0.075, 0), law(0, 0.075, 0.5, 0.225, 0.2)), 1)
BOXES = StatedLaws(
    (0, 1, 4),
    (
        ((0.5, 0.7), (0.2, 0.4), (0.05, 0.1)),
        ((0.1, 0.2), (0.3, 0.5), (0.3, 0.6)),
        ((0.2, 0.3), (0.3, 0.4), (0.3, 0.5)),
    ),
    1,
)


def drawn(seed: int, *, boxes: bool) -> StatedLaws:
    """Some laws on two to four values, a few steps apart; of boxes, some of whose intervals are numbers."""
    chance = random.Random(seed)
    steps = tuple(itertools.accumulate(chance.choice((1, 1, 2, 5)) for _ in range(chance.randint(2, 4))))
    laws = []
    for _ in range(chance.randint(2, 3)):
        weights = [chance.randint(0, 6) for _ in steps]
        weights[0] += not any(weights)
        shares = [Fraction(weight, sum(weights)) for weight in weights]
        slack = [Fraction(chance.randint(0, 3), 20) if boxes else Fraction(0) for _ in steps]
        pairs = [(max(Fraction(0), p - x), min(Fraction(1), p + x)) for p, x in zip(shares, slack, strict=True)]
        laws.append(tuple(pairs))
    return StatedLaws(steps, tuple(laws), chance.randint(1, len(laws) - 1))


LAWS = [FLU, BOXES, *(drawn(seed, boxes=True) for seed in range(25)), *(drawn(seed, boxes=False) for seed in range(12))]


def vertices(box: Any) -> list[Vertex]:
    """All laws of the box at which all but one probability are ends of their intervals."""
    found: set[Vertex] = set()
    ends = [(exactly(low), exactly(high)) for low, high in box]
    if all(low == high for low, high in ends):
        total = sum(low for low, _ in ends)
        return [tuple(low / total for low, _ in ends)]
    for free in range(len(ends)):
        for rest in itertools.product(*(pair for k, pair in enumerate(ends) if k != free)):
            last = 1 - sum(rest, Fraction(0))
            if ends[free][0] <= last <= ends[free][1]:
                found.add((*rest[:free], last, *rest[free:]))
    return sorted(found)


def pairs(laws: StatedLaws) -> list[tuple[Vertex, Vertex]]:
    every = [vertices(box) for box in laws.laws]
    places = [(a, b) for a, b in itertools.permutations(range(len(every)), 2) if abs(a - b) <= laws.apart]
    return [pair for a, b in places for pair in itertools.product(every[a], every[b])]


def twin_loss(laws: StatedLaws, scale: float) -> Any:
    """Over every output from well below the first value to well above the last, with 60 digits."""
    with mpmath.workdps(60):
        worst = mpmath.mpf(0)
        shown = range(laws.steps[0] - 3, laws.steps[-1] + 4)
        weight = {d: mpmath.exp(-mpmath.mpf(d) / mpmath.mpf(scale)) for d in range(laws.reach + 7)} if scale else {0: 1}
        for p, q in pairs(laws):
            for o in shown:
                kept = [weight.get(abs(o - f), 0) for f in laws.steps]
                top, bottom = (
                    sum(w * mpmath.mpf(x.numerator) / x.denominator for w, x in zip(kept, v, strict=True)) for v in (p, q)
                )
                if top > 0:
                    worst = max(worst, mpmath.log(top / bottom) if bottom > 0 else mpmath.inf)
        return worst


def twin_delta(laws: StatedLaws, noise: Any, scale: float, epsilon: float) -> float:
    """The largest over all vertices, each pair by itself."""
    added = noise_law(noise, scale)
    chance = {added.start + k: float(mass) for k, mass in enumerate(added.masses)}
    shown = range(laws.steps[0] + added.start, laws.steps[-1] + added.end + 1)
    worst = 0.0
    for p, q in pairs(laws):
        parts = [
            sum(
                (float(a) - math.exp(epsilon) * float(b)) * chance.get(o - f, 0.0)
                for f, a, b in zip(laws.steps, p, q, strict=True)
            )
            for o in shown
        ]
        worst = max(worst, math.fsum(x for x in parts if x > 0))
    return worst


def twin_distance(laws: StatedLaws) -> int:
    """The least w with P(F <= x) <= Q(F <= x + w) for all x: by trying each."""

    def below(v: Vertex, x: int) -> Fraction:
        return sum((p for f, p in zip(laws.steps, v, strict=True) if f <= x), Fraction(0))

    def fits(w: int) -> bool:
        return all(below(p, x) <= below(q, x + w) for p, q in pairs(laws) for x in range(laws.steps[0] - 1, laws.steps[-1] + 1))

    return next(w for w in range(laws.reach + 1) if fits(w))


@pytest.mark.parametrize("laws", LAWS)
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, 7.0])
def test_the_loss_is_that_of_the_worst_vertices(laws: StatedLaws, scale: float) -> None:
    truth, found = twin_loss(laws, scale), stated_loss(laws, scale)
    assert found >= truth
    # What a box is filled up by is a difference of sums, off by some units of 1: as much against the smallest chance.
    assert found == math.inf == truth or found - float(truth) <= 1e-9 + (0 if laws.exact else 1e-12 * math.exp(truth))


@pytest.mark.parametrize("laws", LAWS[:20])
@pytest.mark.parametrize("noise", ["none", "laplace", "gaussian"])
def test_delta_is_never_below_the_worst_vertices(laws: StatedLaws, noise: Any) -> None:
    for epsilon in (0.1, 0.8):
        truth, found = twin_delta(laws, noise, 1.3, epsilon), stated_delta(laws, noise, 1.3, epsilon)
        assert found >= truth - 1e-13
        assert found <= truth + 1e-9 or not laws.exact


@pytest.mark.parametrize("laws", LAWS)
def test_the_distance_is_that_of_the_worst_vertices(laws: StatedLaws) -> None:
    assert stated_distance(laws) == twin_distance(laws)


def test_the_flu_is_moved_by_two_as_published() -> None:
    """Song, Wang and Chaudhuri: W = 2, where group differential privacy needs 4."""
    assert stated_distance(FLU) == 2
    assert stated_distance(FLU, 0.2) == 1


@pytest.mark.parametrize("laws", LAWS)
def test_the_least_scale_keeps_the_promise_and_no_clearly_smaller_one_does(laws: StatedLaws) -> None:
    scale = least_stated_scale(laws, "laplace", 0.7, 0.0)
    assert twin_loss(laws, scale) <= 0.7
    assert not scale or twin_loss(laws, scale * 0.999) > 0.7


def test_delta_needs_no_more_noise_than_pure_epsilon() -> None:
    for noise in ("laplace", "gaussian"):
        scale = least_stated_scale(FLU, noise, 1.0, 1e-3)
        assert stated_delta(FLU, noise, scale, 1.0) <= 1e-3 < stated_delta(FLU, noise, scale * 0.99, 1.0)
    assert least_stated_scale(FLU, "laplace", 1.0, 1e-3) <= least_stated_scale(FLU, "laplace", 1.0, 0.0)


def test_values_far_apart_need_no_window() -> None:
    """Only the values themselves are looked at: 10^12 steps cost as much as 4."""
    near = StatedLaws((0, 1, 4), BOXES.laws, 2)
    far = StatedLaws((0, 10**12, 4 * 10**12), BOXES.laws, 2)
    assert stated_loss(far, 2e12) == pytest.approx(stated_loss(near, 2.0), abs=1e-9)
    with pytest.raises(UsageError, match="window"):
        stated_delta(far, "gaussian", 2e12, 0.1)
    with pytest.raises(UsageError, match="too far apart"):
        stated_delta(StatedLaws((0, 10**7, 4 * 10**7), BOXES.laws, 2), "gaussian", 2.0, 0.1)


def test_a_kernel_holds_for_the_laws_it_was_made_for_and_its_loss_for_every_box() -> None:
    kernel, error = stated_kernel(FLU, (0.5, 0.5), 1.0)
    assert 0.99 < stated_kernel_loss(kernel.weights, FLU) <= 1.0
    assert 0 < error.mean_absolute < 0.7  # the constant's
    wide = FLU.widened(0.2)
    ways = [[Fraction(kernel.weights[f][o], 2**62) for f in range(5)] for o in range(5)]
    truth = max(
        math.log(sum(map(Fraction.__mul__, p, column)) / sum(map(Fraction.__mul__, q, column)))
        for p, q in pairs(wide)
        for column in ways
    )
    assert truth <= stated_kernel_loss(kernel.weights, wide) <= truth + 1e-9


def test_intervals_have_no_kernel_and_no_coupling() -> None:
    for make in (stated_kernel, stated_coupling, stated_transport):
        with pytest.raises(RefusedError) as caught:
            make(BOXES, (0.3, 0.3, 0.4), 1.0)
        assert caught.value.cause is Cause.NUMBERS


@pytest.mark.parametrize("make", [stated_coupling, stated_transport])
def test_a_coupling_has_the_law_it_says(make: Any) -> None:
    """What is drawn, slice by slice in fractions, has the loss that is claimed."""
    three = StatedLaws((0, 1, 3), (law(0.6, 0.3, 0.1), law(0.3, 0.4, 0.3), law(0.1, 0.3, 0.6)), 2)
    found, error = make(three, (0.2, 0.3, 0.5), 0.5)
    assert slices_loss(found.sources, found.targets, secret_laws_of(three)) <= 0.5
    outputs = []
    for box, source, target in zip(three.laws, found.sources, found.targets, strict=True):
        chances, total = [Fraction(0)] * 4, sum(source)
        grid = dict(zip(three.steps, (exactly(p) for p, _ in box), strict=True))
        for f in range(4):
            low, high = Fraction(sum(source[:f]), total), Fraction(sum(source[: f + 1]), total)
            for o in range(4):
                inside = min(high, Fraction(sum(target[: o + 1]), total)) - max(low, Fraction(sum(target[:o]), total))
                if inside > 0:
                    chances[o] += grid.get(f, Fraction(0)) * inside / (high - low)
        assert sum(chances) == 1
        outputs.append(chances)
    losses = [math.log(p[o] / q[o]) for p, q in itertools.permutations(outputs, 2) for o in range(4) if p[o] > 0]
    assert 0.45 < max(losses) <= 0.5
    assert error.mean_absolute < 0.35


def test_sizes_out_of_reach_are_refused() -> None:
    long = StatedLaws((0, 1000), (law(0.5, 0.5), law(0.4, 0.6)), 1)
    with pytest.raises(RefusedError):
        stated_kernel(long, (0.5, 0.5), 1.0)
    with pytest.raises(RefusedError):
        stated_transport(StatedLaws((0, 10**6), long.laws, 1), (0.5, 0.5), 1.0)
    for scale in (-1.0, math.nan, math.inf):
        with pytest.raises(UsageError):
            stated_loss(long, scale)
    for epsilon, delta in ((0.0, 0.0), (math.nan, 0.0), (1.0, 1.0)):
        with pytest.raises(UsageError):
            least_stated_scale(long, "laplace", epsilon, delta)
    with pytest.raises(UsageError, match="delta"):
        least_stated_scale(long, "gaussian", 1.0, 0.0)
    with pytest.raises(UsageError, match="left aside"):
        stated_distance(BOXES, 0.1)
    with pytest.raises(UsageError, match="prior"):
        stated_kernel(FLU, (0.5, 0.6), 1.0)


# Mistakes that these tests must find.


def _all_low(room: Any, rest: float) -> Any:
    return room * 0


def test_a_box_that_is_not_filled_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stated_laws, "_filled", _all_low)
    assert stated_loss(BOXES, 1.0) < twin_loss(BOXES, 1.0)


def test_a_cumulated_box_that_forgets_its_room_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    own = WholeLaw.cumulated
    monkeypatch.setattr(WholeLaw, "cumulated", lambda self, *, most: own(self, most=False))
    assert any(stated_distance(one) != twin_distance(one) for one in LAWS if not one.exact)


def test_pairs_that_are_left_out_are_found() -> None:
    fewer = [StatedLaws(one.steps, one.laws, 1) for one in LAWS if one.apart > 1]
    every = [one for one in LAWS if one.apart > 1]
    assert any(stated_loss(a, 1.0) < twin_loss(b, 1.0) for a, b in zip(fewer, every, strict=True))


def test_a_kernel_loss_over_the_wrong_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = stated_kernel(FLU, (0.5, 0.5), 1.0)
    sharp = stated_kernel_loss(kernel.weights, FLU.widened(0.2))
    monkeypatch.setattr(WholeLaw, "most", WholeLaw.least)
    assert stated_kernel_loss(kernel.weights, FLU.widened(0.2)) < sharp - 0.01
