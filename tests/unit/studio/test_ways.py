"""A refusal leads to the screen that has a field for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from attrpriv.errors import Cause, RefusedError, Way
from attrpriv.problem.refusal import Refusal
from attrpriv.studio.asked import Asked, Studio
from attrpriv.studio.curve import CurveState, Refused
from attrpriv.studio.folder import Folder
from attrpriv.studio.layout import alert
from attrpriv.studio.pages.compare import field_of, place_of
from attrpriv.studio.pages.hide import _share
from attrpriv.studio.security import Keys
from attrpriv.studio.slider import told_at


@pytest.mark.parametrize(
    ("cause", "needs", "screen", "field"),
    [
        (Cause.PUBLIC_FACT, "bounds of weight", "publish", "#low:weight"),
        (Cause.PUBLIC_FACT, "a finer resolution of weight", "publish", "#step:weight"),
        (Cause.PUBLIC_FACT, "bounds of a b, weight", "publish", "#low:a%20b"),
        (Cause.PUBLIC_FACT, "resolution", "publish", ""),
        (Cause.PUBLIC_FACT, "reference", "know", ""),
        (Cause.PUBLIC_FACT, "categories of gender", "files", ""),
        (Cause.PUBLIC_FACT, "sizes of gender = 'F'", "files", ""),
        (Cause.BUDGET, "", "compare", "#epsilon"),
        (Cause.BUDGET, "delta above 0", "compare", "#delta"),
        (Cause.SECRET, "columns(...) with a reference", "hide", ""),
        (Cause.SIZE, "", None, ""),
    ],
)
def test_what_stands_in_the_way_is_changed_where_there_is_a_field_for_it(
    cause: Cause, needs: str, screen: str | None, field: str
) -> None:
    refusal = Refusal(cause, "a reason", needs=needs)
    assert (place_of(refusal), field_of(refusal)) == (screen, field)


def test_a_table_whose_columns_nobody_can_count_has_no_form_for_it(tmp_path: Path) -> None:
    told = _share(Asked(Studio(Folder(tmp_path), Keys(1)), "hide"), {"when": "other"})
    assert "no column of numbers, texts or truth values" in told
    assert "<form" not in told


def test_reasons_are_a_list_and_escaped() -> None:
    reasons = tuple((name, Refusal(Cause.SIZE, f"<{name}> is too large.")) for name in ("one", "two"))
    told = alert(RefusedError.told((Way("nothing fits.", reasons, "for others: three."),), ()))
    assert "<p>nothing fits.</p>" in told
    assert told.count("<li>") == 3
    assert "<li>one: &lt;one&gt; is too large.</li>" in told


def test_the_slider_tells_the_nearest_way_out_and_not_every_reason_again() -> None:
    near = Refusal(Cause.BUDGET, "delta is 0.", needs="delta above 0", query="avg(x)")
    error = RefusedError.told((Way("nothing fits.", (("one", near), ("two", near))),), (near,))
    told = told_at(CurveState(1, (Refused(1.0, error),), "done"), 1.0)["sentence"]
    assert told == "Epsilon 1: nothing can be released. avg(x): the budget does not suffice; what helps: delta above 0."
    plain = told_at(CurveState(1, (Refused(1.0, RefusedError("no.")),), "done"), 1.0)["sentence"]
    assert plain == "Epsilon 1: nothing can be released. no."
