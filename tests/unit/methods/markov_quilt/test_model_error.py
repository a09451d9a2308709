"""What a network's parameter loses where its tables are off: by the tables that count, or by a larger tolerance."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import OFF_BY
from attrpriv.methods.markov_quilt.proof import EarlierTerms, QuiltCheck, QuiltEvidence
from attrpriv.methods.markov_quilt.sensitivity import ColumnSensitivity
from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.networks.network import Network, Node
from tests.unit.methods.markov_quilt.test_proof import FLIP, NETWORK, TWO, evidence, influence, known, term

TERM = 2.25 / 4


def change(off: float) -> float:
    return math.log((1 + off) / (1 - off))


def line(size: int) -> Network:
    """x0 -> x1 -> ..., and g above all."""
    nodes = {"g": Node(states=TWO, table=((0.4, 0.6),))}
    for k in range(size - 1):
        nodes[f"x{k}"] = Node(states=TWO, parents=(f"x{k - 1}" if k else "g",), table=FLIP)
    return Network(nodes=nodes)


def of_line(size: int, names: tuple[str, ...] = ("x8",), **changes: Any) -> QuiltEvidence:
    check = QuiltCheck(secret="g", theta=0, known=names)
    lone = term(name="x1", columns=("x1",))
    return evidence(**({"networks": (line(size),), "terms": (lone,), "checks": (check,)} | changes))


def within(told: QuiltEvidence, off: float) -> float:
    (check,) = told.checks
    return max_influence(told.networks[0], of=check.known, on="g", tolerance=told.tolerances[0] + off).value


@pytest.mark.parametrize(("names", "tables"), [("h", 3), ("w", 4), ("hw", 4)])
def test_the_lesser_of_two_bounds(names: str, tables: int) -> None:
    """g is above h, h above w: the tables of what is known and of the secret, and that of the secret once more."""
    for tolerance in (0.0, 0.02):
        told = evidence(checks=known(*names), tolerances=(tolerance,))
        stated = told.influence_of(told.checks[0])
        assert stated == pytest.approx(influence(names), rel=1e-6) or tolerance
        rows = told.model_error(1.0, 0.0)
        assert [row.off_by for row in rows] == list(OFF_BY)
        for row in rows:
            best = min(stated + tables * change(row.off_by), within(told, row.off_by))
            assert row.epsilon == pytest.approx(best + (0.0 if "w" in names else TERM), rel=1e-9)


def test_what_is_said_holds_for_every_network_that_is_off() -> None:
    """Corners of the tables, by enumeration of two parameters."""
    told = evidence(checks=known("h"))
    row = told.model_error(1.0, 0.0)[-1]
    worst = 0.0
    for signs in itertools.product((-1, 1), repeat=2):
        one, two = (p + s * row.off_by * min(p, 1 - p) for p, s in zip((0.7, 0.2), signs, strict=True))
        worst = max(worst, abs(math.log(one / two)), abs(math.log((1 - one) / (1 - two))))
    assert row.epsilon is not None
    assert influence("h") + TERM < worst + TERM <= row.epsilon


@pytest.mark.parametrize("told", [evidence(), of_line(11, ())])
def test_what_knows_nothing_rests_on_no_table(told: QuiltEvidence) -> None:
    """Also in a network that is too large for bounds over a tolerance."""
    for row in told.model_error(1.0, 0.0):
        assert row.epsilon == pytest.approx(TERM, rel=1e-11)


def test_what_tells_nothing_as_stated_may_tell_something_where_tables_are_off() -> None:
    """h has the same law whatever g is; with tables that are off, it has not."""
    level = Network(nodes={**NETWORK.nodes, "h": Node(states=TWO, parents=("g",), table=((0.7, 0.3), (0.7, 0.3)))})
    told = evidence(networks=(level,), checks=known("h"))
    assert told.influence_of(told.checks[0]) <= 1e-9
    for row in told.model_error(1.0, 0.0):
        least = max(math.log(one / two) for one, two in ((0.7 + 0.3 * row.off_by, 0.7 - 0.3 * row.off_by),
                                                         (0.3 * (1 + row.off_by), 0.3 * (1 - row.off_by))))  # fmt: skip
        assert row.epsilon is not None
        assert row.epsilon >= TERM + least


def test_the_worst_check_counts() -> None:
    other = Network(nodes={**NETWORK.nodes, "h": Node(states=TWO, parents=("g",), table=((0.9, 0.1), (0.1, 0.9)))})
    checks = (*known("h"), QuiltCheck(secret="g", theta=1, known=("h",)))
    alone = evidence(networks=(other,), checks=known("h")).model_error(1.0, 0.0)
    for networks in ((NETWORK, other), (other, NETWORK)):
        assert evidence(networks=networks, tolerances=(0.0, 0.0), checks=checks).model_error(1.0, 0.0) == alone


@pytest.mark.parametrize(("size", "long"), [(10, False), (11, True)])
def test_in_large_networks_tables_are_counted(size: int, long: bool) -> None:
    """Of x8: ten on the way, and that of g once more. Under a tolerance both bounds are there anyway."""
    told = of_line(size)
    for row in told.model_error(1.0, 0.0):
        counted, wider = told.influence_of(told.checks[0]) + 11 * change(row.off_by), within(told, row.off_by)
        assert wider < counted
        assert row.epsilon == pytest.approx((counted if long else wider) + TERM, rel=1e-9)
    near = of_line(size, tolerances=(0.01,))
    assert near.model_error(1.0, 0.0)[0].epsilon == pytest.approx(within(near, 0.01) + TERM, rel=1e-9)


def test_after_earlier_releases_large_sets_are_counted_too() -> None:
    earlier = (EarlierTerms(columns=("x2",), rate=0.125),)
    three = ("x6", "x7", "x8")
    for names, before, long in ((three[1:], earlier, False), (three, earlier, True), (three, (), False)):
        told = of_line(10, names, earlier=before)
        for row in told.model_error(1.0, 0.0)[-1:]:
            counted, wider = told.influence_of(told.checks[0]) + 11 * change(row.off_by), within(told, row.off_by)
            assert wider < counted
            assert row.epsilon == pytest.approx((counted if long else wider) + TERM + (0.125 if before else 0.0), rel=1e-9)


# ------------------------------------------------------------------------------------------------------- sensitivities


def test_each_statistic_moves_by_its_width() -> None:
    bounds = {"y": (2.0, 5.0), "x": (-7.0, 4.0)}
    for made, exact in (
        (ColumnSensitivity.count(("x",), 7), 7.0),
        (ColumnSensitivity.histogram(("x",), 7), 14.0),
        (ColumnSensitivity.mean("x", (2.0, 5.0)), 3.0),
        (ColumnSensitivity.total("x", (2.0, 5.0), 7), 21.0),
        (ColumnSensitivity.kept(("x",), 0.25), 0.25),
        (ColumnSensitivity.slope("y", "x", bounds, 0.25), 3.0 / 0.5),
        (ColumnSensitivity.intercept("y", "x", bounds, 0.25), 3.0 * (1 + 7.0 / 0.5)),
    ):
        assert exact <= made.of(("x",)) <= exact * (1 + 1e-12)
        assert made.of(("other",)) == 0.0


@pytest.mark.parametrize("least", [0.0, -1.0, math.inf, math.nan, None])
def test_a_regression_needs_a_floor_that_is_a_positive_number(least: float | None) -> None:
    bounds = {"y": (2.0, 5.0), "x": (-7.0, 4.0)}
    for made in (ColumnSensitivity.slope, ColumnSensitivity.intercept):
        with pytest.raises(UsageError, match="least_variance"):
            made("y", "x", bounds, least)
