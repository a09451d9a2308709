"""Several releases about one table, under a network of parameters and under a chain: budgets, refusals and the record."""

from __future__ import annotations

from pathlib import Path

import pytest

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.methods.chain_quilt.plan import ChainEvidence
from attrpriv.methods.markov_quilt.proof import QuiltEvidence
from attrpriv.session.record import recheck
from tests.end_to_end.material import Said
from tests.end_to_end.test_chain import diary

XOR = """network "xor" {}
variable i { type discrete[2] {low, high}; }
variable a { type discrete[2] {low, high}; }
variable b { type discrete[2] {low, high}; }
probability (i) { default 0.5 0.5; }
probability (a) { default 0.5 0.5; }
probability (b | i, a) { (low, low) 1 0; (low, high) 0 1; (high, low) 0 1; (high, high) 1 0; }
"""
POLICY = """attrpriv: 1
data: pairs.csv
rows: 100
epsilon: 0.5
protect:
  - parameter: i
assume:
  kind: parameter_network
  file: pairs.bif
  tolerance: 0
release: ["count(*) filter (where a = 1)", "count(*) filter (where b = 1)"]
"""
A, B = (f"count(*) filter (where {name} = 1)" for name in "ab")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Every row has the values of the population's parameters: i = 1, a = 1, and so b = 0."""
    (tmp_path / "pairs.bif").write_text(XOR, encoding="utf-8")
    (tmp_path / "pairs.csv").write_text("i,a,b\n" + "1,1,0\n" * 100, encoding="utf-8")
    path = tmp_path / "pairs.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def quilts(plan: ap.Plan) -> QuiltEvidence:
    assert isinstance(plan.certificate.evidence, QuiltEvidence)
    return plan.certificate.evidence


def test_the_xor_pair(pairs: Path) -> None:
    """Each half alone is exact. After one of them the other gets noise for the whole budget, and then nothing is left."""
    with ap.Session(policy=pairs) as session:
        assert session.plan(A).noise.kind == session.plan(B).noise.kind == "none"
        first = session.release(A)
        assert first.answers[0].values[0].value == 100
        assert first.plan.left == pytest.approx(1.0)
        second = session.release(B, spend=1.0)
        assert second.plan.noise.scale == pytest.approx(100 / 0.5)
        assert quilts(second.plan).follows(quilts(first.plan))
        assert second.plan.left == 0
        assert session.release(B).answers == second.answers  # told again, not drawn again
        with pytest.raises(RefusedError):
            session.release("count(*) filter (where i = 1)", spend=1.0)
    assert Said("ledger", str(pairs), "--recheck", "--json").json["rechecked"]["certificates"] == 2


def test_a_ledger_that_lost_an_entry_is_not_proved(pairs: Path) -> None:
    with ap.Session(policy=pairs) as session:
        session.release(A)
        session.release(B, spend=0.5)
    entries = Ledger(pairs.with_suffix(".ledger")).entries()
    assert recheck("pairs", entries).certificates == 2
    for wrong in (entries[1:], entries[::-1]):
        with pytest.raises(CertificateError, match="entry"):
            recheck("pairs", wrong)


def test_a_tighter_policy_continues_or_refuses(pairs: Path) -> None:
    """Less epsilon: what is left of it. One more secret, which an exact answer told already: nothing more."""
    with ap.Session(policy=pairs) as session:
        session.release(A)
    pairs.write_text(POLICY.replace("epsilon: 0.5", "epsilon: 0.25"), encoding="utf-8")
    with ap.Session(policy=pairs) as session:
        assert session.release(B, spend=0.5).plan.noise.scale == pytest.approx(100 / 0.125)
    pairs.write_text(
        POLICY.replace("epsilon: 0.5", "epsilon: 0.25").replace("  - parameter: i", "  - parameter: i\n  - parameter: a"),
        encoding="utf-8",
    )
    with ap.Session(policy=pairs) as session, pytest.raises(RefusedError, match="may lose inf already, above epsilon"):
        session.release("count(*) filter (where i = 1)", mechanism="markov_quilt", spend=1.0)


def test_a_chain_s_releases_share_its_budget(tmp_path: Path) -> None:
    path = diary(tmp_path)
    steps = [("count(*) filter (where state = 1)", 0.5), ("count(*) filter (where state = 0)", 0.5), ("sum(state)", 1.0)]
    losses = []
    with ap.Session(policy=path) as session:
        for query, spend in steps:
            plan = session.release(query, "chain_quilt", spend=spend).plan
            assert isinstance(plan.certificate.evidence, ChainEvidence)
            losses.append(plan.certificate.evidence.loss())
        with pytest.raises(RefusedError):
            session.release("count(*) filter (where state > 5)", "chain_quilt", spend=1.0)
    assert losses == pytest.approx([0.5, 0.75, 1.0])
    assert Said("ledger", str(path), "--recheck", "--json").json["rechecked"]["certificates"] == 3
