"""The exact law given that g lies in a set, piece by piece against many digits: tilted integrals, densities, ranges, shares."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.mixture import (
    SetLaw,
    _log_sum,
    _one_sided,
    _Part,
    anchor_of,
    gauss_legendre,
    log_probability_ratio,
    log_size,
    log_tilted,
    set_law,
)
from attrpriv.numerics.laws.intervals import Interval, IntervalUnion, parse_case
from attrpriv.numerics.rounding import ULP
from tests.property.set_twin import exact_density

INF = math.inf
DIGITS = 60


def normal(low: float | mpmath.mpf, high: float | mpmath.mpf) -> mpmath.mpf:
    """P(low < g < high), from the tail where nothing cancels."""
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    if low > 0:
        low, high = -high, -low
    return (mpmath.erfc(-high / mpmath.sqrt(2)) - mpmath.erfc(-low / mpmath.sqrt(2))) / 2


def tilted(beta: float, low: float, high: float) -> mpmath.mpf:
    """The integral of exp(beta x - x^2/2) over [low, high]."""
    centre = mpmath.mpf(beta)
    return mpmath.exp(centre**2 / 2) * mpmath.sqrt(2 * mpmath.pi) * normal(low - centre, high - centre)


# ------------------------------------------------------------------------------------------------------------- integrals


@pytest.mark.parametrize("width", [1e-9, 1e-3, 0.2, 0.6, 1.0, 1.3, 1.5, 1.7, 4.0, 30.0, INF])
def test_an_integral_from_one_end(width: float) -> None:
    """Of exp(-s t - t^2/2) over [0, w], where one function, a difference of two, or a rule gives it: to rounding each time."""
    steep = np.array([0.0, 0.05, 0.3, 0.6, 0.9, 1.2, 1.7, 2.6, 3.6, 5.0, 9.0, 60.0, 700.0, 4e3, 1e9])
    found = _one_sided(steep, width)
    assert found.shape == steep.shape
    with mpmath.workdps(DIGITS):
        for s, value in zip(steep.tolist(), found.tolist(), strict=True):
            # Where exp(s^2/2) leaves even these digits, nothing but the end counts: 1/s up to 1/s^3.
            truth = tilted(-s, 0.0, width) if s < 1e6 else -mpmath.expm1(-s * mpmath.mpf(width)) / s
            assert abs(value / truth - 1) < 2e-14, s


def test_a_rule_of_gauss_has_as_many_nodes_as_asked_for() -> None:
    nodes, weights = gauss_legendre(5)
    assert nodes.shape == weights.shape == (5,)
    for power in range(10):
        assert float(weights @ nodes**power) == pytest.approx(2 / (power + 1) if power % 2 == 0 else 0.0, abs=1e-14)


@pytest.mark.parametrize(
    ("low", "high"), [(-1.3, 2.1), (0.0, 1e-7), (-0.4, 0.0), (0.5, 0.9), (-3.0, -2.6), (-INF, 0.7), (-0.2, INF), (2.0, 30.0)]
)
def test_a_tilted_integral_in_many_digits(low: float, high: float) -> None:
    """Its largest exponent inside, at and beyond either end; its error is covered, and no more than some units."""
    beta = np.array([-300.0, -20.0, -3.1, -2.8, -1.3, -0.4, -0.1, 0.0, 0.2, 0.7, 0.8, 2.1, 2.4, 7.0, 29.5, 31.0, 400.0])
    value, error = log_tilted(beta, low, high)
    assert value.shape == error.shape == beta.shape
    with mpmath.workdps(2 * DIGITS):
        for b, v, e in zip(beta.tolist(), value.tolist(), error.tolist(), strict=True):
            truth = mpmath.log(tilted(b, low, high))
            assert abs(v - truth) <= e <= 1e-14 * (1 + abs(truth) + b * b)
            assert abs(v - truth) <= 1e-15 * (8 + 4 * abs(truth) + 4 * b * b)


# ---------------------------------------------------------------------------------------------------------------- parts


@pytest.mark.parametrize(
    ("part", "anchor"),
    [
        ((-2.0, 3.0), 0.0),
        ((1.5, 3.0), 1.5),
        ((-3.0, -0.5), -0.5),
        ((-INF, -4.0), -4.0),
        ((0.25, INF), 0.25),
        ((-INF, 2.0), 0.0),
    ],
)
def test_the_size_of_a_part_seen_from_its_nearest_point(part: tuple[float, float], anchor: float) -> None:
    one = Interval(*part)
    assert anchor_of(one) == anchor
    with mpmath.workdps(DIGITS):
        truth = mpmath.log(normal(*part) * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(mpmath.mpf(anchor) ** 2 / 2))
        assert abs(log_size(one) - truth) < 1e-14 * (1 + abs(truth))


def test_logarithms_are_summed_wherever_they_lie() -> None:
    assert _log_sum([0.3]) == 0.3
    assert _log_sum([1000.0, 1001.0, 999.5]) == pytest.approx(1001 + math.log(1 + math.exp(-1) + math.exp(-1.5)), rel=1e-15)
    assert _log_sum([-2000.0, -2003.0]) == pytest.approx(-2000 + math.log1p(math.exp(-3)), rel=1e-15)


UNIONS = [
    "< -0.3 or [0.4, 1.1) or [2, 2.5)",
    "[-1.7, -0.9) or [1.2, 4)",
    "[3.1, 3.4) or [-4.2, -3.3) or >= 5",
    "[-0.8, 0.5)",
    "[0.2, 0.2001)",
]


@pytest.mark.parametrize("union", UNIONS)
@pytest.mark.parametrize(("lam", "reference"), [(0.0, 0.0), (0.4, -0.3), (1.7, 2.2), (6.0, 0.45)])
def test_a_density_in_many_digits(union: str, lam: float, reference: float) -> None:
    """At many outputs, near each part and far from all of them; its error is covered, and claimed to be small."""
    case = parse_case(union)
    law = set_law(case, lam, reference)
    y = np.concatenate([np.linspace(-9, 9, 7), [lam * (anchor_of(part) - reference) + 0.2 for part in case.parts]])
    value, error = law.log_density(y)
    assert value.shape == error.shape == y.shape
    parts = [(part.low, part.high) for part in case.parts]
    with mpmath.workdps(DIGITS):
        for at, v, e in zip(y.tolist(), value.tolist(), error.tolist(), strict=True):
            truth = mpmath.log(exact_density(parts, lam, mpmath.mpf(at) + mpmath.mpf(lam) * reference))
            assert abs(v - truth) <= min(e, 1e-13 * (1 + abs(truth)))
            assert e <= 2e-12 * (1 + abs(truth))


def test_a_density_far_out_knows_how_far_off_it_is() -> None:
    """Ends at a million, outputs measured from another part: the rounding of offsets is all there is, and it is covered."""
    for union, lam, reference in (("[1e6, 1000001)", 3.0, 0.0), ("[1e6, 1000000.5) or [1000001, 1000002)", 0.7, 1.0e6)):
        case = parse_case(union)
        parts = [(part.low, part.high) for part in case.parts]
        law = set_law(case, lam, reference)
        middle = lam * (parts[0][0] - reference)
        y = middle + np.array([-7.3, -1.1, 0.3, 2.7, 9.1])
        value, error = law.log_density(y)
        with mpmath.workdps(40):
            for at, v, e in zip(y.tolist(), value.tolist(), error.tolist(), strict=True):
                truth = far_log_density(parts, lam, mpmath.mpf(at) + mpmath.mpf(lam) * mpmath.mpf(reference))
                assert abs(v - truth) <= e < 1e-5


def far_log_density(parts: list[tuple[float, float]], lam: float, w: mpmath.mpf) -> mpmath.mpf:
    """The same relative to e^(-a^2/2), a the first end: by the tail's continued fraction, which no power makes too small."""

    def tail(x: mpmath.mpf) -> mpmath.mpf:
        """P(g > x) e^(x^2/2) sqrt(2 pi), by Laplace's fraction; for x above 1000 forty terms are more than enough."""
        found = mpmath.mpf(0)
        for k in range(40, 0, -1):
            found = k / (x + found)
        return 1 / (x + found)

    def mass(low: mpmath.mpf, high: mpmath.mpf, base: mpmath.mpf) -> mpmath.mpf:
        return tail(low) * mpmath.exp((base - low) * (base + low) / 2) - tail(high) * mpmath.exp(
            (base - high) * (base + high) / 2
        )

    kappa = mpmath.sqrt(1 + mpmath.mpf(lam) ** 2)
    first = mpmath.mpf(parts[0][0])
    start = (first - lam * w / kappa**2) * kappa
    if start > 1000:
        given = sum(mass((x - lam * w / kappa**2) * kappa, (y - lam * w / kappa**2) * kappa, start) for x, y in parts)
        relative = -(start**2) / 2
    else:
        given = sum(normal((x - lam * w / kappa**2) * kappa, (y - lam * w / kappa**2) * kappa) for x, y in parts)
        given, relative = given * mpmath.sqrt(2 * mpmath.pi), mpmath.mpf(0)
    prior = sum(mass(mpmath.mpf(x), mpmath.mpf(y), first) for x, y in parts)
    exponent = relative + first**2 / 2 - w**2 / (2 * kappa**2)
    return exponent + mpmath.log(given / prior) - mpmath.log(mpmath.sqrt(2 * mpmath.pi) * kappa)


@pytest.mark.parametrize("union", UNIONS)
def test_shares_of_parts_add_up_to_one(union: str) -> None:
    case = parse_case(union)
    law = set_law(case, 0.7, 0.4)
    assert (law.lam, law.reference) == (0.7, 0.4)
    assert 0 < law.share_error < 1e-13
    with mpmath.workdps(DIGITS):
        whole = mpmath.fsum(normal(part.low, part.high) for part in case.parts)
        for part, held in zip(case.parts, law.parts, strict=True):
            assert (held.anchor + held.low, held.anchor + held.high) == (part.low, part.high)
            truth = mpmath.log(normal(part.low, part.high) / whole)
            assert abs(held.log_share - truth) <= law.share_error + 1e-15 * abs(truth)
            assert held.log_size == log_size(part)


def test_a_law_needs_numbers() -> None:
    case = parse_case("[0, 1)")
    assert set_law(case, 0.0, -3.0).lam == 0.0
    for lam, reference in ((-1e-300, 0.0), (INF, 0.0), (math.nan, 0.0), (1.0, INF), (1.0, -INF), (1.0, math.nan)):
        with pytest.raises(UsageError, match="lam"):
            set_law(case, lam, reference)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("[-1, 0.7)", "[-0.4, 0.2)"),
        ("[3, 4.5) or [-4, -3.5)", "[3.2, 3.9)"),
        ("< -1 or >= 2", "[2.5, 3)"),
        ("[1.1, 9)", "[-0.3, 0.4) or [8, 9)"),
        ("[-8, -7) or [6, 7)", "[-7.5, -7.1) or [6.1, 6.2)"),
    ],
)
def test_a_ratio_of_probabilities_in_many_digits(wide: str, narrow: str) -> None:
    sets = parse_case(wide), parse_case(narrow)
    with mpmath.workdps(DIGITS):
        masses = [mpmath.fsum(normal(part.low, part.high) for part in union.parts) for union in sets]
        truth = mpmath.log(masses[0] / masses[1])
        assert truth <= log_probability_ratio(*sets) <= truth + 1e-11


# --------------------------------------------------------------------------------------------------------------- ranges


def chernoff(part: tuple[float, float], lam: float, sign: int) -> mpmath.mpf:
    """Where the better of two bounds P(sign W > x) <= E e^(s W) e^(-s x) is e^-69, s^2 = 138 or 138/(1 + lam^2)."""
    with mpmath.workdps(DIGITS):
        found = []
        for scale in (1, 1 / mpmath.sqrt(1 + mpmath.mpf(lam) ** 2)):
            s = mpmath.sqrt(138) * scale
            move = sign * s * lam
            mgf = mpmath.exp(s**2 / 2 + move**2 / 2) * normal(part[0] - move, part[1] - move) / normal(*part)
            found.append((mpmath.log(mgf) + 69) / s)
        return min(found)


@pytest.mark.parametrize("part", [(-0.5, 1.25), (2.0, 2.5), (-INF, -1.0), (0.75, INF), (-8.0, -7.0)])
@pytest.mark.parametrize(("lam", "reference"), [(0.0, 0.0), (0.3, 1.5), (2.5, -0.7)])
def test_a_range_ends_where_e_to_the_minus_69_is_left(part: tuple[float, float], lam: float, reference: float) -> None:
    law = set_law(IntervalUnion((Interval(*part),)), lam, reference)
    ((low, high),) = law.ranges()
    for sign, end in ((-1, -low), (1, high)):
        truth = float(chernoff(part, lam, sign)) - sign * lam * reference
        assert truth < end < truth + 2e-6 * (1 + 2 * abs(truth) + 2 * lam * (abs(reference) + 8))


def piece(anchor: float, log_share: float = 0.0) -> _Part:
    """A very short part: its law is normal around lam anchor, and its range 11.75 to either side (69 = x^2/2)."""
    return _Part(anchor, 0.0, 1e-12, log_share, math.log(1e-12))


def test_ranges_that_touch_are_one() -> None:
    reach = math.sqrt(2 * 69.0)
    law = SetLaw((piece(-30.0), piece(0.0), piece(15.0), piece(60.0)), 1.0, 0.0, 0.0)
    found = law.ranges()
    assert [end for span in found for end in span] == pytest.approx(
        [-30 - reach, -30 + reach, -reach, 15 + reach, 60 - reach, 60 + reach], abs=1e-3
    )
    assert all(low < high for low, high in found)
    assert all(first[1] < second[0] for first, second in itertools.pairwise(found))


def test_a_range_within_another_one_takes_nothing_from_it() -> None:
    long = _Part(-40.0, 0.0, 80.0, 0.0, log_size(Interval(0.0, 80.0)))
    spans = SetLaw((long, piece(0.0)), 1.0, 0.0, 0.0).ranges()
    assert len(spans) == 1
    alone = SetLaw((long,), 1.0, 0.0, 0.0).ranges()
    assert spans[0][1] >= alone[0][1]
    assert spans[0][0] == alone[0][0]


def test_only_a_part_with_next_to_no_share_has_no_range() -> None:
    """e^-79 of the law may be left out, which is a thousandth of what ranges leave out anyway."""
    for share, count in ((-78.9, 2), (-79.1, 1)):
        law = SetLaw((piece(0.0), piece(100.0, share)), 1.0, 0.0, 0.0)
        assert len(law.ranges()) == count


def test_what_parts_are_off_by_counts_as_much_as_they_do() -> None:
    """Of two parts the second, far away, has next to nothing of the density here: its error, 1e-9, has no more."""
    one = SetLaw((piece(0.0),), 1.0, 0.0, 0.0).log_density(np.array([0.5]))[1]
    both = SetLaw((piece(0.0), piece(1e4, -50.0)), 1.0, 0.0, 0.0).log_density(np.array([0.5]))[1]
    assert both == pytest.approx(one, rel=1e-6)
    shared = SetLaw((piece(0.0),), 1.0, 0.0, 1e-6).log_density(np.array([0.5]))[1]
    assert shared == pytest.approx(one + 8e-6, rel=1e-9)
    assert one[0] > 8 * 4 * ULP


def test_what_an_offset_is_off_by_is_in_the_error() -> None:
    """An output at 5 beyond a part at 0.7 million: the product is rounded, and e^(-offset^2/2) with it."""
    law = SetLaw((piece(1e6),), 0.7, 0.0, 0.0)
    error = law.log_density(np.array([0.7e6 + 5]))[1]
    assert error[0] >= 5 * 0.7e6 * ULP
    double = SetLaw((piece(1e6), piece(1e6)), 0.7, 0.0, 0.0).log_density(np.array([0.7e6 + 5]))[1]
    assert double[0] == pytest.approx(error[0], rel=1e-3)


def test_a_share_is_as_good_as_what_it_is_the_difference_of() -> None:
    """The share e^-25 of a part: its logarithm is right to some units of 25, and no part's error is left out."""
    for union in ("[0, 1) or [7, 8)", "[7, 8) or [-1, 0)"):
        law = set_law(parse_case(union), 0.3, 0.0)
        assert law.share_error >= 8 * ULP * max(-part.log_share for part in law.parts)
        assert min(part.log_share for part in law.parts) < -25


def test_shares_are_seen_from_the_nearest_part() -> None:
    """Seen from a part at a million, e^-(5e11), the others' would have no digits left."""
    wide, narrow = parse_case("[0, 1) or >= 1e6"), parse_case("[0, 0.5) or >= 1e6")
    assert set_law(wide, 0.3, 0.0).parts[0].log_share == pytest.approx(0.0, abs=1e-15)
    assert set_law(wide, 0.3, 0.0).share_error < 1e-12
    with mpmath.workdps(DIGITS):
        truth = mpmath.log(normal(0, 1) / normal(0, 0.5))
        assert truth <= log_probability_ratio(wide, narrow) <= truth + 1e-12
