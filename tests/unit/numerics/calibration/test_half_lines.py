"""One half-line instead of a convolution: never below the truth, in 40 digits and by adding up everything; close to it; and a
mutant that shows that the comparison can fail."""

from __future__ import annotations

import math
import random

import mpmath
import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration import half_lines
from attrpriv.numerics.calibration.direct import direct_delta, least_direct_scale
from attrpriv.numerics.calibration.half_lines import TAIL, WholeNoise, half_line_delta
from attrpriv.numerics.calibration.pair_families import Events, noisy_delta
from attrpriv.numerics.laws.lattice import binomial_sum
from attrpriv.numerics.laws.lattice_law import DIRECT
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from attrpriv.numerics.search import least_place


def exact_noise(noise: WholeNoise, far: int) -> dict[int, mpmath.mpf]:
    scale = mpmath.mpf(noise.scale)
    if noise.kind == "laplace":
        u = mpmath.exp(-1 / scale)
        return {k: (1 - u) / (1 + u) * u ** abs(k) for k in range(-far, far + 1)}
    weights = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * scale**2)) for k in range(-far, far + 1)}
    total = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * scale**2)))
    return {k: weight / total for k, weight in weights.items()}


def exact_sum(a: int, p1: float, b: int, p0: float) -> list[mpmath.mpf]:
    law = [mpmath.mpf(1)]
    for p in [mpmath.mpf(p1)] * a + [mpmath.mpf(p0)] * b:
        law = [(1 - p) * x + p * y for x, y in zip([*law, 0], [0, *law], strict=True)]
    return law


def truth(laws: list[list[mpmath.mpf]], noise: dict[int, mpmath.mpf], epsilon: float) -> float:
    """H both ways, output by output."""
    far = max(noise)
    outputs: list[dict[int, mpmath.mpf]] = []
    for law in laws:
        outputs.append({})
        for o in range(-far, far + len(law)):
            outputs[-1][o] = sum(p * noise.get(o - f, mpmath.mpf(0)) for f, p in enumerate(law))
    grown = mpmath.exp(epsilon)
    both = (sum(max(mpmath.mpf(0), p[o] - grown * q[o]) for o in p) for p, q in (outputs, outputs[::-1]))
    return float(max(both))


def random_case(generator: random.Random) -> tuple[tuple[int, float, int, float], int, WholeNoise, float]:
    p0 = generator.uniform(0.05, 0.6)
    p1 = generator.uniform(p0 + 0.05, 0.95)
    others, apart = generator.randint(0, 8), generator.randint(1, 6)
    noise = WholeNoise("laplace", generator.choice([0.5, 1.0, 2.5]))
    return (generator.randint(0, 5), p1, others, p0), apart, noise, generator.choice([0.0, 0.2, 0.7, 1.5])


def bound_and_truth(generator: random.Random) -> tuple[float | None, float]:
    (a, p1, b, p0), apart, noise, epsilon = random_case(generator)
    larger, smaller = (binomial_sum(x, p1, y, p0, tail=TAIL) for x, y in ((a + apart, b), (a, b + apart)))
    exact = [exact_sum(x, p1, y, p0) for x, y in ((a + apart, b), (a, b + apart))]
    added = exact_noise(noise, math.ceil(80 * noise.scale))
    return half_line_delta(larger, smaller, noise, epsilon), truth(exact, added, epsilon)


def test_a_half_line_is_never_below_the_truth_and_close_to_it() -> None:
    generator = random.Random(11)
    with mpmath.workdps(40):
        found = [bound_and_truth(generator) for _ in range(40)]
    known = [(bound, exact) for bound, exact in found if bound is not None]
    assert len(known) >= 30
    assert all(exact <= bound <= exact * (1 + 1e-9) + 1e-12 for bound, exact in known)


@pytest.mark.parametrize("steps", [1, 4])
def test_any_place_below_will_do(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last term makes up for a place that is too low; without it the bound would be too small."""
    found = half_lines._Pair.crossing
    monkeypatch.setattr(half_lines._Pair, "crossing", lambda pair, low: max(low, found(pair, low) - steps))
    with mpmath.workdps(40):
        kept = [bound_and_truth(generator) for generator in map(random.Random, range(16))]
        monkeypatch.setattr(half_lines._Pair, "_beyond", lambda pair, s: pair._tails(s)[1][1])
        mutant = [bound_and_truth(generator) for generator in map(random.Random, range(16))]
    assert all(bound is None or bound >= exact for bound, exact in kept)
    assert any(bound is not None and bound < exact for bound, exact in mutant)


@pytest.mark.parametrize(
    ("noise", "places"),
    [
        (WholeNoise("gaussian", 1000.0), [-9000, -1, 0, 1, 2, 500, 1000, 4321, 9000]),
        (WholeNoise("gaussian", 12345.678), [-100_000, 0, 1, 7, 12345, 60_000, 110_000]),
        (WholeNoise("laplace", 0.3), [-20, -1, 0, 1, 2, 30]),
        (WholeNoise("laplace", 54321.0), [-(10**6), 0, 1, 54321, 2 * 10**6]),
    ],
)
def test_closed_forms_are_within_their_error(noise: WholeNoise, places: list[int]) -> None:
    at = np.array(places, dtype=np.float64)
    masses, above = noise.masses(at), noise.above(at)
    with mpmath.workdps(40):
        scale = mpmath.mpf(noise.scale)
        for k, mass, tail in zip(places, masses.tolist(), above.tolist(), strict=True):
            one, rest = _exact_tail(noise, scale, k)
            error = noise.error(abs(k) + 1)
            assert abs(mpmath.mpf(mass) / one - 1) <= error
            assert abs(mpmath.mpf(tail) / rest - 1) <= error
            assert mass <= noise.most


def _exact_tail(noise: WholeNoise, scale: mpmath.mpf, k: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """P(Z = k) and P(Z >= k); of Gaussian noise by adding up."""
    if k <= 0:
        return _exact_mass(noise, scale, k), 1 - _exact_tail(noise, scale, 1 - k)[1]
    if noise.kind == "laplace":
        u = mpmath.exp(-1 / scale)
        return _exact_mass(noise, scale, k), u**k / (1 + u)
    # Adding up double masses in exact arithmetic is within a share 1e-15 of the truth, tested against 40 digits below.
    x = np.arange(k, k + int(12 * noise.scale), dtype=np.longdouble)
    weights = np.exp(-(x * x) / (2 * np.longdouble(noise.scale) ** 2))
    total = mpmath.mpf(math.fsum(weights.astype(np.float64).tolist()))
    return _exact_mass(noise, scale, k), total / (scale * mpmath.sqrt(2 * mpmath.pi))


def _exact_mass(noise: WholeNoise, scale: mpmath.mpf, k: int) -> mpmath.mpf:
    if noise.kind == "laplace":
        u = mpmath.exp(-1 / scale)
        return (1 - u) / (1 + u) * u ** abs(k)
    return mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * scale**2)) / (scale * mpmath.sqrt(2 * mpmath.pi))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(("p1", "p0"), [(0.42, 0.18), (0.18, 0.42)])
def test_both_ways_agree_for_many_rows(kind: str, p1: float, p0: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand rows: by half-lines, and by convolutions that are made to be used."""
    records, pairs = RecordLaws.event(p1, p0), CountPairs(100_000, 20_000, 40_000, 15_000)
    scale = 5000.0 if kind == "laplace" else 12_000.0
    (events,) = [Events(p1, p0, pairs.n, pairs.apart, (20_000, 25_000), 0)]
    noise = WholeNoise("laplace" if kind == "laplace" else "gaussian", scale)
    one, other = events.laws((20_000, 25_000))
    assert len(one.masses) * 2 * noise.reach > DIRECT
    by_lines = direct_delta(records, pairs, noise.kind, scale, 0.5)
    by_laws = noisy_delta((one, other), noise.lattice(), 0.5)
    assert events.bound((20_000, 25_000), noise, 0.5) == pytest.approx(by_laws, rel=1e-6, abs=1e-10)
    assert by_lines.upper <= by_laws * (1 + 1e-6) + 1e-10


def test_the_least_scale_for_a_million_rows_by_the_laws_themselves() -> None:
    """What the search by half-lines found holds by convolution, and three thousandths less does not."""
    records, pairs = RecordLaws.event(0.4, 0.2), CountPairs(1_000_000, 300_000, 301_000, 1000)
    scale = least_direct_scale([records], pairs, "laplace", 1.0, 1e-6)
    laws = Events(0.4, 0.2, pairs.n, pairs.apart, (300_000, 300_000), 0).laws((300_000, 300_000))
    assert noisy_delta(laws, WholeNoise("laplace", scale).lattice(), 1.0) <= 1e-6 * (1 + 1e-4)
    assert noisy_delta(laws, WholeNoise("laplace", scale * 0.997).lattice(), 1.0) > 1e-6


def test_the_least_place_is_found_with_few_looks() -> None:
    generator = random.Random(3)
    for _ in range(200):
        power, at, step = generator.uniform(0.2, 4), generator.randint(-(10**9), 10**9), 1 << 26
        looked: list[int] = []

        def reached(place: int, at: int = at, power: float = power, looked: list[int] = looked) -> float:
            looked.append(place)
            return 1e-6 * 2.0 ** (power * (at - place) / 2**26) if abs(at - place) < 2**30 else float(place < at)

        assert least_place(reached, 1e-6, at + generator.randint(-3 * step, 3 * step), step) == at
        assert {at, at - 1} <= set(looked)
        assert len(looked) <= 24


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="scale: must be positive and finite"):
        WholeNoise("laplace", 0.0)
    with pytest.raises(UsageError, match="no threshold"):
        least_place(lambda _: 0.0, 1e-6, 0, 1)


def test_laws_that_are_hundreds_of_scales_apart() -> None:
    """A thousand scales against epsilon 300: the ratio of masses, over e^300, is no float above 0."""
    laws = binomial_sum(1000, 1.0, 0, 0.0), binomial_sum(0, 1.0, 1000, 0.0)
    assert half_line_delta(*laws, WholeNoise("laplace", 1.0), 300.0) == pytest.approx(1.0)
