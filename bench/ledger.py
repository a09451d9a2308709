"""What a ledger of many entries costs: reading it for the next plan, and recording a release.

    python bench/ledger.py [--entries 10000] [--runs 15] [--postgres URL]

`read` is everything that is asked of the ledger before a plan: the first and the last entry, and whether the question was
answered before. `record` is what a release adds beyond the scan: deciding and writing durably. Beside it stands the bare insert
of as many bytes into an empty SQLite file, opened, synced and closed in the same way, which depends on the disk alone. `verify`
checks every entry and has no limit. For a file, the benchmark fails where reading takes more than 50 ms, or recording
more than 20 ms and, on a slow disk, more than 10 ms beyond the bare insert.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from attrpriv import Gaussian, Secret, plan
from attrpriv.accounting import chain
from attrpriv.accounting.history import History, Rows
from attrpriv.accounting.ledger import Ledger
from attrpriv.framework import Problem
from attrpriv.queries.query import Query
from attrpriv.record import details_of

MOST_READ, MOST_RECORD, MOST_BEYOND = 0.050, 0.020, 0.010


def median(work: Callable[[], object], runs: int) -> float:
    work()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def release(value: float = 148.0) -> dict[str, Any]:
    """A release as a session records it."""
    made = plan(
        Problem(
            queries=(Query("avg", "weight"),),
            secrets=(Secret("mean(income)", between=(20_000.0, 200_000.0)),),
            epsilon=1.0,
            delta=1e-6,
            n=10_000,
            theta=(Gaussian(sd={"weight": 25.0, "income": 30_000.0}, correlation={("weight", "income"): 0.3}, tolerance=0),),
            resolution={"weight": 0.001, "income": 1.0},
            policy_digest="ab" * 32,
        ),
        "gaussian",
    )
    answers = [{"query": "avg(weight)", "value": value, "interval": {"level": 0.95, "low": value - 1, "high": value + 1}}]
    entries = made.entries(chosen=True)
    return {"time": "now", "policy_digest": "ab" * 32, "plan": entries, "answers": answers, "details": details_of(made)}


def other_question(said: dict[str, Any], number: int) -> dict[str, Any]:
    """The same for a table of another length, so that no question is asked twice."""
    return {**said, "plan": [{**one, "n": 10_000 + number} for one in said["plan"]]}


def fill(ledger: Ledger, entries: int) -> None:
    """So many entries in one transaction: syncing each one would take minutes."""
    said = release()

    def add(rows: Rows | None) -> tuple[chain.Row, None]:
        head = History(rows).head
        for number in range(2, entries):
            entry = chain.next_entry(chain.contents(kind="release", **other_question(said, number)), None, head)
            rows.insert(chain.row_of(entry))  # type: ignore[union-attr]
            head = entry
        last = chain.next_entry(chain.contents(kind="release", **other_question(said, entries)), None, head)
        return chain.row_of(last), None

    ledger.commit(**other_question(said, 1))
    ledger._storage.write(add)


def looked(history: History) -> object:
    return history.first, history.head, history.find("ab" * 32)


def bare_insert(path: Path, size: int) -> Callable[[], None]:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE bare (text TEXT)")

    def insert() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("INSERT INTO bare VALUES (?)", ["x" * size])

    return insert


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--postgres", default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        ledger = Ledger(Path(place) / "x.ledger") if given.postgres is None else Ledger(given.postgres, f"bench{os.getpid()}")
        said, numbers = release(), iter(range(10**6, 10**7))
        empty = median(lambda: chain.canonical_json(said), given.runs)
        fill(ledger, given.entries)
        size = len(chain.canonical_json(said))
        print(f"{given.entries:,} entries of {size:,} characters; one as JSON {empty * 1e3:.2f} ms")
        read = median(lambda: ledger.look(looked), given.runs)

        def record() -> None:
            ledger.commit(**other_question(said, next(numbers)), allowed=lambda history: None)

        bare = median(bare_insert(Path(place) / "bare", size), given.runs)
        took = median(record, given.runs)
        verify = median(ledger.verify, 1)
    print(f"read   {read * 1e3:8.1f} ms")
    print(f"record {took * 1e3:8.1f} ms; a bare insert {bare * 1e3:.1f} ms")
    print(f"verify {verify * 1e3:8.1f} ms")
    if given.postgres is None and (read > MOST_READ or took > max(MOST_RECORD, bare + MOST_BEYOND)):
        sys.exit("the ledger is too slow")


if __name__ == "__main__":
    main()
