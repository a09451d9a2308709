"""What an experiment gives: tables of cells, with the date, the versions and the machine of the run. Frozen, and JSON.

What must never change: a cell says whether it was measured in this run or is quoted from a publication, and a quoted cell names
its source. Nothing here names a host, a user or a place on the machine.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator
from scipy import special

from attrpriv import __version__
from attrpriv.frozen import Finite, FrozenMap, FrozenModel

Form = Literal["text", "number", "percent", "whole", "seconds", "bytes", "times"]


class Cell(FrozenModel):
    """A value; where it was simulated or timed, with its interval. Without a value: not applicable, or not there."""

    value: str | int | float | None = None
    low: Finite | None = None
    high: Finite | None = None
    quoted: bool = False
    source: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends")
        if self.low is not None and self.high is not None and not isinstance(self.value, int | float):
            raise ValueError("only a number has an interval")
        if isinstance(self.value, int | float) and self.low is not None and self.high is not None:
            off = 1e-9 * max(1.0, abs(self.value))
            if not self.low - off <= self.value <= self.high + off:
                raise ValueError(f"must be inside of its interval. Got {self.value:g}, not in [{self.low:g}, {self.high:g}].")
        if self.quoted and not self.source:
            raise ValueError("a quoted value must name its source")
        return self


def measured(value: float, low: float | None = None, high: float | None = None) -> Cell:
    """A number of this run, and its interval."""
    return Cell(value=value, low=low, high=high)


def mean_of(values: Sequence[float]) -> Cell:
    """A mean and its 95% interval, by Student's law: a few values tell little about their spread."""
    mean, number = float(np.mean(values)), len(values)
    reach = float(special.stdtrit(number - 1, 0.975)) * float(np.std(values, ddof=1)) / math.sqrt(number)
    return measured(mean, mean - reach, mean + reach)


def quoted(value: float | str, source: str) -> Cell:
    """A published number, which nobody measured here; `source` is a key of docs/references.bib, with the place."""
    return Cell(value=value, quoted=True, source=source)


# What a row of a table is made of: cells, or what becomes one.
Row = Sequence[Cell | str | float | None]


class Column(FrozenModel):
    name: str
    form: Form = "text"


class Table(FrozenModel):
    """`key` is what the page's texts call it by."""

    key: str = Field(pattern=r"^[a-z0-9-]+$")
    title: str
    columns: tuple[Column, ...] = Field(min_length=1)
    rows: tuple[tuple[Cell, ...], ...]

    @model_validator(mode="after")
    def _rectangular(self) -> Self:
        if wrong := [row for row in self.rows if len(row) != len(self.columns)]:
            raise ValueError(f"{self.key}: each row must have {len(self.columns)} cells. Got {len(wrong[0])}.")
        return self

    @classmethod
    def of(
        cls,
        key: str,
        title: str,
        columns: Mapping[str, Form],
        rows: Iterable[Row],
    ) -> Self:
        """Columns by name and form; what is no cell yet becomes one without an interval."""
        cells = tuple(tuple(one if isinstance(one, Cell) else Cell(value=one) for one in row) for row in rows)
        return cls(key=key, title=title, columns=tuple(Column(name=n, form=f) for n, f in columns.items()), rows=cells)

    def cell(self, row: str, column: str) -> Cell:
        """By what the row's first cell says and the column's name; KeyError where there is none, or several."""
        at = [one.name for one in self.columns].index(column)
        found = [one for one in self.rows if one[0].value == row]
        if len(found) != 1:
            raise KeyError(f"{self.key}: {len(found)} rows are called {row!r}")
        return found[0][at]


class Machine(FrozenModel):
    cores: int = Field(ge=1)
    memory_gb: Finite
    python: str


class Result(FrozenModel):
    name: str
    title: str
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    seconds: Finite
    processor_seconds: Finite = Field(default=0.0, description="of the run and the processes that it started, filled in by it")
    seed: int
    machine: Machine
    versions: FrozenMap[str]
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    left_out: str = Field(default="", description="why it could not be measured; then there are no tables")

    def table(self, key: str) -> Table:
        return {one.key: one for one in self.tables}[key]

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        *,
        seconds: float,
        seed: int,
        tables: Iterable[Table],
        notes: Iterable[str] = (),
        packages: Sequence[str] = (),
        versions: Mapping[str, str] | None = None,
        left_out: str = "",
    ) -> Self:
        """With today's date, this machine, and the versions of attrpriv, NumPy, SciPy and these `packages`; and those of
        other environments, which `versions` holds."""
        here = {one: version_of(one) for one in ("numpy", "scipy", *packages)}
        return cls(
            name=name,
            title=title,
            date=datetime.now(UTC).date().isoformat(),
            seconds=round(seconds, 1),
            seed=seed,
            machine=machine(),
            versions={"attrpriv": __version__, **here, **(versions or {})},
            tables=tuple(tables),
            notes=tuple(notes),
            left_out=left_out,
        )


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def machine() -> Machine:
    """Cores and memory, and no name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(cores=cores, memory_gb=round(_memory() / 2**30, 1), python=platform.python_version())


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def read(place: Path) -> Result:
    return Result.from_json(place.read_text(encoding="utf-8"))
