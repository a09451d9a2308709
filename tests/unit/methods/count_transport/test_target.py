"""A transported count: the law that is really drawn, in fractions, against the promise; and what a certificate notices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2

from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.count_transport.target import (
    TOTAL,
    Bounds,
    CountTransport,
    Reference,
    Row,
    require_row,
    transport_bounds,
    transport_holds,
    transport_row,
)
from attrpriv.noise import coupled_draw
from attrpriv.numerics.calibration.coupling import overlaps
from attrpriv.numerics.laws.fixed_window import BITS, window_law
from attrpriv.numerics.laws.records import RecordLaws
from tests.unit.numerics.laws.test_fixed_window import VISITS, exact_law

EVENT = RecordLaws.event(0.4, 0.6)
LOGS = tuple(-((k - 3.2) ** 2) / 4 for k in range(7))
CASES = {
    "the law of a count": CountTransport(EVENT, 6, Reference(count=3), 1.0, 0.5),
    "with delta": CountTransport(EVENT, 6, Reference(count=3), 0.4, 0.2, 0.01),
    "any reference": CountTransport(EVENT, 6, Reference(logs=LOGS), 1.0, 0.4),
    "knots": CountTransport(EVENT, 6, Reference(step=3, logs=(-2.0, 0.0, -2.0)), 0.5, 0.2),
    "a narrow window": CountTransport(EVENT, 6, Reference(start=2, logs=(-1.0, 0.0, -1.0)), 0.5, 0.2),
    "several values": CountTransport(VISITS, 3, Reference(logs=tuple(-0.1 * k for k in range(10))), 0.7, 0.3),
    "knots, cut": CountTransport(EVENT, 6, Reference(step=4, logs=(-2.0, 0.0, -2.0), size=7), 0.5, 0.2),
    "rare events": CountTransport(RecordLaws.event(1e-9, 1e-7), 5, Reference(count=2), 0.3, 0.1),
    "the sensitive column itself": CountTransport(RecordLaws.event(1.0, 0.0), 6, Reference(logs=LOGS), 2.0, 1.0),
    "fractions": CountTransport(RecordLaws.event(Fraction(5, 13), Fraction(8, 13)), 6, Reference(count=3), 1.0, 0.5),
    "nearly certain": CountTransport(
        RecordLaws.event(1 - Fraction(1, 10**20), Fraction(1, 3)), 5, Reference(count=2), 0.3, 0.1
    ),
    "a large promise": CountTransport(EVENT, 6, Reference(logs=LOGS), 50.0, 10.0),
}


def drawn(transport: CountTransport, a: int, row: Row) -> list[Fraction]:
    """Q_a: every value of F with its true probability, in the cell it belongs to, one part at a time."""
    truth = exact_law(transport.records, transport.n, a)
    output = [Fraction(0)] * len(row.targets)
    parts: dict[int, list[tuple[int, Fraction]]] = {}
    for cell, o, part, whole in overlaps(row.sources, row.targets):
        parts.setdefault(cell, []).append((o, Fraction(part, whole)))
    for f, chance in enumerate(truth):
        for o, share in parts[row.cell(f)]:
            output[o] += chance * share
    return output


def exp_up(epsilon: float) -> Fraction:
    """e^epsilon, rounded up by less than 1e-30."""
    x, term, total, k = Fraction(epsilon), Fraction(1), Fraction(1), 1
    while term > Fraction(1, 10**40) or k < 3 * x:
        term = term * x / k
        total, k = total + term, k + 1
    return total + Fraction(1, 10**30)


def reached(laws: Sequence[Sequence[Fraction]], epsilon: float) -> Fraction:
    """The largest hockey-stick divergence of any two."""
    growth = exp_up(epsilon)
    return max(
        sum((max(Fraction(0), x - growth * y) for x, y in zip(p, q, strict=True)), Fraction(0)) for p in laws for q in laws
    )


@pytest.mark.parametrize("name", CASES)
def test_what_is_drawn_keeps_the_promise(name: str) -> None:
    transport = CASES[name]
    rows = [transport_row(transport, a) for a in range(transport.n + 1)]
    laws = [drawn(transport, a, row) for a, row in enumerate(rows)]
    assert all(sum(law) == 1 for law in laws)
    assert reached(laws, transport.epsilon) <= Fraction(transport.delta)
    assert transport_holds(transport, transport.epsilon)
    assert transport_bounds(transport).delta <= transport.delta


@pytest.mark.parametrize("name", ["the law of a count", "any reference", "several values"])
def test_the_promise_is_used_up(name: str) -> None:
    """A tenth less would not hold, so that the test above can fail; and the certificate does not claim it."""
    transport = CASES[name]
    laws = [drawn(transport, a, transport_row(transport, a)) for a in range(transport.n + 1)]
    assert reached(laws, transport.epsilon * 0.9) > 0
    assert not transport_holds(transport, transport.epsilon * 0.9)


def test_delta_is_used() -> None:
    transport = CASES["with delta"]
    laws = [drawn(transport, a, transport_row(transport, a)) for a in range(7)]
    assert Fraction(transport.delta) / 2 < reached(laws, transport.epsilon) <= Fraction(transport.delta)


def test_planted_rows_break_the_promise_and_are_noticed() -> None:
    """No move at all; another count's slices: both lose more, and neither passes the check."""
    transport = CASES["the law of a count"]
    bounds = transport_bounds(transport)
    rows = [transport_row(transport, a) for a in range(7)]
    laws = [drawn(transport, a, row) for a, row in enumerate(rows)]
    still = replace(rows[0], targets=rows[0].sources)
    wrong = replace(rows[6], targets=rows[0].targets)
    for planted in (still, wrong):
        assert reached([*laws[1:], drawn(transport, 0, planted)], 1.0) > Fraction(1, 1000)
        law = window_law(EVENT, 6, 0)
        with pytest.raises(CertificateError, match="not what the certificate counted on"):
            require_row(planted, bounds, law.masses, law.deficit)


def accepted(row: Row, bounds: Bounds, entries: Sequence[int], deficit: int = 0) -> bool:
    try:
        require_row(row, bounds, entries, deficit)
    except CertificateError:
        return False
    return True


def test_masses_may_be_off_by_a_share_of_two_to_the_minus_40_and_no_more() -> None:
    """Just inside and just outside, in exact fractions, with what a law may have lost."""
    transport = CASES["the law of a count"]
    row, bounds = transport_row(transport, 2), transport_bounds(transport)
    pieces = [Fraction(piece, TOTAL) * 2**BITS for piece in row.sources]
    share = Fraction(1, 2**40)
    low = [math.ceil(piece * (1 - share)) for piece in pieces]
    high = [math.floor(piece * (1 + share)) for piece in pieces]
    assert accepted(row, bounds, low)
    assert accepted(row, bounds, high)
    assert accepted(row, bounds, [one - 1 for one in high], deficit=1)
    for k in range(len(pieces)):
        assert not accepted(row, bounds, [one - (j == k) for j, one in enumerate(low)])
        assert not accepted(row, bounds, [one + (j == k) for j, one in enumerate(high)])
        assert not accepted(row, bounds, [one - (j != k) for j, one in enumerate(high)], deficit=1)


def test_a_row_within_its_bounds_is_accepted_and_one_step_beyond_is_not() -> None:
    transport = CASES["the law of a count"]
    row, law = transport_row(transport, 2), window_law(EVENT, 6, 2)
    least, most = row.targets, row.targets
    exactly = Bounds(row.start, least, most, 0)
    assert accepted(row, exactly, law.masses, law.deficit)
    assert not accepted(row, replace(exactly, low=(least[0] + 1, *least[1:])), law.masses, law.deficit)
    less = replace(exactly, high=(most[0] - 5, *most[1:]))
    assert not accepted(row, replace(less, excess=4), law.masses, law.deficit)
    assert accepted(row, replace(less, excess=5), law.masses, law.deficit)
    heavier = replace(row, targets=(row.targets[0] + 1, *row.targets[1:]))
    assert not accepted(heavier, replace(exactly, high=tuple(x + 1 for x in most)), law.masses, law.deficit)


def test_bounds_are_public_and_checked() -> None:
    bounds = transport_bounds(CASES["any reference"])
    assert bounds.holds(1.0)
    wider = Bounds(bounds.start, bounds.low, (bounds.high[0] + bounds.low[0] // 1000, *bounds.high[1:]), 0)
    assert not wider.holds(1.0)
    assert not Bounds(bounds.start, (0, *bounds.low[1:]), bounds.high, 0).holds(1.0)
    assert bounds.loss == pytest.approx(1.0)


def test_a_mass_of_one_unit_is_one_and_none_is_none() -> None:
    """Up to the shares that a slice may be off: e^epsilon units may stand against one, and nothing may against none."""
    for most, holds in ((1, True), (2, True), (3, False)):
        assert Bounds(0, (1,), (most,), 0).holds(1.0) is holds
    assert not Bounds(0, (0,), (0,), 0).holds(1.0)
    assert not Bounds(0, (1, 0), (1, 1), 0).holds(400.0)


def test_the_pure_loss_counts_what_is_above_the_bounds() -> None:
    """All of the excess may be on one output, of a law that two neighbours do not share."""
    for low, high, excess in (((10, 10), (12, 11), 0), ((10, 10), (12, 11), 8), ((5, 20), (6, 25), 30)):
        worst = max(math.log((y + excess) / x) for x, y in zip(low, high, strict=True))
        assert worst < Bounds(0, low, high, excess).loss == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("n", [300, 10_000])
def test_many_rows_by_an_independent_law(n: int) -> None:
    """Slices against scipy's law; targets within the bounds; everything moved as little as the slope trick moves it."""
    transport = CountTransport(EVENT, n, Reference(count=n // 2), 1.0, 0.5)
    bounds = transport_bounds(transport)
    for a in (0, n // 2 + int(math.sqrt(n)), n):
        row = transport_row(transport, a)
        member, rest = (np.array(binom.pmf(range(k + 1), k, p)) for k, p in ((a, 0.4), (n - a, 0.6)))
        law = np.convolve(member, rest)
        places = [row.cell(f) for f in range(n + 1)]
        masses = np.bincount(places, weights=law, minlength=len(row.sources))
        assert [x / TOTAL for x in row.sources] == pytest.approx(masses.tolist(), rel=1e-6, abs=1e-15)
        assert all(x <= y <= z for x, y, z in zip(bounds.low, row.targets, bounds.high, strict=True))


def test_a_million_rows() -> None:
    transport = CountTransport(EVENT, 1_000_000, Reference(count=500_000), 1.0, 0.5)
    assert transport_holds(transport, 1.0)
    row = transport_row(transport, 500_700)
    assert len(row.targets) < 20_000
    assert row.cell(0) == 0
    assert row.cell(1_000_000) == len(row.sources) - 1


def test_draws_have_the_law_that_was_certified() -> None:
    """20,000 draws of (F, output): chi-square at 1e-7; of the mutant that returns F it is far above."""
    transport, a = CASES["the law of a count"], 0
    row = transport_row(transport, a)
    generator = np.random.default_rng(7)
    counts = generator.binomial(6, 0.6, 20_000)
    found = np.bincount([coupled_draw(row.sources, row.targets, row.cell(int(f))) for f in counts], minlength=7)
    expected = np.array([x / TOTAL for x in row.targets]) * 20_000
    limit = float(chi2.isf(1e-7, 6))
    assert float(((found - expected) ** 2 / expected).sum()) < limit
    mutant = np.bincount(counts, minlength=7)
    assert float(((mutant - expected) ** 2 / expected).sum()) > 2 * limit


def test_what_is_refused() -> None:
    with pytest.raises(RefusedError, match="exact probabilities"):
        CountTransport(RecordLaws.event((0.4, 0.41), 0.6), 6, Reference(count=3), 1.0, 0.5)
    with pytest.raises(RefusedError, match="1,000,000 rows"):
        CountTransport(EVENT, 1_000_001, Reference(count=3), 1.0, 0.5)
    with pytest.raises(UsageError, match="delta above 0"):
        CountTransport(EVENT, 6, Reference(logs=LOGS), 1.0, 0.5, 1e-6)
    with pytest.raises(UsageError, match="delta above 0"):
        CountTransport(VISITS, 6, Reference(count=3), 1.0, 0.5, 1e-6)
    for first in (0.0, 1.0, math.nan):
        with pytest.raises(UsageError, match="first"):
            CountTransport(EVENT, 6, Reference(count=3), 1.0, first)
    wrong: list[dict[str, Any]] = [{}, {"count": 3, "logs": (0.0,)}, {"logs": (0.0, math.nan)}, {"logs": (0.0,), "size": 2}]
    for reference in (*wrong, {"logs": (0.0, 1.0), "step": 0}):
        with pytest.raises(UsageError, match=r"^reference: "):
            Reference(**reference)
    with pytest.raises(UsageError, match=r"^reference: "):
        CountTransport(EVENT, 6, Reference(count=7), 1.0, 0.5)
    with pytest.raises(RefusedError, match="outputs"):
        Reference(logs=(0.0, 0.0), step=2**19)
