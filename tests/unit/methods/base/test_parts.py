"""What a part says it covers: each condition by itself, as if the digest of the plan fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.sql import parse_queries


def spread() -> Plan:
    """One statistic that is no average."""
    asked = Problem(
        queries=parse_queries("var_pop(x)"),
        secrets=(Secret("mean(y)", within=1.0),),
        epsilon=0.5,
        n=4,
        bounds={"x": (0.0, 3.0)},
    )
    return plan(asked, "group_dp")


def with_column(made: Plan, **changes: Any) -> Plan:
    return made.model_copy(update={"columns": tuple(one.model_copy(update=changes) for one in made.columns)})


FORGED: dict[str, Callable[[Any], Plan]] = {
    "another answer": lambda made: with_column(made, column="avg(x)"),
    "a clip of the answer": lambda made: with_column(made, clip=(0.0, 1.0)),
    "a public answer": lambda made: with_column(made, centre=0.5),
    "two answers": lambda made: made.model_copy(update={"columns": made.columns * 2}),
    "none": lambda made: made.model_copy(update={"columns": ()}),
    "two questions": lambda made: made.model_copy(update={"queries": made.queries * 2}),
    "another question": lambda made: made.model_copy(update={"queries": parse_queries("median(x)")}),
    "over some rows": lambda made: made.model_copy(update={"queries": parse_queries("var_pop(x) filter (where y > 0)")}),
    "another column filled": lambda made: made.model_copy(
        update={"statistic": made.statistic.model_copy(update={"fills": {"y": None}})}
    ),
    "another column clipped": lambda made: made.model_copy(
        update={"statistic": made.statistic.model_copy(update={"clips": {"y": (0.0, 3.0)}})}
    ),
    "another width": lambda made: made.model_copy(
        update={"statistic": made.statistic.model_copy(update={"range": (0.0, 99.0)})}
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_statistic_is_covered_as_it_was_counted_on(name: str) -> None:
    made = spread()
    assert made.part.covered(made)
    forged = FORGED[name](made)
    assert not forged.part.covered(forged)


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("common_noise", lambda self: ((1.0,),)),
        ("reads_categories", True),
        ("statistics_read", lambda self: ("mean(y)",)),
        ("suits", lambda self, columns, n, *, clipped: False),
        ("covers_statistic", lambda self, *told: False),
    ],
)
def test_a_proof_that_counts_on_more_covers_no_statistic(what: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that answers have in common, categories or sensitive statistics beside it: none of them is drawn or read here."""
    made = spread()
    monkeypatch.setattr(type(made.certificate.evidence), what, value)
    assert not made.part.covered(made)
