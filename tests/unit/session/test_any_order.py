"""Any order of planning, releasing, crashing, reopening and changing the policy keeps what was promised.

What was promised is computed by a twin, from the noise that was drawn: the distance of the joint laws of everything released,
under the policy in force and under every one before it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.session.record import recheck
from tests.unit.session import sequences
from tests.unit.session.sequences import COLUMNS, made, people, reached

SPENDS = st.sampled_from([None, 0.1, 0.5, 1.0])
QUERIES = st.sampled_from([f"{kind}({column})" for kind in ("avg", "sum") for column in COLUMNS])
TABLE = people()


class CrashedError(Exception):
    """The process is gone."""


class Releases(RuleBasedStateMachine):
    """Sessions on one ledger, against the values that somebody saw."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = self.folder / "x.ledger"
        self.policy = made("release")
        self.seen: dict[str, float] = {}
        self.size = 0
        self.session = self.opened()

    def opened(self, policy: ap.Policy | None = None) -> ap.Session:
        return sequences.session(self.ledger, policy or self.policy, TABLE)

    @rule(query=QUERIES, spend=SPENDS)
    def plan(self, query: str, spend: float | None) -> None:
        before = self.ledger.read_bytes() if self.ledger.exists() else None
        try:
            plan = self.session.plan(query, "gaussian", spend=spend)
        except ap.RefusedError:
            return
        assert plan.certificate.left(self.policy.epsilon, self.policy.delta) <= self.session.left + 1e-12 or query in self.seen
        assert (self.ledger.read_bytes() if self.ledger.exists() else None) == before

    @rule(query=QUERIES, spend=SPENDS)
    def release(self, query: str, spend: float | None) -> None:
        try:
            released = self.session.release(query, "gaussian", spend=spend)
        except ap.RefusedError:
            return
        assert self.seen.setdefault(query, released.value) == released.value, "the same question twice gets the same answer"
        entry = Ledger(self.ledger).look(lambda history: history.entry(released.entry.number))
        assert entry == released.entry

    @rule(query=QUERIES, spend=SPENDS)
    def crash_before_the_commit(self, query: str, spend: float | None) -> None:
        self._crash(query, spend, recorded=False)

    @rule(query=QUERIES, spend=SPENDS)
    def crash_after_the_commit(self, query: str, spend: float | None) -> None:
        self._crash(query, spend, recorded=True)

    def _crash(self, query: str, spend: float | None, *, recorded: bool) -> None:
        real, before = Ledger.commit, len(Ledger(self.ledger).entries())

        def commit(ledger: Ledger, **contents: Any) -> Any:
            if recorded:
                real(ledger, **contents)
            raise CrashedError

        crashed = False
        try:
            with mock.patch.object(Ledger, "commit", commit):
                self.session.release(query, "gaussian", spend=spend)
        except CrashedError:
            crashed = True
        except ap.RefusedError:
            crashed = False
        assert len(Ledger(self.ledger).entries()) == before + (crashed and recorded)
        self.reopen()

    @rule()
    def reopen(self) -> None:
        self.session.close()
        self.session = self.opened()

    @rule(part=st.sampled_from(["epsilon", "delta", "within", "known_rows"]))
    def tighten(self, part: str) -> None:
        """The next release under it states it, if there is one."""
        stated = self.policy.to_json()
        within = stated["protect"][0]["within"]
        changed = {
            "epsilon": {"epsilon": stated["epsilon"] * 0.9},
            "delta": {"delta": stated["delta"] / 2},
            "within": {"protect": [{**stated["protect"][0], "within": within * 1.1}]},
            "known_rows": {"known_rows": min(0.5, stated["known_rows"] + 0.05)},
        }
        self.policy = ap.Policy(**{**{k: v for k, v in stated.items() if v is not None}, **changed[part]})
        self.reopen()

    @rule(query=QUERIES)
    def loosen(self, query: str) -> None:
        """Whatever was stated stays stated."""
        stated = Ledger(self.ledger).look(lambda history: [entry.account.get("stated") for entry in history.entries()])
        known = [one for one in stated if one is not None]
        if not known:
            return
        loose = ap.Policy(**{**{k: v for k, v in known[-1].items() if v is not None}, "epsilon": known[-1]["epsilon"] * 1.5})
        before, refused, released = self.ledger.read_bytes(), "", None
        try:
            released = self.opened(loose).release(query, "gaussian", spend=0.5)
        except ap.RefusedError as error:
            refused = str(error)
        if released is None:
            assert "epsilon: must not become larger" in refused
        else:
            assert released.recorded
            assert self.seen.setdefault(query, released.value) == released.value
        assert self.ledger.read_bytes() == before

    @invariant()
    def everything_together_keeps_every_promise(self) -> None:
        entries = Ledger(self.ledger).entries()
        if len(entries) == self.size:
            return
        self.size = len(entries)
        for entry in entries:
            if "stated" in entry.account:
                policy = ap.Policy(**{key: value for key, value in entry.account["stated"].items() if value is not None})
                assert reached(policy, entries, members=5) <= gaussian_mu(policy.epsilon, policy.delta)
        recheck("record", entries)

    def teardown(self) -> None:
        self.session.close()
        shutil.rmtree(self.folder)


def run(machine: type[Releases], examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # a failure is shown as it was found
    )
    run_state_machine_as_test(machine, settings=chosen)


def test_any_order_of_releases_keeps_the_promise() -> None:
    run(Releases, examples=5, steps=12)


@pytest.mark.slow
def test_many_orders_of_releases_keep_the_promise() -> None:
    run(Releases, examples=30, steps=20)


def test_a_planner_that_forgets_is_found() -> None:
    """With every release planned as if it were the first, and a certificate that believes it."""
    from attrpriv.methods.base.certificate import Certificate
    from attrpriv.methods.gaussian import noise as stacked

    def forgotten(problem: Any) -> stacked.EarlierAverages:
        return stacked.EarlierAverages()

    with (
        mock.patch("attrpriv.methods.gaussian.plan.EarlierAverages.of", forgotten),
        mock.patch.object(Certificate, "follows", return_value=True),
        mock.patch.object(Certificate, "left", return_value=1.0),
        pytest.raises(AssertionError) as caught,
    ):
        run(Releases, examples=10, steps=12)
    assert caught.traceback[-1].name == Releases.everything_together_keeps_every_promise.__name__
