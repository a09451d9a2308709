"""Rankings, views and refusals in a notebook: short HTML, data frames, and errors without the way through our code."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from attrpriv.errors import AttrprivError, UsageError
from attrpriv.policy import Policy
from attrpriv.session.session import Session

ROOT = Path(__file__).resolve().parents[3]
STUDENTS = Policy.load(ROOT / "examples" / "students" / "students.yaml")


def session() -> Session:
    return Session(pd.DataFrame({"weight": [150, 151] * 5_000, "income": [60_000, 60_001] * 5_000}), STUDENTS)


def refused() -> AttrprivError:
    with pytest.raises(AttrprivError) as caught:
        session().plan("avg(weight)", "optimal")
    return caught.value


def test_a_ranking_is_a_short_table() -> None:
    ranking = session().rank()
    assert ranking.chosen is not None
    html = ranking._repr_html_()
    assert f"{ranking.chosen.mechanism}, chosen" in html
    assert html.count("<details>") == 1
    assert "<script" not in html
    assert len(html) < 20_000


def test_a_ranking_is_a_frame_with_what_was_refused() -> None:
    ranking = session().rank()
    frame = ranking.to_frame()
    assert list(frame["mechanism"]) == [*(plan.mechanism for plan in ranking.plans), *ranking.refused]
    assert ranking.chosen is not None
    assert list(frame.loc[frame["chosen"], "mechanism"]) == [ranking.chosen.mechanism]
    assert frame.loc[frame["chosen"], "rmse"].item() == ranking.chosen.error.rmse
    assert frame["refused"].notna().sum() == len(ranking.refused)
    assert ranking.to_frame("arrow").num_rows == len(frame)


def test_a_view_is_a_frame_and_says_whether_it_was_written(tmp_path: Path) -> None:
    policy = Policy(epsilon=1.0, protect=[{"secret": "share(sex = 'F')", "between": (0.3, 0.6)}])
    with Session(pd.DataFrame({"sex": ["F", "M"] * 50}), policy, tmp_path / "l") as one:
        plan = one.view_plan()
        assert "Nothing has been read or drawn." in plan._repr_html_()
        assert list(plan.to_frame()["keep"]) == [cell.keep for cell in plan.cells]
        assert plan.written_to("<b>.parquet")._repr_html_().count("Written to &lt;b&gt;.parquet") == 1
        assert plan.written is None  # the plan itself stays one
        assert plan.written_to("a") == plan


def test_refusals_are_a_frame() -> None:
    error = refused()
    frame = error.to_frame()
    assert list(frame.columns) == ["query", "mechanism", "cause", "what_helps", "reason"]
    assert list(frame["mechanism"]) == [one.method for one in error.refusals]
    assert error.refusals[0].to_frame()["reason"].item() == error.refusals[0].reason
    with pytest.raises(UsageError, match="without"):
        UsageError("x: is wrong.").to_frame()


def test_an_error_is_shown_without_the_way_through_our_code() -> None:
    lines = refused()._render_traceback_()
    assert len(lines) <= 4
    assert lines[0].startswith("RefusedError: avg(weight): ")
    assert not any("site-packages" in line or "File " in line for line in lines)
    assert UsageError("x: is\x1b[2J wrong.")._render_traceback_() == ["UsageError: x: is\\x1b[2J wrong."]


def test_ipython_shows_it_so() -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed").InteractiveShell()
    shown: list[str] = []
    shell._showtraceback = lambda kind, value, lines: shown.extend(lines)
    shell.run_cell("from attrpriv.errors import UsageError\nraise UsageError('x: is wrong.')")
    assert shown == ["UsageError: x: is wrong."]
