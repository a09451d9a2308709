"""The frozen query: one name for one question, quoted where SQL would read something else."""

from __future__ import annotations

import dataclasses

import pytest

from attrpriv.errors import QueryError
from attrpriv.queries.query import Query, count, mean, quoted, total


def test_builders_and_their_texts() -> None:
    assert (mean("weight"), total("weight"), count()) == (Query("avg", "weight"), Query("sum", "weight"), Query("count"))
    assert [q.text for q in (mean("weight"), total("weight"), count())] == ["avg(weight)", "sum(weight)", "count(*)"]
    assert str(mean("weight")) == "avg(weight)"


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("weight", "weight"),
        ("_w1", "_w1"),
        ("Weight", "Weight"),
        ("body weight", '"body weight"'),
        ('5" disk', '"5"" disk"'),
        ("größe", '"größe"'),
        ("1st", '"1st"'),
        ("select", '"select"'),
        ("Order", '"Order"'),
        ("force", '"force"'),
        ("a;b", '"a;b"'),
        ("a\nb", '"a\nb"'),
        ("a--b", '"a--b"'),
        ("weight\n", '"weight\n"'),
    ],
)
def test_a_name_is_quoted_where_needed(column: str, text: str) -> None:
    assert quoted(column) == text


@pytest.mark.parametrize(("kind", "column"), [("avg", None), ("sum", None), ("count", "weight")])
def test_a_column_where_it_belongs(kind: str, column: str | None) -> None:
    with pytest.raises(QueryError, match=r"^query: count takes no column, avg and sum take one\. Got (avg|sum|count) of "):
        Query(kind, column)  # type: ignore[arg-type]


def test_a_sum_is_n_times_an_average() -> None:
    assert (total("x").weight(7), mean("x").weight(7)) == (7, 1)


def test_frozen_and_hashable() -> None:
    query = mean("weight")
    with pytest.raises(dataclasses.FrozenInstanceError):
        query.column = "income"  # type: ignore[misc]
    assert len({mean("x"), Query("avg", "x"), total("x")}) == 2
