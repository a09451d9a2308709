"""Several statistics in one call that only a sequence answers: shares, entries, crashes, and what all tell together."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.cli.app import app
from attrpriv.methods.laplace_sequence.proof import CountSequenceEvidence
from attrpriv.session import split as steps
from attrpriv.session.derived import PartsPlan, plans_of
from attrpriv.session.session import Session
from tests.end_to_end.test_chain import diary
from tests.end_to_end.test_counts import ROWS, arrange, policy

STAYS = "count(*) filter (where stay > 7)"
VISITS = "sum(visits)"
CELLS = "SELECT visits, count(*) FROM data GROUP BY visits"
LIST = [STAYS, VISITS, CELLS]


def ward(folder: Path, *release: str, **changes: Any) -> Session:
    folder.mkdir(exist_ok=True)
    arrange(folder, policy(release=list(release or LIST), **changes))
    return Session(policy=folder / "ward.yaml")


def scales(plan: ap.Plan) -> list[float]:
    return [one.noise_of(one.queries[0]).scale for one in plans_of(plan)]


# ----------------------------------------------------------------------------------------------------------- one call


def test_a_list_of_counts_is_released_one_after_the_other(tmp_path: Path) -> None:
    with ward(tmp_path) as asking:
        planned = asking.plan()
        assert isinstance(planned, PartsPlan)
        assert [[query.text for query in plan.queries] for plan in planned.plans] == [[STAYS], [VISITS], [CELLS]]
        assert [plan.spend for plan in planned.plans] == [pytest.approx(1 / 3), 0.5, 1.0]
        planned.verify()
        released = asking.release()
        assert [answer.query.text for answer in released.answers] == LIST
        assert [entry.answers[0]["query"] for entry in asking.recorded()] == LIST
        assert released.whereabouts[1:3] == (f"{STAYS} is entry 1", f"{VISITS} is entry 2")
        assert [plan.spend for plan in released.plans] == [plan.spend for plan in planned.plans]
        assert 0 <= asking.left < 1e-6
        evidence = released.plan.certificate.evidence
        assert isinstance(evidence, CountSequenceEvidence)
        assert evidence.loss() <= 1
        again = asking.release()
        assert again.recorded
        assert [one.to_json() for one in again.answers] == [one.to_json() for one in released.answers]
        assert [row["query"] for row in again.to_json()["plan"]] == LIST


def test_a_list_of_counts_is_released_where_rows_are_known(tmp_path: Path) -> None:
    """The budget line after the first is true: what is left can be spent on another count."""
    with ward(tmp_path, STAYS, VISITS, known_rows=0.01, delta=0.0) as asking:
        first = asking.release(STAYS)
        assert first.plan.left == pytest.approx(0.5, abs=1e-6)
        second = asking.release(VISITS)
        assert second.plan.spend == 1
        assert 0 <= asking.left < 1e-6


def test_it_is_what_asking_one_by_one_gives(tmp_path: Path) -> None:
    """No rule of its own: the same noise, step by step, as calls of their own get."""
    with ward(tmp_path / "together") as all_of_it, ward(tmp_path / "apart") as one_by_one:
        planned = scales(all_of_it.plan())
        asked = [one_by_one.release(query).plan for query in LIST]
        assert planned == [plan.noise_of(plan.queries[0]).scale for plan in asked]
        released = all_of_it.release()
        assert [plan.certificate.evidence for plan in released.plans] == [plan.certificate.evidence for plan in asked]


def test_some_of_the_list_gets_the_share_of_some(tmp_path: Path) -> None:
    with ward(tmp_path) as asking:
        planned = asking.plan([STAYS, CELLS])
        assert [plan.spend for plan in plans_of(planned)] == pytest.approx([1 / 3, 1 / 2])
        assert "This release may use 66.7%" in (asking.ledger_note([STAYS, CELLS], planned) or "")
        asking.release([STAYS, CELLS])
        assert asking.left >= 1 / 3 - 1e-9
        assert asking.release(VISITS).plan.spend == 1
        assert len(asking.recorded()) == 3


def test_what_one_number_tells_stays_in_one_step(tmp_path: Path) -> None:
    with ward(tmp_path, STAYS, VISITS, "avg(visits)", "count(*)") as asking:
        released = asking.release()
        assert [len(entry.answers) for entry in asking.recorded()] == [1, 3]
        assert released.values[1] == released.values[2] * ROWS
        assert released.values[3] == ROWS


@pytest.mark.parametrize("name", ["by name", pytest.param("for an error", marks=pytest.mark.slow), "single persons"])
def test_other_ways_to_ask(name: str, tmp_path: Path) -> None:
    ways: Mapping[str, dict[str, Any]] = {"by name": {"mechanism": "laplace"}, "for an error": {"error": 20.0}}
    changes = {"individuals": {"epsilon": 1.0}} if name == "single persons" else {}
    with ward(tmp_path, STAYS, VISITS, **changes) as asking:
        released = asking.release(**ways.get(name, {}))
        assert {plan.mechanism for plan in released.plans} == {"laplace"}
        if name == "for an error":
            assert all((plan.error_of(plan.queries[0]).rmse or 0) <= 20 for plan in released.plans)
            assert asking.left > 0.7
    found = CliRunner().invoke(app, ["ledger", str(tmp_path / "ward.yaml"), "--recheck", "--verify"])
    assert found.exit_code == 0, found.output


def test_a_view_by_name_answers_all_of_it_at_once(tmp_path: Path) -> None:
    with ward(tmp_path, STAYS, VISITS) as asking:
        assert asking.release(mechanism="subsample").plan.view is not None
        assert asking.plan("avg(age)").mechanism == "subsample"  # what auto means from now on
        assert [one.wanted for one in asking.ranked().rankings] == ["subsample"]


def test_a_step_that_is_refused_releases_nothing(tmp_path: Path) -> None:
    age = "count(*) filter (where age > 25)"
    for k, listed in enumerate(([STAYS, age], [age, STAYS])):
        with ward(tmp_path / str(k), *listed) as asking:
            with pytest.raises(ap.UsageError, match=r"age > 25\), a part of what is asked: .*must give the probability of age"):
                asking.release()
            assert not (tmp_path / str(k) / "ward.ledger").exists()


# ----------------------------------------------------------------------------------------------------- other assumptions


def test_counts_of_a_chain(tmp_path: Path) -> None:
    path = diary(tmp_path, release=["count(*) filter (where state = 1)", "SELECT state, count(*) FROM data GROUP BY state"])
    with Session(policy=path) as asking:
        released = asking.release()
        assert [(plan.mechanism, plan.spend) for plan in released.plans] == [("laplace", 0.5), ("laplace", 1.0)]
        assert 0 <= asking.left < 1e-6
    found = CliRunner().invoke(app, ["ledger", str(path), "--recheck"])
    assert found.exit_code == 0, found.output


def test_counts_without_an_assumption_or_a_view(tmp_path: Path) -> None:
    secret = [{"secret": "mean(age)", "between": [20, 40], "within": 1}]
    stated = {key: value for key, value in policy(release=[STAYS, "avg(age)"], protect=secret).items() if key != "assume"}
    arrange(tmp_path, stated | {"bounds": {"age": [0, 100]}})
    with Session(policy=tmp_path / "ward.yaml") as asking:
        released = asking.release()
        assert [plan.mechanism for plan in released.plans] == ["group_dp", "group_dp"]
        assert scales(released.plans[0]) == pytest.approx([2 * ROWS])
        assert scales(released.plans[1]) == pytest.approx([200], rel=1e-6)


# -------------------------------------------------------------------------------------------------------------- crashes


def failing(real: Callable[..., Any], at: int) -> Callable[..., Any]:
    calls = itertools.count()
    return lambda *arguments: KeyboardInterrupt() if next(calls) == at else real(*arguments)


@pytest.mark.parametrize("at", [pytest.param(0, marks=pytest.mark.slow), 1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_was_recorded_before_a_crash_stays_and_the_rest_follows(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ward(tmp_path) as asking:
        with monkeypatch.context() as crashing:
            crashing.setattr(Session, "_answer", failing(Session._answer, at))
            with pytest.raises(KeyboardInterrupt):
                asking.release()
        before = asking.recorded()
        assert len(before) == at
        released = asking.release()
        assert asking.recorded()[:at] == before
        assert [entry.answers[0]["query"] for entry in asking.recorded()] == LIST
        assert [row["query"] for row in released.to_json()["answers"]] == LIST
        assert 0 <= asking.left < 1e-6


def test_steps_that_take_everything_are_stopped_by_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted mistake: each step is given the whole budget. The second finds none of it left, and draws nothing."""
    real = steps._apart

    def greedy(problem: Any, statistics: Any, plan: Any) -> Any:
        return [(step.model_copy(update={"spend": 1.0}), made) for step, made in real(problem, statistics, plan)]

    monkeypatch.setattr(steps, "_apart", greedy)
    with ward(tmp_path) as asking:
        with pytest.raises(ap.RefusedError, match=r"left of the table's budget|no rule covers it after"):
            asking.release()
        assert len(asking.recorded()) == 1


# --------------------------------------------------------------------------------------- what both answers tell together


def joint_loss(scales: Sequence[float], stays: float, *, alike: bool) -> float:
    """The largest log-ratio of the laws of (count, sum), each with whole-number Laplace noise, between two numbers of smokers.

    By adding up all tables of twelve rows: `alike`, long stays and many visits fall on the same rows as far as they can.
    """
    visits = {"yes": {0: 0.2, 1: 0.5, 3: 0.3}, "no": {0: 0.5, 1: 0.3, 3: 0.2}}
    rows = {name: _row(p, visits[name], alike=alike) for name, p in (("yes", stays), ("no", 0.2))}
    size, noise = (ROWS + 1, 3 * ROWS + 1), (_laplace(ROWS + 1, scales[0]), _laplace(3 * ROWS + 1, scales[1]))
    laws = []
    for smokers in range(3, 7):
        law = np.zeros(size)
        law[0, 0] = 1.0
        for k in range(ROWS):
            law = _added(law, rows["yes" if k < smokers else "no"])
        laws.append(np.log(noise[0] @ law @ noise[1].T))
    return max(float(np.abs(a - b).max()) for a, b in itertools.combinations(laws, 2))


def _row(stays: float, visits: Mapping[int, float], *, alike: bool) -> dict[tuple[int, int], float]:
    """The law of what one row adds to the count and to the sum."""
    if not alike:
        return {(c, v): p * (stays if c else 1 - stays) for v, p in visits.items() for c in (0, 1)}
    made, above = {}, 0.0
    for value, p in sorted(visits.items(), reverse=True):
        long = max(0.0, min(p, stays - above))
        made[(1, value)], made[(0, value)], above = long, p - long, above + p
    return made


def _added(law: Any, row: Mapping[tuple[int, int], float]) -> Any:
    found = np.zeros_like(law)
    for (count, value), p in row.items():
        found[count:, value:] += p * law[: law.shape[0] - count, : law.shape[1] - value]
    return found


def _laplace(size: int, scale: float) -> Any:
    """The noise's weights from each value to each answer; answers beyond the values have the ratios of the last ones."""
    apart = np.abs(np.arange(size)[:, None] - np.arange(size)[None, :])
    return np.exp(-apart / scale)


def test_both_answers_together_keep_epsilon(tmp_path: Path) -> None:
    """Each count alone may use all of it; the twin finds such a pair above epsilon, and the planned pair below."""
    with ward(tmp_path / "both", STAYS, VISITS) as asking:
        both = scales(asking.plan())
        alone = [asking.plan(query, "laplace", spend=1.0).noise.scale for query in (STAYS, VISITS)]
    losses = [joint_loss(both, p, alike=alike) for p in (0.38, 0.42) for alike in (True, False)]
    assert all(math.isfinite(loss) for loss in losses)
    assert 0.5 < max(losses) <= 1
    assert max(joint_loss(alone, p, alike=alike) for p in (0.38, 0.42) for alike in (True, False)) > 1.2


# ------------------------------------------------------------------------------------------------------ the command line


def test_every_command_shows_all_steps(tmp_path: Path) -> None:
    ward(tmp_path, STAYS, VISITS)
    listed = [STAYS, VISITS]
    place, run = str(tmp_path / "ward.yaml"), CliRunner()
    checked = json.loads(run.invoke(app, ["check", place, "--json"]).stdout)
    assert [row["query"] for row in checked["queries"]] == listed
    planned = run.invoke(app, ["plan", place])
    assert "2 of 2, one after the other" in planned.stdout
    rows = json.loads(run.invoke(app, ["plan", place, "--json"]).stdout)
    assert [row["query"] for row in rows if row.get("chosen")] == listed
    assert all(query in " ".join(run.invoke(app, ["explain", place]).stdout.split()) for query in listed)
    released = json.loads(run.invoke(app, ["release", place, "--json"]).stdout)
    assert [row["query"] for row in released["plan"]] == listed
    assert [row["query"] for row in released["answers"]] == listed
    assert released["ledger"]["entry"] == 2
    found = run.invoke(app, ["ledger", place, "--recheck", "--verify"])
    assert found.exit_code == 0, found.output
    assert "2 of 2 releases" in found.stdout
