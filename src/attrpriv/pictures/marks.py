"""What a picture shows, as data: axes and marks. Writers turn it into SVG (`svg`) or matplotlib (`figures`).

| mark | what |
|---|---|
| `Line` | a curve, or the edge of a filled area, with a label of its own |
| `Dot` | a value, with an interval where there is one |
| `Bar` | the length of one named row |
| `Cell` | one field of a heat map |
| `Rule` | a level to compare with, such as a coin's |

A picture says what it shows in its title, and what is to be seen in its description: whoever cannot see it reads that.
What must never change: series differ by dash and label as well as by colour; a number that is not finite is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from attrpriv.errors import UsageError
from attrpriv.formatting import number

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """One side of a picture: from `low` to `high`, or one place for each of `names`."""

    label: str
    low: float = 0.0
    high: float = 1.0
    scale: Literal["linear", "log"] = "linear"
    form: Literal["number", "percent", "whole"] = "number"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names and not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise UsageError(f"axis: {self.label} must go from a number to a larger one. Got {self.low:g} to {self.high:g}.")
        if self.scale == "log" and not self.low > 0:
            raise UsageError(f"axis: {self.label} has a logarithmic scale, which starts above 0. Got {self.low:g}.")

    def share(self, value: float) -> float:
        """Where a value is, from 0 at the low end to 1 at the high one; of names, the middle of the place."""
        if self.names:
            return (value + 0.5) / len(self.names)
        if self.scale == "log":
            return math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Where to write a number or a name, and which."""
        if self.names:
            return tuple((float(place), name) for place, name in enumerate(self.names))
        values = _powers(self.low, self.high) if self.scale == "log" else _steps(self.low, self.high)
        if self.form == "whole":
            values = [value for value in values if value == round(value)]
        return tuple((value, self.written(value)) for value in values)

    def written(self, value: float) -> str:
        """A value as this axis writes it."""
        if self.form == "percent":
            return f"{value * 100:.10g}%"
        return f"{value:,.10g}" if abs(value) >= 1e-4 or not value else number(value, 1)


def _steps(low: float, high: float) -> list[float]:
    """Four to six round values."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) if step > 1e-9 else place * step for place in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 times them where there are few, or with many only some."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, (last - first) // 5)
    factors = (1.0,) if last - first > 3 else (1.0, 3.0) if last - first > 2 else (1.0, 2.0, 5.0)
    found = [10.0**power * factor for power in range(first, last + 1, every) for factor in factors]
    return [value for value in found if low * 0.999999 <= value <= high * 1.000001]


@dataclass(frozen=True)
class Line:
    """A curve. `series` chooses colour and dash together; `label` stands at its end, or at `label_at`."""

    points: tuple[Point, ...]
    label: str
    series: int = 0
    label_at: Point | None = None
    filled: bool = False
    """Whether the area below it is tinted."""
    stepped: bool = False


@dataclass(frozen=True)
class Dot:
    """A value; `low` and `high` are the ends of its interval along x."""

    x: float
    y: float
    label: str = ""
    series: int = 0
    low: float | None = None
    high: float | None = None
    hollow: bool = False


@dataclass(frozen=True)
class Bar:
    """A bar from the low end of x, in the row `place` of an axis of names; `marked`: the chosen one."""

    place: int
    value: float
    label: str = ""
    series: int = 0
    marked: bool = False


@dataclass(frozen=True)
class Cell:
    """A field of a heat map, in a column and a row of axes of names; `share`: how strongly it is tinted, 0 to 1."""

    column: int
    row: int
    share: float
    text: str = ""


@dataclass(frozen=True)
class Rule:
    """A level: a dotted line across, at `value` of x or of y."""

    value: float
    label: str
    along: Literal["x", "y"] = "y"


Mark = Line | Dot | Bar | Cell | Rule


@dataclass(frozen=True)
class Picture:
    """Axes and marks, what they show, and what is to be seen in them."""

    title: str
    description: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    height: int | None = None
    """In units of which the width has 420; None: as the rows ask for, or three fifths."""

    def __post_init__(self) -> None:
        if not self.title.strip() or not self.description.strip():
            raise UsageError("picture: must have a title and a description, for whoever cannot see it.")

    @property
    def drawn(self) -> tuple[Mark, ...]:
        """The marks that can be drawn; of a line, the points that can."""
        return tuple(mark for one in self.marks if (mark := _finite(one)) is not None)


def _finite(mark: Mark) -> Mark | None:
    if isinstance(mark, Line):
        points = tuple(point for point in mark.points if all(map(math.isfinite, point)))
        return Line(points, mark.label, mark.series, mark.label_at, mark.filled, mark.stepped) if points else None
    numbers = {Dot: ("x", "y"), Bar: ("value",), Cell: ("share",), Rule: ("value",)}[type(mark)]
    return mark if all(math.isfinite(getattr(mark, name)) for name in numbers) else None


def spread_apart(wanted: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Places near the wanted ones that are at least so far apart, within the ends where they fit: for labels."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    found = [0.0] * len(wanted)
    last = low - least
    for place in order:
        last = found[place] = max(wanted[place], last + least)
    limit = high
    for place in reversed(order):
        limit = found[place] = min(found[place], limit)
        limit -= least
    return found
