"""Transport under intervals: every law of the box, and the trap of certifying a mechanism that reads the secret at a corner."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from attrpriv.errors import RefusedError
from attrpriv.methods.count_transport.hybrid import hybrid_loss, least_hybrid_scale, require_feasible
from attrpriv.methods.count_transport.reference import tuned_transport
from attrpriv.methods.count_transport.target import CountTransport, transport_row
from attrpriv.numerics.calibration.coupling import overlaps
from attrpriv.numerics.laws.count_cases import CountPrior
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from tests.unit.numerics.laws.test_fixed_window import VISITS, exact_law

CENTRE = RecordLaws.event(0.4, 0.6)


def outputs(transport: CountTransport, p1: float, p0: float, a: int, scale: float) -> list[Fraction]:
    """The law of the output, up to a factor, at one law of the rows, in fractions; powers of t are rounded at 1e-60."""
    n = transport.n
    row = transport_row(transport, a)
    moved = [Fraction(0)] * (n + 1)
    truth = exact_law(RecordLaws.event(p1, p0), n, a)
    for cell, o, part, whole in overlaps(row.sources, row.targets):
        moved[o] += sum(truth[f] for f in range(n + 1) if row.cell(f) == cell) * Fraction(part, whole)
    if not scale:
        return moved
    t = Fraction(math.exp(-1 / scale))
    return [sum((moved[o] * t ** abs(o - z) for o in range(n + 1)), Fraction(0)) for z in range(-3, n + 4)]


def loss_at(transport: CountTransport, p1: float, p0: float, pairs: CountPairs, scale: float) -> float:
    laws = {a: outputs(transport, p1, p0, a, scale) for a in range(pairs.low, pairs.high + 1)}
    near = [(a, b) for a, b in itertools.product(laws, laws) if abs(a - b) <= pairs.apart]
    return max(math.log(x / y) for a, b in near for x, y in zip(laws[a], laws[b], strict=True))


def made(n: int, epsilon: float) -> CountTransport:
    return tuned_transport(CENTRE, CountPrior(n, 0, n, share=0.5), epsilon)[0]


@pytest.mark.parametrize("pairs", [CountPairs.all_of(5), CountPairs(5, 1, 4, 1)])
def test_every_law_of_the_box_is_covered(pairs: CountPairs) -> None:
    box, transport = RecordLaws.event((0.37, 0.43), (0.58, 0.62)), made(5, 0.2)
    scale = least_hybrid_scale(transport, box, pairs, 0.6)
    assert scale > 0
    bound = hybrid_loss(transport, box, pairs, scale)
    assert 0.6 * (1 - 1e-4) < bound <= 0.6
    choose = random.Random(1)
    corners = itertools.product((0.37, 0.43), (0.58, 0.62))
    inside = [(choose.uniform(0.37, 0.43), choose.uniform(0.58, 0.62)) for _ in range(6)]
    assert all(loss_at(transport, *p, pairs, scale) <= bound for p in (*corners, *inside))
    # A tenth less is not covered; and one law of a box twice as wide breaks the promise, so that this test can fail.
    assert hybrid_loss(transport, box, pairs, scale * 0.9) > 0.6
    assert loss_at(transport, 0.31, 0.7, CountPairs.all_of(5), scale) > 0.6


def test_a_box_of_one_law_needs_no_noise() -> None:
    transport, pairs = made(6, 0.5), CountPairs.all_of(6)
    assert hybrid_loss(transport, CENTRE, pairs, 0.0) == pytest.approx(loss_at(transport, 0.4, 0.6, pairs, 0.0), abs=1e-9)
    assert least_hybrid_scale(transport, CENTRE, pairs, 0.6) == 0


def test_the_vertices_are_those_of_the_definition() -> None:
    """Two rows: every vertex by hand, on both sides, without noise."""
    box, transport, pairs = RecordLaws.event((0.3, 0.5), (0.55, 0.65)), made(2, 0.3), CountPairs.all_of(2)
    laws: dict[int, list[list[float]]] = {}
    for a in range(3):
        rows = [[(0.3, 0.5)] * a + [(0.55, 0.65)] * (2 - a)]
        for ends in itertools.product(*rows[0]):
            law = np.ones(1)
            for p in ends:
                law = np.convolve(law, [1 - p, p])
            row = transport_row(transport, a)
            out = [0.0] * 3
            for cell, o, part, whole in overlaps(row.sources, row.targets):
                out[o] += sum(float(law[f]) for f in range(3) if row.cell(f) == cell) * part / whole
            laws.setdefault(a, []).append(out)
    wanted = max(
        math.log(x / y)
        for a, b in itertools.product(laws, laws)
        for p in laws[a]
        for q in laws[b]
        for x, y in zip(p, q, strict=True)
    )
    assert hybrid_loss(transport, box, pairs, 0.0) == pytest.approx(wanted, abs=1e-9)


def test_the_corner_does_not_cover_what_reads_the_secret() -> None:
    """Certified .5 at (.4, .6), the corner of [.4, .6]^2: real 3.3 at (.45, .55), in fractions. The vertices notice."""
    transport, pairs = made(20, 0.5), CountPairs.all_of(20)
    assert hybrid_loss(transport, CENTRE, pairs, 0.0) <= 0.5 + 1e-10  # the bound is in floats
    real = loss_at(transport, 0.45, 0.55, pairs, 0.0)
    assert real == pytest.approx(3.3, abs=0.1)
    box = RecordLaws.event((0.4, 0.6), (0.4, 0.6))
    assert hybrid_loss(transport, box, pairs, 0.0) >= real


def test_what_is_refused() -> None:
    with pytest.raises(RefusedError, match="up to 40 rows"):
        require_feasible(RecordLaws.event((0.4, 0.5), 0.6), 41)
    with pytest.raises(RefusedError, match="events only"):
        require_feasible(VISITS, 10)
    impossible = RecordLaws.event((0.0, 0.5), (0.0, 0.5))
    assert hybrid_loss(made(6, 0.5), impossible, CountPairs.all_of(6), 1e-3) == math.inf
