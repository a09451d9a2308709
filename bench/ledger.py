"""What a table with many releases costs: the next plan, and what a release adds beyond the scan.

    python bench/ledger.py [--entries 10000] [--runs 15] [--postgres URL]

The ledger holds so many releases under a network of parameters, each planned jointly with all before it. `plan` is all of
`Session.plan`: reading the ledger, deciding, planning and proving. `release` is all of `Session.release` but the scan. Beside
it stands the bare insert of as many bytes into an empty SQLite file, opened, synced and closed in the same way, which depends
on the disk alone. `again` is a recorded answer told again, and `verify` checks every entry; both have no limit. For a file, the
benchmark fails where a plan takes more than 50 ms, or a release more than 20 ms and, on a slow disk, more than 10 ms beyond the
bare insert.

`command` is the processor time of `attrpriv ledger --verify` as a whole process, against a process that reads every row, hashes
it and parses its JSON, and checks nothing. With 10,000 entries it was 4.2 times as much when every entry was kept and all of
attrpriv was loaded; now it is 2.1 times. About half of that is starting: Python, the command line, the policy.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from attrpriv import Plan, Policy, Session
from attrpriv.accounting import hash_chain as chain
from attrpriv.accounting.hash_chain import Entry, Rows
from attrpriv.accounting.ledger import Ledger
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.queries.sql import parse_queries
from attrpriv.session.record import details_of

reading: Any = importlib.import_module("attrpriv.session.table_reads")

MOST_PLAN, MOST_RELEASE, MOST_BEYOND = 0.050, 0.020, 0.010
ROWS = 100
SPEND = 1e-4
NETWORK = """network "town" {}
variable i { type discrete[2] {low, high}; }
variable a { type discrete[2] {low, high}; }
probability (i) { default 0.5 0.5; }
probability (a | i) { (low) 0.9 0.1; (high) 0.1 0.9; }
"""
POLICY = f"""attrpriv: 1
data: town.csv
rows: {ROWS}
epsilon: 0.5
protect:
  - parameter: i
assume:
  kind: parameter_network
  file: town.bif
  tolerance: 0
"""


def median(work: Callable[[], object], runs: int) -> float:
    work()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def town(folder: Path) -> Path:
    (folder / "town.bif").write_text(NETWORK, encoding="utf-8")
    (folder / "town.csv").write_text("i,a\n" + "1,1\n1,0\n" * (ROWS // 2), encoding="utf-8")
    (folder / "town.yaml").write_text(POLICY, encoding="utf-8")
    return folder / "town.yaml"


def question(number: int) -> str:
    return f"count(*) filter (where a > 0.{number + 10**7})"


def planned(policy: Policy, number: int, before: Plan | None) -> Plan:
    """The next release, on top of everything before it."""
    problem = policy.problem(parse_queries(question(number)), ROWS, {})
    earlier = None if before is None else before.certificate.evidence
    return plan_problem(problem.model_copy(update={"spend": SPEND, "earlier": earlier}), "markov_quilt")


def entries(policy: Policy, count: int) -> Iterator[Entry]:
    """A ledger as a session would have written it, release by release."""
    head: Entry | None = None
    made: Plan | None = None
    for number in range(count):
        made = planned(policy, number, made)
        said = chain.contents(
            kind="release",
            time="2026-01-01T00:00:00+00:00",
            policy_digest=policy.digest,
            plan=made.entries(chosen=True),
            answers=[{"query": made.queries[0].text, "value": number, "interval": None}],
            details=details_of(made),
        )
        account: dict[str, Any] = {"joint": number + 1, "policy": 1, "n": ROWS, "table": "town.csv", "individuals": 0.0}
        head = chain.next_entry(said, {**account, "stated": policy.stated} if head is None else account, head)
        yield head


def fill(ledger: Ledger, policy: Policy, count: int) -> Entry:
    """So many entries in two transactions: syncing each one would take minutes."""
    made = entries(policy, count)
    first = next(made)
    ledger._storage.write(lambda rows: (chain.row_of(first), None))
    last: list[Entry] = [first]

    def add(rows: Rows | None) -> tuple[chain.Row, None]:
        last.append(next(made))
        for entry in made:
            rows.insert(chain.row_of(last[-1]))  # type: ignore[union-attr]
            last.append(entry)
        return chain.row_of(last[-1]), None

    ledger._storage.write(add)
    assert ledger.look(lambda history: (len(history), history.head)) == (count, last[-1])
    return last[-1]


def bare_insert(path: Path, size: int) -> Callable[[], None]:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE bare (text TEXT)")

    def insert() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("INSERT INTO bare VALUES (?)", ["x" * size])

    return insert


BARE_PASS = """
import hashlib, json, sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute("SELECT * FROM entries"):
    hashlib.sha256("".join(map(str, row)).encode()).hexdigest()
    for text in (row[4], row[5], row[8], row[9]):
        json.loads(text)
"""


def processor(*arguments: str) -> float:
    """The processor time of a process of its own: the least of three, because others disturb it."""
    taken = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


class Scans:
    """How long the table was being read."""

    def __init__(self) -> None:
        self.taken = 0.0
        self._real = reading.scan
        reading.scan = self._timed

    def _timed(self, *given: Any) -> Any:
        start = time.perf_counter()
        try:
            return self._real(*given)
        finally:
            self.taken += time.perf_counter() - start


def released(session: Session, scans: Scans, runs: int) -> float:
    """The median time of a release without its scan."""
    taken = []
    for number in range(runs + 1):
        scans.taken, start = 0.0, time.perf_counter()
        session.release(question(10**6 + number), spend=SPEND)
        taken.append(time.perf_counter() - start - scans.taken)
    return statistics.median(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--postgres", default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        place = folder / "town.ledger" if given.postgres is None else f"{given.postgres}#bench{os.getpid()}"
        path, ledger, scans = town(folder), Ledger(place), Scans()
        start = time.perf_counter()
        last = fill(ledger, Policy.load(path), given.entries)
        size = len(chain.canonical_json(last.to_json()))
        print(f"{given.entries:,} releases of {size:,} characters, planned in {time.perf_counter() - start:.0f} s")
        with Session(policy=path, ledger=place) as session:
            plan = median(lambda: session.plan(question(2 * 10**6), spend=SPEND), given.runs)
            again = median(lambda: session.release(question(given.entries // 2)), given.runs)
            bare = median(bare_insert(folder / "bare", size), given.runs)
            took = released(session, scans, given.runs)
        verify = median(ledger.verify, 1)
        left = ledger.look(lambda history: len(history))
        if given.postgres is None:
            command = processor("-m", "attrpriv", "ledger", str(path), "--verify")
            passed = processor("-c", BARE_PASS, str(place))
            print(f"command {command * 1e3:8.1f} ms of processor time, {command / passed:.1f} times a bare pass")
    print(f"plan    {plan * 1e3:8.1f} ms")
    print(f"release {took * 1e3:8.1f} ms beyond the scan; a bare insert {bare * 1e3:.1f} ms; {left:,} entries then")
    print(f"again   {again * 1e3:8.1f} ms")
    print(f"verify  {verify * 1e3:8.1f} ms")
    if given.postgres is None and (plan > MOST_PLAN or took > max(MOST_RELEASE, bare + MOST_BEYOND)):
        sys.exit("the ledger is too slow")


if __name__ == "__main__":
    main()
