"""The bridge for chains: b and epsilon by the recursion, both ways; outside releases and ours in one ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.errors import AttrprivError
from attrpriv.methods.chain_noise.outside import ChainOutsideEvidence
from attrpriv.methods.chain_noise.proof import ChainSequence
from attrpriv.numerics.calibration.chain_curve import chain_budget, chain_epsilon
from attrpriv.session.record import recheck

DIARY = ap.Chain(column="state", states=[0, 1], initial=[0.5, 0.5], transition=[[0.9, 0.1], [0.1, 0.9]], tolerance=0)
COUNT = "count(*) filter (where state = 1)"


def policy(**changes: Any) -> ap.Policy:
    stated: dict[str, Any] = {"rows": 100, "epsilon": 1.0, "assume": DIARY, "protect": [ap.Secret("entries(state)")]}
    return ap.Policy(**(stated | changes))


def table() -> pa.Table:
    return pa.table({"state": [0, 0, 1, 1, 1, 0, 0, 1, 0, 0] * 10})


def test_both_directions_are_the_recursion() -> None:
    bridge = ap.bridge(policy())
    assert bridge.b == pytest.approx(chain_budget([*DIARY.members], 100, 1.0), rel=1e-6)
    assert bridge.epsilon(bridge.b) <= 1
    assert bridge.epsilon(0.1) == pytest.approx(chain_epsilon([*DIARY.members], 100, 0.1), rel=1e-9)
    assert 1 / bridge.b <= 8.65
    assert "of each row nothing but state" in str(bridge)


def test_an_event_that_joins_states_may_cost_more() -> None:
    rows = [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]
    three = ap.Chain(column="state", states=[0, 1, 2], initial=[0.4, 0.3, 0.3], transition=rows, tolerance=0)
    whole, event = (ap.bridge(policy(assume=three), reads=reads).b for reads in (None, "state = 2"))
    assert whole < event
    assert ap.bridge(policy(assume=three), reads="state").b == whole
    for reads, says in (("other", "must be state"), ("state > 7", "tells states of state apart"), ("other = 1", "reads other")):
        with pytest.raises(AttrprivError, match=says):
            ap.bridge(policy(assume=three), reads=reads)


def test_outside_releases_and_ours_share_one_budget(tmp_path: Path) -> None:
    """All that entries cost adds up and the curve is read once: together they may spend what one release may."""
    with ap.Session(table(), policy(), ledger=tmp_path / "a.ledger") as session:
        most = session.bridge().b
        session.record_outside(b=most / 4, what="a histogram of another library")
        first = session.release(COUNT, "laplace", spend=0.5)
        assert session.bridge().b == pytest.approx(most * 3 / 8, rel=1e-6)
        session.record_outside(b=most / 8, what="another one")
        second = session.release("sum(state)", "laplace", spend=1.0)
        rates = most * 3 / 8 + sum(1 / one.plan.noise.scale for one in (first, second))
        assert chain_epsilon([*DIARY.members], 100, rates) == pytest.approx(1.0, rel=1e-6)
        assert [entry.kind for entry in session.recorded()] == ["outside", "release", "outside", "release"]
        with pytest.raises(AttrprivError):
            session.record_outside(b=most / 100, what="one too many")
        assert recheck("record", session.recorded()).certificates == 4


def test_too_much_is_refused_and_says_how_much_is_left(tmp_path: Path) -> None:
    with ap.Session(table(), policy(), ledger=tmp_path / "a.ledger") as session:
        with pytest.raises(AttrprivError, match=r"At most 0\.1157"):
            session.record_outside(b=0.2, what="too much")
        assert session.recorded() == ()


def test_what_stands_for_it_costs_no_less_than_b() -> None:
    curve = ap.bridge(policy()).curve
    proof = curve.proof(0.1, "a tree")
    assert isinstance(proof, ChainOutsideEvidence)
    assert proof.delta(1.0) == 0
    assert ChainSequence.read(proof) is proof
    less = proof.model_copy(update={"now": proof.now.model_copy(update={"rate": 0.05})})
    nothing = proof.model_copy(update={"now": proof.now.model_copy(update={"values": (0, 0)})})
    assert less.delta(1.0) == nothing.delta(1.0) == 1
