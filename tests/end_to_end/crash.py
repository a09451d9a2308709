"""Kill releases at random moments. Run as a program by test_crash.py, because only a process without threads may fork safely.

    python -m tests.end_to_end.crash FOLDER PLACE TRIALS SEED

Everything is imported once here; each release runs in a fork of this process and is killed after a random time, most of them
counted from when the commit begins. After each kill: the ledger verifies, whatever was printed is in it, and the next release
succeeds and tells the recorded value, if there is one. PLACE is a path or a URL without a name; each trial has its own.
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

import pyarrow.parquet as pq

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from tests.end_to_end.material import policy


def release(table: Path, place: str, report: int, begun: int | None) -> None:
    """In a fork: release, and write what a user would see to `report`; `begun` hears when the commit begins."""
    if begun is not None:
        real = Ledger.commit

        def commit(ledger: Ledger, **contents: Any) -> Any:
            os.write(begun, b"!")
            return real(ledger, **contents)

        Ledger.commit = commit  # type: ignore[assignment,method-assign]
    with ap.Session(pq.read_table(table), ap.Policy(**policy("data")), ledger=place) as session:
        released = session.release(mechanism="gaussian")
        told = {"value": released.value, "digest": released.entry.digest, "recorded": released.recorded}
        os.write(report, (json.dumps(told) + "\n").encode())


def forked(table: Path, place: str, *, after: float | None = None, commit: bool = False) -> tuple[Any, bool, float]:
    """What a release printed, whether it was killed, and how long it took: all from its start, or from its commit on."""
    shown, report = os.pipe()
    heard, begun = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            release(table, place, report, begun if commit else None)
        except BaseException as error:
            os.write(report, (json.dumps({"error": str(error)}) + "\n").encode())
        os._exit(0)
    os.close(report)
    os.close(begun)
    if commit:
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
        release(table, place, os.open(os.devnull, os.O_WRONLY), None)
        with os.fdopen(tell, "w") as stream:
            json.dump(list(sys.modules), stream)
        os._exit(0)
    os.close(tell)
    with os.fdopen(told) as stream:
        names = json.load(stream)
    os.waitpid(child, 0)
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)


def trial(table: Path, place: str, after: float, *, commit: bool) -> dict[str, bool]:
    shown, killed, _ = forked(table, place, after=after, commit=commit)
    ledger = Ledger(place)
    entries = ledger.entries()
    assert ledger.verify().entries == len(entries) <= 1
    if shown is not None:
        assert "error" not in shown, shown
        assert [(entry.answers[0]["value"], entry.digest) for entry in entries] == [(shown["value"], shown["digest"])]
    again, *_ = forked(table, place)
    assert "error" not in again, again
    assert again["recorded"] == bool(entries), "what is recorded is told, what is not is drawn"
    (entry,) = ledger.entries()
    assert (again["value"], again["digest"]) == (entry.answers[0]["value"], entry.digest)
    assert not entries or entries == (entry,)
    return {"killed": killed, "recorded": bool(entries), "shown": shown is not None, "commit": commit}


def main() -> None:
    folder, place, trials, draw = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), random.Random(int(sys.argv[4]))
    url = place.startswith("postgresql:")
    places = [f"{place}#crash{os.getpid()}x{k}" if url else f"{place}{k}.ledger" for k in range(3 * trials + 3)]
    table = folder / "students.parquet"
    warm(table, places[-3])
    # How long to wait at most. A machine may be busy now and idle later: who gets away makes the next one wait less.
    most = {commit: forked(table, one, commit=commit)[2] for one, commit in zip(places[-2:], (False, True), strict=True)}
    told: list[dict[str, bool]] = []
    while sum(one["killed"] for one in told) < trials and len(told) < 3 * trials:
        commit = draw.random() < 0.6
        told.append(trial(table, places[len(told)], draw.random() * most[commit], commit=commit))
        most[commit] *= 1.05 if told[-1]["killed"] else 0.8
    print(json.dumps({"trials": told, "places": [*places[: len(told)], *places[-3:]]}))


if __name__ == "__main__":
    main()
