"""A refusal leads to the screen that has a field for it."""

from __future__ import annotations

import pytest

from attrpriv.errors import Cause, RefusedError, Way
from attrpriv.problem.refusal import Refusal
from attrpriv.studio.layout import alert
from attrpriv.studio.pages.compare import place_of


@pytest.mark.parametrize(
    ("cause", "needs", "screen"),
    [
        (Cause.PUBLIC_FACT, "bounds of weight", "publish"),
        (Cause.PUBLIC_FACT, "a finer resolution of weight", "publish"),
        (Cause.PUBLIC_FACT, "reference", "know"),
        (Cause.PUBLIC_FACT, "categories of gender", "files"),
        (Cause.PUBLIC_FACT, "sizes of gender = 'F'", "files"),
        (Cause.BUDGET, "", "compare"),
        (Cause.SECRET, "columns(...) with a reference", "hide"),
        (Cause.SIZE, "", None),
    ],
)
def test_what_stands_in_the_way_is_changed_where_there_is_a_field_for_it(cause: Cause, needs: str, screen: str | None) -> None:
    assert place_of(Refusal(cause, "a reason", needs=needs)) == screen


def test_reasons_are_a_list_and_escaped() -> None:
    reasons = tuple((name, Refusal(Cause.SIZE, f"<{name}> is too large.")) for name in ("one", "two"))
    told = alert(RefusedError.told((Way("nothing fits.", reasons, "for others: three."),), ()))
    assert "<p>nothing fits.</p>" in told
    assert told.count("<li>") == 3
    assert "<li>one: &lt;one&gt; is too large.</li>" in told
