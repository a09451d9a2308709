"""Accuracy first through a session: a smaller epsilon than the policy's, and what the ledger then holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import RefusedError, UsageError
from attrpriv.session.session import Session
from tests.end_to_end.material import policy, write_policy, write_table

WIDE = [{"secret": "mean(income)", "between": [20_000, 200_000]}]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    write_table(tmp_path)
    return Session(policy=write_policy(tmp_path, policy(protect=WIDE)))


def test_plan_rank_and_release_agree(session: Session, tmp_path: Path) -> None:
    wanted = 2 * (session.plan(mechanism="gaussian").error.rmse or 0.0)
    found = session.plan("avg(weight)", "gaussian", error=wanted)
    assert found.epsilon < 1
    assert found.error.rmse is not None
    assert found.error.rmse <= wanted
    ranking = session.rank("avg(weight)", mechanism="gaussian", error=wanted)
    assert ranking.chosen == found
    assert {plan.epsilon for plan in ranking.plans} == {found.epsilon}
    released = session.release("avg(weight)", "gaussian", error=wanted)
    assert released.plan == found
    (entry,) = Ledger(tmp_path / "students.ledger").entries()
    assert entry.plan[0]["epsilon"] == found.epsilon


def test_what_is_out_of_the_budget_spends_nothing(session: Session, tmp_path: Path) -> None:
    least = session.plan(mechanism="gaussian").error.rmse or 0.0
    with pytest.raises(RefusedError, match="more than the policy allows"):
        session.release("avg(weight)", "gaussian", error=least / 2)
    with pytest.raises(UsageError, match="error: must be a positive number"):
        session.release("avg(weight)", error=0)
    assert not (tmp_path / "students.ledger").exists()


def test_the_measure_decides(session: Session) -> None:
    wanted = 2 * (session.plan(mechanism="gaussian").error.alpha95 or 0.0)
    strict = session.plan("avg(weight)", "gaussian", by="alpha95", error=wanted)
    loose = session.plan("avg(weight)", "gaussian", by="rmse", error=wanted)
    assert (strict.error.alpha95 or 0.0) <= wanted
    assert loose.epsilon < strict.epsilon
    ranked = session.rank("avg(weight)", by="alpha95")
    errors = [plan.error.alpha95 or 0.0 for plan in ranked.plans]
    assert errors == sorted(errors)
