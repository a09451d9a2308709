"""Answers that are computed from released ones: recorded as their parts, told again, split, and never more than published."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.cli.app import app
from attrpriv.methods.base.accuracy import Spread
from attrpriv.queries.derived import Derived, parse_questions
from attrpriv.queries.query import Query
from attrpriv.session.derived import NO_NUMBER, Computed, PartsPlan, with_computed
from attrpriv.session.release import Answer, Value
from attrpriv.session.session import Session
from attrpriv.session.split import _split
from tests.end_to_end.test_counts import arrange, policy
from tests.unit.methods.counts import problem as counts_problem
from tests.unit.session.sequences import made, people, session

RATIO = "sum(visits) / count(*) filter (where stay > 7)"


def published(entries: Any) -> dict[str, Any]:
    """Everything that the ledger says about values."""
    return {answer["query"]: answer["value"] for entry in entries for answer in entry.answers}


# ------------------------------------------------------------------------------------- one column, linear expressions


def test_a_linear_expression_of_one_column_is_that_columns_own_answer(tmp_path: Path) -> None:
    with session(tmp_path / "a.ledger", made("release")) as asking:
        plain, scaled = asking.plan("avg(weight)"), asking.plan("avg(2*weight + 1)")
        assert scaled.mechanism == plain.mechanism
        assert scaled.error.rmse == pytest.approx(2 * (plain.error.rmse or 0))
        released = asking.release("avg(2*weight + 1)", spend=0.5)
        (told,) = published(asking.recorded()).items()
        assert told[0] == "avg(weight)"
        assert released.value == float(2 * Fraction(told[1]) + 1)
        for text, factor, shift in (("avg(weight)", 1, 0), ("avg(weight/2.54)", Fraction(50, 127), 0), ("sum(weight)", 500, 0)):
            again = asking.release(text)
            assert again.recorded
            assert again.value == float(factor * Fraction(told[1]) + shift)
        assert asking.release("sum(3*weight - 2)").value == pytest.approx(500 * (3 * told[1] - 2), rel=1e-15)
        low, high = asking.release("avg(weight)").interval()
        assert asking.release("avg(-weight)").interval() == pytest.approx((-high, -low))
        assert len(asking.recorded()) == 1


def test_an_error_is_asked_for_in_the_units_of_the_answer(tmp_path: Path) -> None:
    with session(tmp_path / "a.ledger", made("release")) as asking:
        plain = asking.plan("avg(weight)", "gaussian", error=30.0)
        scaled = asking.plan("avg(weight/10)", "gaussian", error=3.0)
        assert scaled.epsilon == plain.epsilon
        with pytest.raises(ap.UsageError, match="error: is for statistics that are released themselves"):
            asking.plan("sum(weight) / sum(height)", error=3.0)


# --------------------------------------------------------------------------------------------------- quotients, together


def test_a_quotient_of_two_sums_is_planned_together_and_recorded_once(tmp_path: Path) -> None:
    with session(tmp_path / "a.ledger", made("release")) as asking:
        planned = asking.plan("sum(weight) / sum(height)")
        assert isinstance(planned, PartsPlan)
        assert [query.text for query in planned.queries] == ["sum(weight)", "sum(height)"]
        assert planned.error.rmse is None
        planned.verify()
        released = asking.release("sum(weight) / sum(height)")
        told = published(asking.recorded())
        assert released.value == float(Fraction(told["sum(weight)"]) / Fraction(told["sum(height)"]))
        assert len(asking.recorded()) == 1
        again = asking.release("sum(weight) / sum(height) * 100")
        assert again.recorded
        assert again.value == pytest.approx(100 * released.value)


def test_a_quotient_listed_in_the_policy_has_one_share(tmp_path: Path) -> None:
    stated = made(release=["sum(weight) / sum(height)", "avg(sat)"])
    with session(tmp_path / "a.ledger", stated) as asking:
        assert asking.plan("sum(weight) / sum(height)").spend == 0.5
        asking.release("sum(weight) / sum(height)")
        assert asking.release("avg(sat)").plan.spend == 1
        with pytest.raises(ap.UsageError, match="spend: must be said"):
            session(tmp_path / "b.ledger", stated).release("avg(age) / avg(sat)")


# ----------------------------------------------------------------------------------------- quotients, one after the other


def counts(folder: Path, **changes: Any) -> Session:
    arrange(folder, policy(release=[RATIO], **changes))
    return Session(policy=folder / "ward.yaml")


def test_parts_that_no_mechanism_answers_together(tmp_path: Path) -> None:
    with counts(tmp_path) as asking:
        planned = asking.plan()
        assert isinstance(planned, PartsPlan)
        assert [[query.text for query in plan.queries] for plan in planned.plans] == [
            ["sum(visits)"],
            ["count(*) filter (where stay > 7)"],
        ]
        assert [plan.spend for plan in planned.plans] == [0.5, 1.0]
        planned.verify()
        released = asking.release()
        assert [entry.number for entry in asking.recorded()] == [1, 2]
        assert "sum(visits) is entry 1" in released.whereabouts
        assert [plan.spend for plan in released.plans] == [0.5, 1.0]
        told = published(asking.recorded())
        below = told["count(*) filter (where stay > 7)"]
        if below:
            assert released.value == float(Fraction(told["sum(visits)"], below))
        again = asking.release()
        assert again.recorded
        assert again.answers[0].to_json() == released.answers[0].to_json()


def failing(real: Callable[..., Any], at: int) -> Callable[..., Any]:
    """The real thing, but for one call."""
    calls = iter(range(1_000))

    def answered(*arguments: Any) -> Any:
        return KeyboardInterrupt() if next(calls) == at else real(*arguments)

    return answered


def test_a_crash_between_two_parts_wastes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with counts(tmp_path) as asking:
        with monkeypatch.context() as crashing:
            crashing.setattr(Session, "_answer", failing(Session._answer, at=1))
            with pytest.raises(KeyboardInterrupt):
                asking.release()
        (first,) = asking.recorded()
        released = asking.release()
        assert asking.recorded()[0] == first
        assert released.answers[0].parts[0].values[0].value == first.answers[0]["value"]
        assert len(asking.recorded()) == 2


def test_the_whole_ledger_is_proved_again(tmp_path: Path) -> None:
    with counts(tmp_path) as asking:
        asking.release()
    found = CliRunner().invoke(app, ["ledger", str(tmp_path / "ward.yaml"), "--recheck", "--verify"])
    assert found.exit_code == 0, found.output


# --------------------------------------------------------------------------------------- nothing but published numbers


def question(text: str) -> Derived:
    (found,) = parse_questions(text)
    assert isinstance(found, Derived)
    return found


def test_a_value_is_a_function_of_what_is_published(tmp_path: Path) -> None:
    """Two tables, one ledger's worth of published numbers: the same answers, bit by bit."""
    ratio = question("sum(weight) / sum(height)")
    with session(tmp_path / "a.ledger", made("release")) as one, session(tmp_path / "b.ledger", made("release")) as two:
        first = one.release(ratio)
        other = two.release(["sum(weight)", "sum(height)"])
    spreads = {part.query: part.values[0] for part in first.answers[0].parts}
    planted = [Answer(query, (Value(7.5 + k, value.spread),)) for k, (query, value) in enumerate(spreads.items())]  # type: ignore[union-attr]
    found = [with_computed(_with(release, planted), [ratio]).answers[0].to_json() for release in (first, other)]
    assert found[0] == found[1]
    assert found[0]["value"] == 7.5 / 8.5


def _with(release: ap.Release, answers: list[Answer]) -> ap.Release:
    from dataclasses import replace

    return replace(release, answers=tuple(answers))


def test_0_below_the_line_has_a_fixed_text() -> None:
    ratio = question("sum(x) / sum(y)")
    told = {part: Value(value, Spread("laplace", 2.0)) for part, value in zip(ratio.parts, (5, 0), strict=True)}
    found = Computed(ratio, told, rows=10)
    assert math.isnan(found.value)
    assert found.to_json(0.95) == {"value": None, "interval": None, "reason": NO_NUMBER}
    assert json.dumps(found.to_json(0.95), allow_nan=False)


@pytest.mark.parametrize("values", [(1e308, 1e-308), (-1e308, 5e-324)])
def test_what_no_float_holds_has_the_same_text(values: tuple[float, float]) -> None:
    ratio = question("sum(x) / sum(y)")
    told = {part: Value(value, Spread("none", 0.0)) for part, value in zip(ratio.parts, values, strict=True)}
    assert Computed(ratio, told, rows=10).to_json(0.95)["reason"] == NO_NUMBER


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_an_interval_splits_its_confidence_between_noisy_parts(level: float) -> None:
    ratio = question("sum(x) / (sum(y) + sum(z))")
    x, y, z = ratio.parts
    told = {x: Value(10.0, Spread("gaussian", 1.0)), y: Value(50.0, Spread("laplace", 2.0)), z: Value(3.0, Spread("none", 0.0))}
    each = 1 - (1 - level) / 2
    above, below = told[x].interval(each), told[y].interval(each)
    expected = above[0] / (below[1] + 3), above[1] / (below[0] + 3)
    assert Computed(ratio, told, rows=5).interval(level) == pytest.approx(expected, rel=1e-12)
    for wrong in (0.0, 1.0, math.nan):
        with pytest.raises(ap.UsageError, match="level"):
            Computed(ratio, told, rows=5).interval(wrong)


def test_ends_are_rounded_outwards() -> None:
    third = question("sum(x) / 3")
    found = Computed(third, {Query("sum", "x"): Value(1.0, Spread("none", 0.0))}, rows=5).interval(0.9)
    assert Fraction(found[0]) < Fraction(1, 3) < Fraction(found[1])
    assert found[1] == math.nextafter(found[0], 1)


# -------------------------------------------------------------------------------------------------- shown like any other


def test_frames_and_pages_show_it(tmp_path: Path) -> None:
    with session(tmp_path / "a.ledger", made("release")) as asking:
        released = asking.release(["avg(weight/2)", "sum(weight)/sum(height)", "avg(weight)"])
        frame = released.to_frame()
        assert list(frame["query"]) == ["avg(0.5 * weight)", "sum(weight) / sum(height)", "avg(weight)"]
        assert frame["mechanism"].nunique() == 1
        html = released._repr_html_()
        assert "from sum(height)" in html
        assert "sum(weight) / sum(height) = " in str(released)
        assert "is 0.5 * avg(weight)" in asking.plan("avg(weight/2)")._repr_html_()
        with pytest.raises(ap.UsageError, match=r"use Session\.release"):
            asking.plan("avg(weight/2)").randomise(1.0)


def test_the_command_line_shows_parts_and_the_computation(tmp_path: Path) -> None:
    arrange(tmp_path, policy(release=[RATIO]))
    place = str(tmp_path / "ward.yaml")
    run = CliRunner()
    planned = run.invoke(app, ["plan", place])
    assert planned.exit_code == 0, planned.output
    assert "1 of 2, one after the other" in planned.stdout
    assert f"{RATIO}: computed from the released numbers" in planned.stdout
    entries = json.loads(run.invoke(app, ["plan", place, "--json"]).stdout)
    assert entries[-1] == {"query": RATIO, "derived": RATIO, "parts": ["sum(visits)", "count(*) filter (where stay > 7)"]}
    assert "computed from the released numbers" in run.invoke(app, ["explain", place]).stdout
    checked = json.loads(run.invoke(app, ["check", place, "--json"]).stdout)
    assert [one["query"] for one in checked["queries"]] == ["sum(visits)", "count(*) filter (where stay > 7)", RATIO]
    released = run.invoke(app, ["release", place, "--json"])
    assert released.exit_code == 0, released.output
    told = json.loads(released.stdout)
    assert told["answers"][0]["derived"]["formula"] == RATIO
    assert [entry["query"] for entry in told["plan"]] == ["sum(visits)", "count(*) filter (where stay > 7)"]
    assert "from sum(visits)" in run.invoke(app, ["release", place]).stdout


def test_a_table_that_is_only_in_memory(tmp_path: Path) -> None:
    with Session(people(), made("release"), ledger=tmp_path / "a.ledger") as asking:
        assert math.isfinite(asking.release("avg(weight) - avg(height)").value)


def test_a_part_that_cannot_be_released_spends_nothing(tmp_path: Path) -> None:
    with session(tmp_path / "a.ledger", made("release")) as asking:
        with pytest.raises(ap.RefusedError, match=r"count\(\*\) filter \(where age > 3\), a part of what is asked"):
            asking.release("sum(weight) / count(*) filter (where age > 3)")
        with pytest.raises(ap.RefusedError, match=r"needs the subset's size.*As a quotient of a sum and a count"):
            asking.release("avg(weight) filter (where age > 3)")
    assert not (tmp_path / "a.ledger").exists()


def test_a_view_answers_an_average_over_a_subset_itself(tmp_path: Path) -> None:
    """Under an assumption that does not cover its parts; one that does comes before a view."""
    with counts(tmp_path) as asking:
        assert asking.plan("avg(visits) filter (where stay > 7)", spend=1.0).mechanism == "subsample"
        assert asking.plan("avg(visits) filter (where visits > 0)", spend=1.0).mechanism == "laplace"
        named = asking.release("avg(visits) filter (where visits > 0)", "subsample")
        assert named.answers[0].parts == ()


def test_the_ledger_as_text_says_what_is_left(tmp_path: Path) -> None:
    with session(tmp_path / "a.ledger", made("release")) as asking:
        asking.release("avg(weight)", "gaussian", spend=0.25)
        assert "budget epsilon 1, delta 1e-06 for everything together; 75.0% of it is left" in str(asking.ledger)
        assert "75.0% of it is left" in asking.ledger._repr_html_()


@pytest.mark.parametrize("parts", range(2, 9))
def test_parts_share_alike_and_never_more_than_there_is(parts: int) -> None:
    """A fifth of everything, five times, is 1.0000000000000002 in floats."""
    whole = counts_problem(queries=tuple(Query("count", where=f"stay > {k}") for k in range(parts)))

    def plan(problem: Any) -> Any:
        if len(problem.queries) > 1:
            raise ap.RefusedError("one at a time")
        return SimpleNamespace(certificate=SimpleNamespace(evidence=None))

    left, used = 1.0, []
    for step, _ in _split(whole, plan):
        used.append(left * step.spend)
        left -= used[-1]
        assert step.spend <= 1
    assert used == pytest.approx([1 / parts] * parts)
    assert step.spend == 1  # all that is left, and so nothing is kept for later
