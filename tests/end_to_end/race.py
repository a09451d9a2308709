"""Processes that release about one table at the same time. Run as a program by test_crash.py, because it forks.

    python -m tests.end_to_end.race FOLDER PLACE PROCESSES RELEASES

Everything is imported once here; each process is a fork, with a session of its own, and asks questions of its own and questions
that others ask too. Prints what each of them saw.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from tests.end_to_end.crash import imported

NETWORK = """network "town" {}
variable i { type discrete[2] {low, high}; }
variable a { type discrete[2] {low, high}; }
probability (i) { default 0.5 0.5; }
probability (a | i) { (low) 0.9 0.1; (high) 0.1 0.9; }
"""
POLICY = """attrpriv: 1
data: town.csv
rows: 100
epsilon: 0.5
protect:
  - parameter: i
assume:
  kind: parameter_network
  file: town.bif
  tolerance: 0
"""
SPEND = 0.01


def town(folder: Path) -> Path:
    """A table about which thousands of questions can be asked, each for next to nothing."""
    (folder / "town.bif").write_text(NETWORK, encoding="utf-8")
    (folder / "town.csv").write_text("i,a\n" + "1,1\n1,0\n" * 50, encoding="utf-8")
    (folder / "town.yaml").write_text(POLICY, encoding="utf-8")
    return folder / "town.yaml"


def question(number: int) -> str:
    return f"count(*) filter (where a > 0.{number + 10**6})"


def releases(policy: Path, place: str, own: range, shared: range, seed: int) -> dict[str, float]:
    """Every question that is this process's own, and now and then one that is everybody's."""
    draw, seen = random.Random(seed), {}
    with ap.Session(policy=policy, ledger=place) as session:
        for number in own:
            for asked in (number, *((draw.choice(shared),) if draw.random() < 0.3 else ())):
                released = session.release(question(asked), spend=SPEND)
                seen[released.answers[0].query.text] = released.value
    return seen


def forked(work: Callable[[], object]) -> tuple[int, int]:
    """A process that does this and tells what came out as JSON; its number, and where it tells it."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = work()
        except BaseException as error:
            found = {"error": str(error)}
        with os.fdopen(tell, "w") as stream:
            json.dump(found, stream)
        os._exit(0)
    os.close(tell)
    return child, told


def main() -> None:
    folder, place, processes, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    policy = town(folder)
    if place.startswith("postgresql:"):
        place = f"{place}#race{os.getpid()}"

    def first() -> list[str]:
        releases(policy, place, range(1), range(1), 0)
        Ledger(place).verify()
        return list(sys.modules)

    child, told = forked(first)
    imported(child, told)
    each = (count - 1) // processes
    own = [range(1000 * (k + 1), 1000 * (k + 1) + each) for k in range(processes)]
    workers = [forked(lambda k=k: releases(policy, place, own[k], range(10), k)) for k in range(processes)]  # type: ignore[misc]
    seen = []
    for child, told in workers:
        with os.fdopen(told) as stream:
            seen.append(json.load(stream))
        os.waitpid(child, 0)
    print(json.dumps({"place": place, "seen": seen}))


if __name__ == "__main__":
    main()
