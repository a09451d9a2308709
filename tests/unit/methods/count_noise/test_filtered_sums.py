"""Sums over the rows of a filter, under counts: their law and their value, each by a slow twin."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.cases.tally_layout import layout
from attrpriv.errors import QueryError
from attrpriv.policy import Policy
from attrpriv.queries.sql import parse_queries
from attrpriv.session.session import Session
from tests.unit.methods.counts import column, problem

VALUES = [-2, 0, 1.5, 3]
LAWS = {"yes": [0.1, 0.2, 0.3, 0.4], "no": [0.4, 0.3, 0.2, 0.1]}
FILTERS: dict[str, Any] = {
    "x > 0": lambda x, smoker: x > 0,
    "x in (-2, 3)": lambda x, smoker: x in (-2, 3),
    "x != 1.5": lambda x, smoker: x != 1.5,
    "smoker = 'yes'": lambda x, smoker: smoker == "yes",
    "not smoker = 'yes'": lambda x, smoker: smoker != "yes",
}


def asked(where: str) -> Any:
    (query,) = parse_queries(f"sum(x) filter (where {where})")
    return query


def stated(**more: Any) -> Any:
    return column("x", VALUES, LAWS["yes"], LAWS["no"], **more)


@pytest.mark.parametrize("where", FILTERS)
def test_the_law_of_what_a_row_adds(where: str) -> None:
    counts = stated()
    found = layout(problem(counts), counts, asked(where))
    unit, origin = Fraction(repr(found.tally.unit)), Fraction(repr(found.tally.origin))
    laws = found.laws(counts)
    for smoker, law in LAWS.items():
        twin: dict[Fraction, float] = {}
        for value, share in zip(VALUES, law, strict=True):
            adds = Fraction(value) if FILTERS[where](value, smoker) else Fraction(0)
            twin[adds] = twin.get(adds, 0.0) + share
        told = {origin + unit * step: pair for step, pair in zip(found.values, laws[smoker], strict=True)}
        assert set(twin) <= set(told)
        for adds, (low, high) in told.items():
            assert low - 1e-12 <= twin.get(adds, 0.0) <= high + 1e-12
            assert high - low < 1e-12


def table(rows: int = 40) -> pa.Table:
    return pa.table({"x": [VALUES[k * 7 % 4] for k in range(rows)], "smoker": ["yes" if k % 3 else "no" for k in range(rows)]})


@pytest.mark.parametrize("where", FILTERS)
def test_the_sum_that_noise_is_added_to(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attrpriv.methods.base.tally.whole_laplace", lambda scale: 0)
    policy = Policy(epsilon=1.0, protect=[{"secret": "count(smoker = 'yes')", "between": [10, 30]}], assume=[stated()])
    with Session(table(), policy, ledger=tmp_path / "a.ledger") as session:
        released = session.release(asked(where), "laplace")
        rows = table().to_pylist()
        assert released.value == sum(row["x"] for row in rows if FILTERS[where](row["x"], row["smoker"]))
        average = f"avg(x) filter (where {where})"
    with Session(table(), policy, ledger=tmp_path / "b.ledger") as session:
        kept = [row["x"] for row in rows if FILTERS[where](row["x"], row["smoker"])]
        found = session.release(average)
        assert found.value == sum(kept) / len(kept)
        assert found.answers[0].to_json()["derived"]["formula"].startswith("sum(x) filter")
        assert session.release(average).recorded


@pytest.mark.parametrize(
    ("where", "more", "message"),
    [
        ("ward = 'a'", {}, "is not covered; ask without the filter"),
        ("x > 0 and smoker = 'yes'", {}, "is not covered"),
        ("smoker is null", {}, "is not covered"),
        ("x > 5", {}, "adds 0 for every row"),
    ],
)
def test_filters_whose_law_is_not_given(where: str, more: dict[str, Any], message: str) -> None:
    counts = stated(**more)
    with pytest.raises(QueryError, match=message):
        layout(problem(counts), counts, asked(where))


def test_rows_of_other_values_may_have_anything() -> None:
    laws = {"yes": LAWS["yes"], "no": LAWS["no"], "rest": LAWS["no"]}
    given = {"x": {name: {"values": VALUES, "probabilities": law} for name, law in laws.items()}}
    counts = stated(given=given, other="rest")
    with pytest.raises(QueryError, match="is not covered"):
        layout(problem(counts), counts, asked("smoker = 'yes'"))
    assert layout(problem(counts), counts, asked("x > 0")).tally.complete
