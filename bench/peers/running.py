"""Which experiments there are, and running those that have no result yet.

An experiment is a module with `NAME`, `TITLE`, `NEEDS` (packages that must be importable here), `SECONDS` (of wall clock on two
idle cores, at most) and `run(budget)`.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, cast

from rich.console import Console

from bench.peers.budget import Budget, Unavailable
from bench.peers.results import Result

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "peers"
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


def run_all(chosen: Iterable[Experiment], *, again: bool = False, results: Path = RESULTS) -> list[str]:
    """Run what has no result yet, or all of them; returned are the names of those that failed, not of those skipped."""
    console, failed = Console(stderr=True), []
    for one in chosen:
        place = results / f"{one.NAME}.json"
        if place.is_file() and not again:
            console.print(f"[dim]{one.NAME}: there; --again runs it once more[/dim]")
            continue
        try:
            with console.status(one.NAME) as status:
                budget = Budget(one.SECONDS, lambda text, name=one.NAME: status.update(f"{name}: {text}"))  # type: ignore[misc]
                kept(_checked(one, budget), place)
            console.print(f"{one.NAME}: done in {budget.spent:.0f} seconds")
        except Unavailable as reason:
            console.print(f"[yellow]{one.NAME}: skipped. {reason}[/yellow]")
        except Exception:  # of any library: what comes after must still run
            console.print_exception()
            failed.append(one.NAME)
    return failed


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
