"""The tuned reference: how near it comes to the linear program's optimum, and that predicted errors are the real ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.count_transport.lattice import Moved, moved
from attrpriv.methods.count_transport.reference import tuned_transport
from attrpriv.methods.count_transport.target import CountTransport, Reference, transport_row
from attrpriv.numerics.calibration.coupling import overlaps
from attrpriv.numerics.calibration.linear_program import optimal_envelope
from attrpriv.numerics.calibration.secret_laws import float_laws, secret_laws
from attrpriv.numerics.laws.count_cases import CountPrior
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from tests.unit.numerics.laws.test_fixed_window import VISITS, exact_law

EVENT = RecordLaws.event(0.4, 0.6)


def optimum(records: RecordLaws, prior: CountPrior, epsilon: float) -> float:
    pairs = CountPairs.all_of(prior.n)
    return optimal_envelope(float_laws(secret_laws(records, pairs, "counts")), prior.nodes(999)[1], epsilon).error


def test_the_issue_s_numbers() -> None:
    """n = 20, p = .4/.6, binomial prior, epsilon 1: at most 1.06 times the optimum 0.0163."""
    prior = CountPrior(20, 0, 20, share=0.5)
    assert optimum(EVENT, prior, 1.0) == pytest.approx(0.0163, abs=5e-5)
    error = tuned_transport(EVENT, prior, 1.0)[1]
    assert 0.0163 <= error.mean_absolute <= 1.06 * 0.0163


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("prior", [CountPrior(16, 0, 16, share=0.5), CountPrior(16, 0, 16)])
@pytest.mark.parametrize("records", [EVENT, RecordLaws.event(0.9, 0.1)])
def test_it_is_near_the_optimum(records: RecordLaws, prior: CountPrior, epsilon: float) -> None:
    best, found = optimum(records, prior, epsilon), tuned_transport(records, prior, epsilon)[1].mean_absolute
    assert best * (1 - 1e-6) <= found <= 1.12 * best + 1e-9


@pytest.mark.parametrize(("records", "n"), [(EVENT, 9), (VISITS, 4)])
def test_the_error_is_that_of_what_is_drawn(records: RecordLaws, n: int) -> None:
    """Every part of every slice, with its true probability."""
    prior = CountPrior(n, 0, n, share=0.3)
    transport, error = tuned_transport(records, prior, 0.5)
    absolute = square = 0.0
    beyond = np.zeros(4)
    for a, chance in zip(*prior.nodes(99), strict=True):
        row, law = transport_row(transport, int(a)), exact_law(records, n, int(a))
        cells: dict[int, list[tuple[int, float]]] = {}
        for cell, o, part, whole in overlaps(row.sources, row.targets):
            cells.setdefault(cell, []).append((o + row.start, part / whole))
        for (f, p), t in itertools.product(enumerate(law), range(1)):
            for o, share in cells[row.cell(f)]:
                weight = float(chance) * float(p) * share
                absolute, square = absolute + weight * abs(o - f), square + weight * (o - f) ** 2
                beyond += [weight * (abs(o - f) > t) for t in range(4)]
    assert error.mean_absolute == pytest.approx(absolute, rel=1e-9)
    assert error.rmse == pytest.approx(math.sqrt(square), rel=1e-9)
    listed = [*error.tail, 0.0, 0.0, 0.0, 0.0][:4]
    assert listed == pytest.approx(beyond.tolist(), abs=1e-12)


def test_delta_is_tried_for_events() -> None:
    prior = CountPrior(60, 0, 60, share=0.5)
    pure, loose = (tuned_transport(EVENT, prior, 0.5, delta) for delta in (0.0, 0.01))
    assert loose[0].delta == 0.01
    assert loose[1].mean_absolute < pure[1].mean_absolute
    assert tuned_transport(VISITS, CountPrior(8, 0, 8), 0.5, 0.01)[0].delta == 0


def test_many_rows_scale_as_few_do() -> None:
    """Error grows as the square root of n, and the coarse lattice is not seen."""
    errors = [tuned_transport(EVENT, CountPrior(n, 0, n, share=0.5), 1.0)[1].mean_absolute for n in (500, 2_000)]
    assert errors[1] / errors[0] == pytest.approx(2.0, rel=0.02)


def test_a_prior_without_a_share_has_the_worst_tail() -> None:
    flat, stated = CountPrior(30, 0, 30), CountPrior(30, 0, 30, share=0.5)
    transport = CountTransport(EVENT, 30, Reference(count=15), 0.5, 0.25)
    assert moved(transport, flat).half_width(0.05) > moved(transport, stated).half_width(0.05)


def test_refusals() -> None:
    with pytest.raises(RefusedError, match="rows"):
        tuned_transport(EVENT, CountPrior(2_000_000, 0, 2_000_000), 1.0)
    with pytest.raises(RefusedError, match="state a prior"):
        tuned_transport(RecordLaws.event(0.9, 0.1), CountPrior(1_000_000, 0, 1_000_000), 1.0)
    with pytest.raises(UsageError, match=r"^beta: "):
        Moved(0.1, 0.1, (0.0,), 1).half_width(0.0)
