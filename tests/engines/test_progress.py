"""Waiting for an engine: Ctrl-C stops it, a watcher is told, and nothing of a failure stays."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.engines import progress
from attrpriv.engines.progress import waited, watched
from attrpriv.engines.tables import Source, open_table, quietly

PLANTED = "PLANTED-4711"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    pq.write_table(pa.table({"x": [float(k) for k in range(1000)]}), tmp_path / "t.parquet")
    return open_table(tmp_path / "t.parquet")


def endless(source: Source) -> Any:
    """A query that would take hours."""
    return source.engine.con.execute("SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b").fetchall()


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_stops_the_engine_and_comes_through(source: Source) -> None:
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        quietly(lambda: waited(source.engine, lambda: endless(source)))
    for thread in threading.enumerate():
        if thread.name == "attrpriv engine":
            thread.join(10)  # it has nothing left to do
    assert "attrpriv engine" not in [one.name for one in threading.enumerate()]
    assert source.run(source.table.aggregate(n=source.table.count())) == {"n": 1000}  # the connection still works


def test_a_watcher_is_told_of_a_query_that_takes_long(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.01)
    told: list[float] = []
    with watched(lambda share, rows: told.append(share)):
        slow = "SELECT sum(sqrt(range) * sin(range)) FROM range(5000000)"
        waited(source.engine, lambda: source.engine.con.execute(slow).fetchall())
    assert told[-1] == 1.0
    assert all(0 <= share <= 1 for share in told)
    assert source.engine.con.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]


def test_a_quick_query_is_not_announced(source: Source) -> None:
    told: list[float] = []
    with watched(lambda share, rows: told.append(share)):
        source.run(source.table.aggregate(n=source.table.count()))
    assert told == []


def test_a_failure_comes_through_and_is_not_kept(source: Source) -> None:
    def failing() -> None:
        raise ValueError(PLANTED)

    with pytest.raises(ValueError, match=PLANTED):
        waited(source.engine, failing)
    assert quietly(lambda: waited(source.engine, failing)) is None
    gc.collect()
    assert not [held for held in gc.get_objects() if isinstance(held, BaseException) and PLANTED in str(held)]


def test_another_thread_waits_by_itself(source: Source) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(source.run(source.table.aggregate(n=source.table.count()))))
    thread.start()
    thread.join(30)
    assert found == [{"n": 1000}]


def test_the_thread_ends_before_the_answer_is_given(source: Source) -> None:
    def seven() -> int:
        time.sleep(0.01)
        return 7

    assert waited(source.engine, seven) == 7
    assert "attrpriv engine" not in [one.name for one in threading.enumerate()]
