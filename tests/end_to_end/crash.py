"""Kill releases at random moments. Run as a program by test_crash.py, because only a process without threads may fork safely.

    python -m tests.end_to_end.crash FOLDER PLACE TRIALS SEED

Everything is imported once here; each release runs in a fork of this process and is killed after a random time, counted from
its start or from when the commit begins; two of five exactly before the commit or exactly after it, so that no machine is too
slow or too fast to hit both sides. Releases go on in one ledger until it has `LENGTH` of them, then a new one begins: the first
entry, which creates the ledger, and later ones, which continue it, are both hit. After each kill: the ledger verifies,
every certificate and the rule for all entries hold, whatever was printed is in it, everything recorded before is unchanged, and
the next release succeeds and tells the recorded value, if there is one. PLACE is a path or a URL without a name.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from attrpriv.session.record import recheck

LENGTH = 6
ROWS = 300
COLUMNS = tuple(f"c{k}" for k in range(LENGTH))
MOMENTS = ("start", "commit", "before", "commit", "after")
"""From where the time to the kill is counted; a release that is killed before or after its commit waits there for it."""


def policy() -> ap.Policy:
    names = (*COLUMNS, "income")
    pairs = {f"{a}~{b}": 0.2 if b == "income" else 0.0 for i, a in enumerate(names) for b in names[i + 1 :]}
    return ap.Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[{"secret": "mean(income)", "within": 0.2}],
        assume={"kind": "gaussian", "sd": dict.fromkeys(names, 1.0), "correlation": pairs, "tolerance": 0},
        release=[f"avg({column})" for column in COLUMNS],
    )


def write_people(folder: Path) -> Path:
    generator = np.random.default_rng(1)
    pq.write_table(pa.table({name: generator.normal(size=ROWS) for name in (*COLUMNS, "income")}), folder / "people.parquet")
    return folder / "people.parquet"


def reached(begun: int, *, wait: bool) -> None:
    """Tell that the moment is here, and wait to be killed; who is not killed within a minute goes on."""
    os.write(begun, b"!")
    if wait:
        time.sleep(60)


def release(table: Path, place: str, query: str, report: int, begun: int, moment: str) -> None:
    """In a fork: release, and write what a user would see to `report`; `begun` hears when the moment is reached."""
    if moment == "start":
        os.write(begun, b"!")
    real = Ledger.commit

    def commit(ledger: Ledger, **contents: Any) -> Any:
        if moment in ("commit", "before"):
            reached(begun, wait=moment == "before")
        done = real(ledger, **contents)
        if moment == "after":
            reached(begun, wait=True)
        return done

    Ledger.commit = commit  # type: ignore[assignment,method-assign]
    with ap.Session(pq.read_table(table), policy(), ledger=place) as session:
        released = session.release(query, mechanism="gaussian")
        told = {"value": released.value, "digest": released.entry.digest, "recorded": released.recorded}
        os.write(report, (json.dumps(told) + "\n").encode())


def forked(
    table: Path, place: str, query: str, *, after: float | None = None, moment: str = "start"
) -> tuple[Any, bool, float]:
    """What a release printed, whether it was killed, and how long it took from the moment on."""
    shown, report = os.pipe()
    heard, begun = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            release(table, place, query, report, begun, moment)
        except BaseException as error:
            os.write(report, (json.dumps({"error": str(error)}) + "\n").encode())
        os._exit(0)
    os.close(report)
    os.close(begun)
    os.read(heard, 1)
    start = time.perf_counter()
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    took = time.perf_counter() - start
    with os.fdopen(shown) as stream:
        printed = stream.read()
    os.close(heard)
    return json.loads(printed) if printed else None, os.WIFSIGNALED(status), took


def warm(table: Path, place: str) -> None:
    """Import what a release imports, so that no fork has to; reading a table here would start threads, so a fork tells."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        release(table, place, f"avg({COLUMNS[0]})", nowhere, nowhere, "start")
        recheck("record", Ledger(place).entries())
        with os.fdopen(tell, "w") as stream:
            json.dump(list(sys.modules), stream)
        os._exit(0)
    os.close(tell)
    imported(child, told)


def imported(child: int, told: int) -> None:
    """Import the modules that a fork tells of, once it is done."""
    with os.fdopen(told) as stream:
        names = json.load(stream)
    os.waitpid(child, 0)
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)


def _ended(ledger: Ledger) -> None:
    """A server still does what a killed client asked for last, such as a commit: wait for the lock that it holds meanwhile."""
    storage: Any = ledger._storage
    if hasattr(storage, "_url"):
        import psycopg

        from attrpriv.accounting.storage_postgres import _lock_key

        with psycopg.connect(storage._url) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_lock_key(storage._schema),))


def trial(table: Path, place: str, after: float, moment: str) -> dict[str, Any]:
    """One more release of the ledger at `place`, killed; then the same again, in peace."""
    ledger = Ledger(place)
    before = ledger.entries()
    query = f"avg({COLUMNS[len(before)]})"
    shown, killed, _ = forked(table, place, query, after=after, moment=moment)
    _ended(ledger)
    entries = ledger.entries()
    assert entries[: len(before)] == before
    assert ledger.verify().entries == len(entries) <= len(before) + 1
    recheck("record", entries)
    new = entries[len(before) :]
    if shown is not None:
        assert "error" not in shown, shown
        assert [(entry.answers[0]["value"], entry.digest) for entry in new] == [(shown["value"], shown["digest"])]
    again, *_ = forked(table, place, query)
    assert "error" not in again, again
    assert again["recorded"] == bool(new), "what is recorded is told, what is not is drawn"
    *kept, entry = ledger.entries()
    assert (again["value"], again["digest"]) == (entry.answers[0]["value"], entry.digest)
    assert tuple(kept) == before
    assert not new or new == (entry,)
    recheck("record", [*kept, entry])
    first = not before
    return {"killed": killed, "recorded": bool(new), "shown": shown is not None, "moment": moment, "first": first}


def main() -> None:
    folder, place, trials, draw = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), random.Random(int(sys.argv[4]))
    url = place.startswith("postgresql:")
    ledgers = 3 * trials // LENGTH + 4
    places = [f"{place}#crash{os.getpid()}x{k}" if url else f"{place}{k}.ledger" for k in range(ledgers)]
    table, query = write_people(folder), f"avg({COLUMNS[0]})"
    warm(table, places[-3])
    # How long to wait at most. A machine may be busy now and idle later: who gets away makes the next one wait less.
    most = {one: forked(table, at, query, moment=one)[2] for one, at in zip(("start", "commit"), places[-2:], strict=True)}
    most |= dict.fromkeys(("before", "after"), 0.01)
    told: list[dict[str, Any]] = []
    while sum(one["killed"] for one in told) < trials and len(told) < 3 * trials:
        moment = MOMENTS[len(told) % len(MOMENTS)]
        told.append(trial(table, places[len(told) // LENGTH], draw.random() * most[moment], moment))
        if moment in ("start", "commit"):
            most[moment] *= 1.05 if told[-1]["killed"] else 0.8
    print(json.dumps({"trials": told, "places": places}))


if __name__ == "__main__":
    main()
