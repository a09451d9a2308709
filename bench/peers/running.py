"""Which experiments there are, and running those that this run has not done yet.

An experiment is a module with `NAME`, `TITLE`, `NEEDS` (packages that must be importable here), `SECONDS` (of wall clock on two
idle cores, at most) and `run(budget)`.

A run replaces the results that are there, one by one: also those of another machine, such as the ones of a fresh clone. What it
has done is noted in build/peers/done until all is done, so that a run that was ended resumes where it was. What cannot run
here leaves its reason in place of a result: no number on the page is older than the run that the page tells of.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from rich.console import Console

from bench.peers.budget import Budget, Unavailable
from bench.peers.results import Result

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "peers"
DONE = ROOT / "build" / "peers" / "done"
# In the order of the page. The name is that of the module, of the result, and of the text in page/.
EXPERIMENTS: tuple[str, ...] = (
    "chen_ohrimenko",
    "song_chains",
    "newer_work",
    "property_inference",
    "speed",
    "features",
)


class Experiment(Protocol):
    @property
    def NAME(self) -> str: ...  # noqa: N802 - constants of a module

    @property
    def TITLE(self) -> str: ...  # noqa: N802

    @property
    def NEEDS(self) -> Sequence[str]: ...  # noqa: N802

    @property
    def SECONDS(self) -> float: ...  # noqa: N802

    def run(self, budget: Budget) -> Result: ...


def experiments() -> list[Experiment]:
    return [cast(Experiment, importlib.import_module(f"bench.peers.{name}")) for name in EXPERIMENTS]


def run_all(
    chosen: Sequence[Experiment],
    *,
    again: bool = False,
    patience: float = 1.0,
    results: Path = RESULTS,
    done: Path = DONE,
) -> list[str]:
    """Run what this run has not done yet, or all of them; returned are the names of those that failed, not of those skipped."""
    console, failed = Console(stderr=True), []
    if again:
        shutil.rmtree(done, ignore_errors=True)
    for one in chosen:
        place, mark = results / f"{one.NAME}.json", done / one.NAME
        if place.is_file() and mark.is_file():
            console.print(f"[dim]{one.NAME}: done before this run was ended; --again runs it once more[/dim]")
            continue
        found = _found(one, console, patience)
        if found is None:
            failed.append(one.NAME)
            found = left_out(one, "it failed here")
        kept(found, place)
        done.mkdir(parents=True, exist_ok=True)
        mark.touch()
    for one in chosen:
        (done / one.NAME).unlink(missing_ok=True)
    return failed


def _found(one: Experiment, console: Console, patience: float) -> Result | None:
    """Its result, or why there is none; nothing where it failed."""
    try:
        with console.status(one.NAME) as status:
            budget = Budget(patience * one.SECONDS, lambda text: status.update(f"{one.NAME}: {text}"))
            found = _checked(one, budget)
        console.print(f"{one.NAME}: done in {budget.spent:.0f} seconds")
        return found
    except Unavailable as reason:
        console.print(f"[yellow]{one.NAME}: skipped. {reason}[/yellow]")
        return left_out(one, str(reason))
    except Exception:  # of any library: what comes after must still run
        console.print_exception()
        return None


def left_out(one: Experiment, reason: str) -> Result:
    return Result.of(one.NAME, one.TITLE, seconds=0.0, seed=0, tables=[], left_out=reason)


def _checked(one: Experiment, budget: Budget) -> Result:
    if lacking := [name for name in one.NEEDS if importlib.util.find_spec(name) is None]:
        raise Unavailable(f"needs {', '.join(lacking)}, which is not installed here")
    before = sum(os.times()[:4])
    found = one.run(budget)
    if found.name != one.NAME:
        raise ValueError(f"{one.NAME}: gave the result of {found.name}")
    return found.model_copy(update={"processor_seconds": round(sum(os.times()[:4]) - before, 1)})


def kept(result: Result, place: Path) -> None:
    """Write it as a whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    half = place.with_suffix(".half")
    half.write_text(json.dumps(result.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(half, place)
