"""A best guess stands beside what was released: in Python, as text, as HTML and as JSON; never in the ledger."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.cli import render
from attrpriv.methods.choice.best_guess import BestGuess
from attrpriv.session.release import Release, with_guesses

QUERY = "count(*) filter (where stay > 7)"
TABLE = pa.table({"smoker": ["yes"] * 350 + ["no"] * 650, "stay": [8] * 270 + [1] * 730})


def policy(**changes: Any) -> ap.Policy:
    smokers = ap.Secret("count(smoker = 'yes')", between=(200, 500), within=50)
    given = {"stay > 7": {"yes": (0.36, 0.44), "no": (0.18, 0.22)}}
    stated: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "protect": [smokers],
        "assume": ap.Counts(sensitive="smoker", given=given, prior={"yes": 0.35}),
    }
    return ap.Policy(**(stated | changes))


def released(place: Path, query: str = QUERY, **changes: Any) -> Release:
    with ap.Session(TABLE, policy(**changes), ledger=place / "x.ledger") as session:
        return session.release(query)


def test_it_stands_beside_the_value(tmp_path: Path) -> None:
    found = released(tmp_path)
    guess = found.best_guess
    assert guess is not None
    assert guess.constant == 270
    assert guess.value == pytest.approx(270 + guess.weight * (found.value - 270))
    assert (guess.weight, guess.error) == pytest.approx((0.73, 15.9), rel=3e-3)
    assert guess.error < 0.95 * (found.plan.error.rmse or 0.0)
    assert isinstance(found.value, int)  # what was released is as it was
    low, high = found.interval(0.95)
    assert (low + high) / 2 == found.value


def test_it_is_shown_below_the_release(tmp_path: Path) -> None:
    found = released(tmp_path)
    (row,) = found.guess_rows()
    assert row[0] == f"best guess of {QUERY}"
    assert row[2:] == ("expected error 15.92", "73% released, 27% assumed")
    assert len(found.rows()) == 1
    assert str(found).splitlines()[1].startswith(f"best guess of {QUERY} = ")
    assert "best guess of count" in found._repr_html_()
    told = found.to_json()["answers"][0]
    assert told["value"] == found.value
    assert BestGuess(**told["best_guess"]) == found.best_guess
    assert "best guess" not in repr(found)


def test_the_ledger_holds_the_answer_alone(tmp_path: Path) -> None:
    """Asked again, the same guess follows from the recorded answer; the record has no trace of it."""
    first, again = released(tmp_path), released(tmp_path)
    assert again.recorded
    assert again.best_guess == first.best_guess
    assert [set(answer) for answer in again.entry.answers] == [{"query", "value", "interval"}]
    assert "guess" not in str(again.entry.to_json())


def test_an_answer_released_under_another_assumption_gets_none(tmp_path: Path) -> None:
    found = released(tmp_path)
    other = with_guesses(Release(found.plan, found.answers, found.entry), policy(epsilon=0.9), {})
    assert other.guesses == {}


def test_what_is_computed_gets_none(tmp_path: Path) -> None:
    found = released(tmp_path, f"2 * {QUERY}")
    assert found.guesses == {}
    assert found.best_guess is None


def test_without_a_prior_there_is_nothing_to_weigh(tmp_path: Path) -> None:
    given = {"stay > 7": {"yes": (0.36, 0.44), "no": (0.18, 0.22)}}
    found = released(tmp_path, assume=ap.Counts(sensitive="smoker", given=given))
    assert found.best_guess is None
    assert "best_guess" not in found.to_json()["answers"][0]


def test_a_guess_that_fails_never_takes_the_answer_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is recorded and spent by then."""

    def broken(*_: Any) -> None:
        raise ValueError("planted")

    monkeypatch.setattr("attrpriv.session.release.weighing", broken)
    assert released(tmp_path).guesses == {}


def test_plan_and_release_show_it_in_their_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ap.Session(TABLE, policy(), ledger=tmp_path / "x.ledger") as session:
        ranked = session.ranked(QUERY)
        render.show_ranked(ranked, None)
        planned = capsys.readouterr().out
        render.show_release(session.release(QUERY))
    told = capsys.readouterr().out
    assert re.search(r"best guess: release \+ constant +73% released +15\.92 +free\n", planned)
    assert re.search(r"best guess of count\(\*\) filter \(where stay > 7\) +[\d.,]+ +expected error 15\.92 +73% released", told)
    assert [set(row["best_guess"]) for row in ranked.entries() if "best_guess" in row] == [{"constant", "weight", "error"}]
