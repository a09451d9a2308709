"""Released values as data frames: the same columns and types, whatever was released."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.methods.base.accuracy import Spread
from attrpriv.session.release import Answer, Release, Value
from tests.unit.notebook.test_html import school

COLUMNS = ["query", "group", "value", "low", "high", "level", "mechanism"]


@pytest.fixture
def release(tmp_path: Path) -> Release:
    _, session = school(tmp_path)
    return session.release()


def grouped(release: Release) -> Release:
    """Groups, a whole number, and an interval that is not known."""
    query = release.answers[0].query
    values = (Value(3, Spread("laplace", 2.0), "F"), Value(2.5, Spread("gaussian", math.inf), "M"))
    return replace(release, answers=(Answer(query, values),))


def test_a_row_for_each_value(release: Release) -> None:
    frame = release.to_frame()
    assert list(frame.columns) == COLUMNS
    (row,) = frame.to_dict("records")
    low, high = release.interval(0.95)
    assert (row["query"], row["value"], row["low"], row["high"]) == ("avg(weight)", release.value, low, high)
    assert (row["level"], row["mechanism"]) == (0.95, release.plan.mechanism)
    assert frame["group"].isna().all()
    assert release.to_frame(level=0.5)["low"][0] == release.interval(0.5)[0]


def test_groups_whole_numbers_and_unknown_intervals(release: Release) -> None:
    table = grouped(release).to_frame("arrow")
    assert table.schema.types == [pa.string(), pa.string(), *[pa.float64()] * 4, pa.string()]
    assert table.column("group").to_pylist() == ["F", "M"]
    assert table.column("value").to_pylist() == [3.0, 2.5]
    assert table.column("low").to_pylist() == [-3.0, None]  # 3 - ceil(2 ln 20)
    assert table.schema == release.to_frame("arrow").schema
    name, value, interval, _ = grouped(release).rows()[1]
    assert (name, value, interval) == ("avg(weight): M", "2.50000", "none is known")


def test_polars(release: Release) -> None:
    pytest.importorskip("polars", reason="needs the extra polars")
    frame = grouped(release).to_frame("polars")
    assert frame.columns == COLUMNS
    assert frame["value"].to_list() == [3.0, 2.5]
    assert frame["low"].to_list() == [-3.0, None]


def test_what_cannot_be_made(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ap.UsageError, match=r"^kind: must be one of pandas, polars, arrow\. Got 'csv'\.$"):
        release.to_frame("csv")  # type: ignore[arg-type]
    with pytest.raises(ap.UsageError, match=r"^level: "):
        release.to_frame(level=1.0)
    monkeypatch.setattr("attrpriv.notebook.frames.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ap.UsageError, match=r"^kind: polars is not installed\."):
        release.to_frame("polars")
