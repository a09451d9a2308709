"""Pictures of plans, rankings, views and ledgers: they say what the values say, in words as well as in marks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from attrpriv.errors import UsageError
from attrpriv.methods.choice.error_curve import error_curve
from attrpriv.pictures import subjects
from attrpriv.pictures.marks import Bar, Dot, Line, Picture
from attrpriv.pictures.svg import file_svg
from attrpriv.policy import Policy
from attrpriv.problem.reference import Reference
from attrpriv.session.session import Session

ROOT = Path(__file__).resolve().parents[3]
STUDENTS = Policy.load(ROOT / "examples" / "students" / "students.yaml")


def session() -> Session:
    return Session(pd.DataFrame({"weight": [150, 151] * 5_000, "income": [60_000, 60_001] * 5_000}), STUDENTS)


def lines(picture: Picture) -> dict[str, Line]:
    return {mark.label: mark for mark in picture.marks if isinstance(mark, Line)}


def test_the_trade_off_has_both_curves_and_a_coin() -> None:
    told = session().plan(mechanism="transport").tells(1_000)
    drawn = subjects.trade_off(told)
    assert set(lines(drawn)) == {"a coin", "this release: at most 54.7% right", "exact answers: 70.0% right"}
    assert lines(drawn)["exact answers: 70.0% right"].points == told.before.curve
    assert str(told) in drawn.description
    ElementTree.fromstring(file_svg(drawn))


def test_what_is_not_known_is_not_drawn() -> None:
    told = session().plan(mechanism="transport").tells(1e6)
    assert set(lines(subjects.trade_off(told))) == {"a coin"}


def test_protection_fades_with_distance() -> None:
    made = session().plan(mechanism="gaussian")
    drawn = subjects.fading([made.tells(x) for x in (100, 1_000, 20_000)])
    assert [x for x, _ in lines(drawn)["this release"].points] == [100, 1_000, 20_000]
    assert lines(drawn)["this release"].points[-1][1] > 0.99
    with pytest.raises(UsageError, match="two distances"):
        subjects.fading([made.tells(100)])


def test_belief_before_and_after() -> None:
    found = session().plan(mechanism="gaussian").belief(at=60_000)
    drawn = lines(subjects.believed(found))
    assert set(drawn) == {"before anything", "exact answers", "this release", "worst release"}
    assert tuple(y for _, y in drawn["this release"].points) == found.typical


@pytest.mark.parametrize("at", [30_000.0, 110_000.0, 195_000.0])
def test_names_of_hills_are_apart_and_within(at: float) -> None:
    """Where all end at zero, names at the ends would cover one another."""
    drawn = subjects.believed(session().plan(mechanism="gaussian").belief(at=at))
    places = [mark.label_at for mark in lines(drawn).values()]
    heights = sorted(drawn.y.share(place[1]) for place in places if place)
    assert len(heights) == 4
    assert all(above - below > 0.06 for below, above in pairwise(heights))
    assert all(0 <= drawn.x.share(place[0]) < 0.68 for place in places if place)


def test_mechanisms_stand_side_by_side_and_the_chosen_one_is_marked() -> None:
    ranking = session().rank()
    drawn = subjects.mechanisms(ranking)
    bars = [mark for mark in drawn.marks if isinstance(mark, Bar)]
    assert ranking.chosen is not None
    assert [drawn.y.names[bar.place] for bar in bars if bar.marked] == [ranking.chosen.mechanism]
    errors = {plan.mechanism: plan.error.rmse for plan in ranking.plans}
    assert {drawn.y.names[bar.place]: bar.value for bar in bars} == errors


def test_error_against_epsilon_has_the_chosen_point() -> None:
    ranking = session().rank(mechanism="gaussian")
    curve = error_curve(ranking)
    assert [round(epsilon, 9) for epsilon, _ in curve.points] == [0.1, 0.2, 0.5, 1, 2, 5, 10]
    errors = [error for _, error in curve.points]
    assert errors == sorted(errors, reverse=True)
    (dot,) = (mark for mark in subjects.against_epsilon(curve).marks if isinstance(mark, Dot))
    assert ranking.chosen is not None
    assert (dot.x, dot.y) == (1.0, ranking.chosen.error.rmse)


def test_a_view_shows_what_it_keeps() -> None:
    policy = Policy(epsilon=1.0, protect=[{"secret": "share(sex = 'F')", "between": (0.3, 0.6)}])
    view = Session(pd.DataFrame({"sex": ["F", "M"] * 50}), policy).view_plan()
    drawn = subjects.kept(view)
    assert f"{view.rows:,} of 100 rows" in drawn.title
    for cell in view.cells:
        assert f"{cell.name}: {cell.keep:,}" in drawn.y.names
    dots = [mark for mark in drawn.marks if isinstance(mark, Dot)]
    assert [dot.x for dot in dots] == [cell.keep / cell.high for cell in view.cells]


def test_a_reference_view_is_compared_with_a_table_like_the_public() -> None:
    """Any number of its rows may be of either kind: 0.9 times the public share is sure, less five standard deviations."""
    law = Reference.checked({"sex": {"values": ["F", "M"], "shares": [0.4, 0.6]}, "least_density": 0.9, "failure": 1e-9})
    policy = Policy(epsilon=1.0, delta=1e-6, protect=[{"secret": "columns(sex)"}], reference=law)
    view = Session(pd.DataFrame({"sex": ["F", "M"] * 500}), policy).view_plan()
    drawn = subjects.kept(view)
    dots = [mark for mark in drawn.marks if isinstance(mark, Dot)]
    assert [dot.x for dot in dots] == pytest.approx([view.cells[0].keep / 400, view.cells[1].keep / 600])
    assert all(0.6 < dot.x < 0.9 and dot.low is None for dot in dots)
    assert "in a table like the public" in drawn.x.label


def test_the_budget_falls_with_every_release(tmp_path: Path) -> None:
    table = pd.DataFrame({"weight": [150, 151] * 5_000, "income": [60_000, 60_001] * 5_000})
    with Session(table, STUDENTS, tmp_path / "l") as one:
        with pytest.raises(UsageError, match="nothing has been released"):
            subjects.budget(one.ledger.left())
        one.release("avg(weight)", "gaussian", spend=0.5)
        one.release("sum(weight)", "gaussian", spend=0.5)
        left = one.ledger.left()
        shown = subjects.budget(left)
    assert [share for _, share in left] == sorted((share for _, share in left), reverse=True)
    assert 0.4 < left[0][1] < 0.6
    (line,) = lines(shown).values()
    assert line.points[0] == (0.0, 1.0)
    assert line.stepped


@pytest.mark.parametrize("call", ["plan", "belief", "ranking", "epsilon", "view"])
def test_plot_draws_on_axes(call: str) -> None:
    matplotlib = pytest.importorskip("matplotlib.figure", reason="attrpriv[plots] is not installed")
    axes: Any = matplotlib.Figure().add_subplot()
    if call == "view":
        policy = Policy(epsilon=1.0, protect=[{"secret": "share(sex = 'F')", "between": (0.3, 0.6)}])
        drawn = Session(pd.DataFrame({"sex": ["F", "M"] * 50}), policy).view_plan().plot(axes)
    elif call in ("plan", "belief"):
        drawn = session().plan().plot(axes, what="belief" if call == "belief" else "tells")
    else:
        drawn = session().rank().plot(axes, what="epsilon" if call == "epsilon" else "mechanisms")
    assert drawn is axes
    assert axes.get_title(loc="left")
