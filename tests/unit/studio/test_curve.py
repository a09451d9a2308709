"""The error against epsilon, computed in the background: what it says, and what becomes of it when it is overtaken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.choice.error_curve import error_curve
from attrpriv.pictures.subjects import against_epsilon
from attrpriv.policy import Policy
from attrpriv.session.session import Session
from attrpriv.studio import curve
from attrpriv.studio.curve import EPSILONS, Curves, CurveState, Point, Refused

ROOT = Path(__file__).resolve().parents[3]
ASKED = "avg(weight)"


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    """The students' policy without a table: whatever reads a row fails."""
    text = (ROOT / "examples" / "students" / "students.yaml").read_text(encoding="utf-8")
    path = tmp_path / "students.yaml"
    path.write_text(text, encoding="utf-8")
    return Policy.load(path)


@pytest.fixture
def curves() -> Iterator[Curves]:
    made = Curves((0.5, 2.0))
    yield made
    made.cancel()
    made.join(60)


def told(curves: Curves, key: str) -> CurveState:
    state = curves.state(key)
    assert state is not None
    return state


def ended(curves: Curves, key: str) -> CurveState:
    curves.join(120)
    return told(curves, key)


def test_each_point_is_what_a_policy_with_this_epsilon_would_be_told(curves: Curves, policy: Policy) -> None:
    state = ended(curves, curves.start(policy))
    assert (state.ended, state.done, state.total, state.refusals) == ("done", 3, 3, ())
    assert [point.epsilon for point in state.points] == [0.5, 1.0, 2.0]
    assert policy.origin is not None
    for point in state.points:
        text = policy.origin.read_text(encoding="utf-8").replace("epsilon: 1.0", f"epsilon: {point.epsilon}")
        policy.origin.write_text(text, encoding="utf-8")
        plan = Session(policy=policy.origin).plan(ASKED)
        policy.origin.write_text(text.replace(f"epsilon: {point.epsilon}", "epsilon: 1.0"), encoding="utf-8")
        assert point.mechanisms == (plan.mechanism,)
        assert point.errors == ((ASKED, plan.error.rmse),)
        assert point.rmse == plan.error.rmse
        assert point.tells == plan.tells()
    errors = [point.rmse or 0.0 for point in state.points]
    assert errors[0] > errors[1] > errors[2] > 0


def test_it_is_drawn_as_the_ranking_draws_it(curves: Curves, policy: Policy) -> None:
    state = ended(curves, curves.start(policy, ASKED))
    ranking = Session(policy=policy).rank(ASKED)
    ours, theirs = state.curve(ASKED, 1.0), error_curve(ranking)
    both = {epsilon for epsilon, _ in ours.points} & {epsilon for epsilon, _ in theirs.points}
    assert both == {0.5, 1.0, 2.0}
    assert [one for one in theirs.points if one[0] in both] == list(ours.points)
    assert (ours.query, ours.mechanism, ours.epsilon, ours.constant) == (ASKED, theirs.mechanism, 1.0, theirs.constant)
    assert f"Expected error of {ASKED}" in against_epsilon(ours).title


def test_between_two_points_the_one_with_less_epsilon_is_told() -> None:
    low, high = (
        Point(0.5, ("gaussian",), (("avg(x)", 3.0),), None, None),
        Point(2.0, ("laplace",), (("avg(x)", 1.0),), None, None),
    )
    no = Refused(1.0, RefusedError("no"))
    state = CurveState(3).grown(high).grown(low).grown(no)
    assert [state.at(epsilon) for epsilon in (0.1, 0.5, 0.9, 1.0, 1.9, 2.0, 50.0)] == [None, low, low, no, no, high, high]
    assert (state.points, state.refusals, state.done) == ((low, high), (no,), 3)
    assert state.curve("avg(x)", 0.5).mechanism == "the best mechanism"


def test_a_refusal_is_a_value(curves: Curves, policy: Policy) -> None:
    state = ended(curves, curves.start(policy, "avg(height)"))
    assert (state.ended, state.points) == ("done", ())
    assert {type(one.error) for one in state.refusals} == {UsageError}
    assert all("height" in str(one.error) for one in state.refusals)
    assert all(one.error.__traceback__ is None for one in state.refusals)


def test_what_goes_wrong_ends_in_words_of_ours_and_the_next_curve_is_computed(
    curves: Curves, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Session, "ranked", lambda *_: 1 / 0)
        key = curves.start(policy, ASKED)
        state = ended(curves, key)
    assert state == CurveState(3, (), "failed")
    assert curves.start(policy, ASKED) == key
    assert ended(curves, key).ended == "failed"  # a page that is loaded again does not try forever
    assert ended(curves, curves.start(policy)).ended == "done"


def test_a_curve_that_is_overtaken_stops_and_goes_on_later(
    curves: Curves, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, computed, running = Event(), Event(), [], []

    def slow(_: Policy, query: str | None, epsilon: float) -> Refused:
        running.append(epsilon)
        assert len(running) == 1, "two at a time"
        begun.set()
        assert go.wait(60)
        computed.append((query, epsilon))
        running.clear()
        return Refused(epsilon, RefusedError("no"))

    monkeypatch.setattr(curve, "at_epsilon", slow)
    first = curves.start(policy, "avg(a)")
    assert begun.wait(60)
    second = curves.start(policy, "avg(b)")
    assert (told(curves, first).ended, told(curves, second).ended) == ("cancelled", "")
    go.set()
    assert ended(curves, second).ended == "done"
    assert told(curves, first) == CurveState(3, (), "cancelled")  # what was computed too late is not taken over
    assert computed == [("avg(a)", 1.0), ("avg(b)", 1.0), ("avg(b)", 0.5), ("avg(b)", 2.0)]
    assert curves.start(policy, "avg(a)") == first
    assert ended(curves, first).ended == "done"


def test_the_points_of_a_curve_that_was_stopped_are_kept(
    curves: Curves, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[float] = []

    def stopping(_: Policy, __: str | None, epsilon: float) -> Refused:
        computed.append(epsilon)
        if computed == [1.0, 0.5]:
            curves.cancel()
        return Refused(epsilon, RefusedError("no"))

    monkeypatch.setattr(curve, "at_epsilon", stopping)
    key = curves.start(policy)
    assert [one.epsilon for one in ended(curves, key).found] == [1.0]
    curves.start(policy)
    assert ended(curves, key).ended == "done"
    assert computed == [1.0, 0.5, 0.5, 2.0]


def test_another_policy_question_or_ledger_is_another_curve(curves: Curves, policy: Policy, tmp_path: Path) -> None:
    key = curves.start(policy, ASKED)
    assert curves.start(policy, ASKED) == key
    others = {curves.start(policy), curves.start(policy.model_copy(update={"delta": 1e-7}), ASKED)}
    assert len({key, *others}) == 3
    pq.write_table(pa.table({"weight": [70] * 10_000, "income": [60_000] * 10_000}), tmp_path / "students.parquet")
    before = curve.key_of(policy, ASKED)
    Session(policy=policy).release(ASKED)
    assert curve.key_of(policy, ASKED) != before != key
    assert curves.state("unknown") is None


def test_only_the_last_curves_are_kept(curves: Curves, policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve, "at_epsilon", lambda _, __, epsilon: Refused(epsilon, RefusedError("no")))
    keys = [curves.start(policy, f"avg(c{k})") for k in range(12)]
    curves.join(60)
    assert [curves.state(key) is not None for key in keys] == [False] * 4 + [True] * 8


def test_the_slider_stops_at_what_a_policy_may_say_and_comes_to_the_middle_early() -> None:
    assert list(EPSILONS) == sorted(set(EPSILONS))
    assert 0 < EPSILONS[0] < EPSILONS[-1] <= 100
    order = curve._in_order({*EPSILONS, 1.2}, 1.2)
    assert sorted(order) == sorted({*EPSILONS, 1.2})
    assert order[:3] == (1.2, 0.1, 10.0)
