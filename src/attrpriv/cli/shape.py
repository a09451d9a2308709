"""What `attrpriv fit` says about the shape of public records: a table for people, JSON for programs, comments for the file."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrpriv.assumptions.fit import Fit
from attrpriv.assumptions.fit_groups import GroupFit
from attrpriv.assumptions.shape import LIMITS, Findings, ShapeFinding, summary, worst
from attrpriv.errors import UsageError
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.row_shape import HISTOGRAM, STEPS, ColumnShape, PairShape

if TYPE_CHECKING:
    from rich.console import Console

_AVOIDED = "auto takes neither transport nor calibrated_weights nor the equalised form of groups on such rows"
_WARNED = "where one of them is asked for by name, and for gaussian, plans carry a warning"


def findings(assumption: Assumption) -> Findings:
    record = assumption.fit_record()
    return () if record is None or record.shape is None else record.shape


def verdict(assumption: Assumption) -> str:
    """Of all of them together: good, bad, unknown or not examined."""
    return worst(findings(assumption))


def shape_json(assumption: Assumption) -> dict[str, Any] | None:
    """None of an assumption that rests on no shape, such as counts."""
    if not assumption.normal_rows:
        return None
    return {
        "verdict": verdict(assumption),
        "limits": dict(LIMITS),
        "findings": [one.to_json() for one in findings(assumption)],
    }


def shape_lines(assumption: Assumption) -> tuple[str, ...]:
    """For the file's comments."""
    if not assumption.normal_rows:
        return ()
    found = findings(assumption)
    return (f"{summary(found or None)}.", *((f"{_AVOIDED};", f"{_WARNED}.") if verdict(assumption) != "good" else ()))


def show_shape(shown: Console, assumption: Assumption) -> None:
    """Each column and pair with its numbers and its verdict."""
    if not assumption.normal_rows:
        return
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    statistics = [name for name in LIMITS if any(name in one.numbers for one in findings(assumption))]
    for column in ("shape", *statistics, "verdict"):
        table.add_column(column, justify="right" if column in LIMITS else "left", overflow="fold")
    for one in findings(assumption):
        numbers = (f"{one.numbers[name]:.3g}" if name in one.numbers else "" for name in statistics)
        table.add_row(escape(one.name), *numbers, escape(one.verdict), style="" if one.good else "yellow")
    shown.print()
    shown.print(table)
    if verdict(assumption) != "good":
        shown.print(f"[yellow]warning[/yellow] {_AVOIDED}; {_WARNED}.")


# ----------------------------------------------------------------------------------------------------------------------------
# A picture of public records: how each column lies against a normal one, and how released columns depend on sensitive ones.
#
# | panel | grey or line | blue |
# |---|---|---|
# | a column (in a category) | the normal law with its mean and sd | the share of rows in each quarter of an sd |
# | a regression | the fitted line, and one residual sd to either side | mean and sd of the rows in each half of an sd |
#
# Axes are in standard deviations, which only public rows were used for. Panels whose verdict is not good have a red title.


_FORMATS = (".svg", ".png", ".pdf")
_BLUE, _GREY, _RED = "#4a7fb5", "#777777", "#d1495b"
_ACROSS = 3
# A table of hundreds of columns has no picture that anybody reads.
_MOST_PANELS = 60
_FEWEST_ROWS = 5


def require_picture(path: Path) -> None:
    """Raise UsageError where no picture can be drawn, before anything is read or written."""
    if path.suffix.lower() not in _FORMATS:
        raise UsageError(f"plot: must end in one of {', '.join(_FORMATS)}. Got {path.name}.")
    _matplotlib()


def save_picture(fit: Fit | GroupFit, path: Path) -> None:
    """All panels, those with a fault first where there are too many."""
    figure = draw_shape(fit)
    failed = False
    try:
        figure.savefig(path)
    except OSError:
        failed = True
    if failed:
        raise UsageError(f"plot: must be a place that can be written. Got {str(path)!r}.")


def draw_shape(fit: Fit | GroupFit) -> Any:
    """The figure."""
    panels = _panels(fit)
    down = max(1, math.ceil(len(panels) / _ACROSS))
    figure = _matplotlib().figure.Figure(figsize=(3.6 * _ACROSS, 3.0 * down), layout="constrained")
    figure.suptitle("blue: the public rows; grey: normal rows with the same means, sds and correlations", fontsize=9)
    for k, (finding, draw) in enumerate(panels):
        axes = figure.add_subplot(down, _ACROSS, k + 1)
        title = textwrap.fill(f"{finding.name}: {finding.verdict}", 40).replace("$", r"\$")
        axes.set_title(title, fontsize=9, color="black" if finding.good else _RED)
        axes.tick_params(labelsize=8)
        draw(axes)
    return figure


def _panels(fit: Fit | GroupFit) -> list[tuple[ShapeFinding, Callable[[Any], None]]]:
    record = (fit.gaussian if isinstance(fit, Fit) else fit.groups).fitted
    if fit.shape is None or record is None:
        raise UsageError("plot: the shape of these records was not examined. Fit a table, not moments.")
    found = sorted(record.shape or (), key=lambda one: one.good)[:_MOST_PANELS]
    return [(one, _drawing(fit, one)) for one in found]


def _drawing(fit: Fit | GroupFit, one: ShapeFinding) -> Callable[[Any], None]:
    assert fit.shape is not None  # `_panels` has looked
    if isinstance(fit, GroupFit):
        cell = fit.shape.cells[str(one.category), one.of]
        return lambda axes: _histogram(axes, cell)
    if one.on is None:
        column = fit.shape.columns[one.of]
        return lambda axes: _histogram(axes, column)
    pair, on = fit.shape.pairs[one.of, one.on], one.on
    correlation = fit.gaussian.correlation_of(one.of, on)
    return lambda axes: _regression(axes, pair, correlation, one.of, on)


def _histogram(axes: Any, column: ColumnShape) -> None:
    """The first and the last cell hold what lies beyond; a normal column has next to nothing there."""
    step = HISTOGRAM[1] - HISTOGRAM[0]
    edges = (HISTOGRAM[0] - step, *HISTOGRAM, HISTOGRAM[-1] + step)
    rows = sum(column.histogram)
    shares = [count / rows for count in column.histogram]
    normal = [_normal(b) - _normal(a) for a, b in zip((-math.inf, *HISTOGRAM), (*HISTOGRAM, math.inf), strict=True)]
    axes.stairs(shares, edges, fill=True, color=_BLUE, alpha=0.6)
    axes.stairs(normal, edges, color=_GREY, linewidth=1.5)
    axes.set_yscale("log")
    axes.set_ylim(max(1e-6, 0.5 / rows), 1)
    axes.set_xlabel("standard deviations from the mean", fontsize=8)
    axes.set_ylabel("share of rows", fontsize=8)


def _normal(z: float) -> float:
    return (1 + math.erf(z / math.sqrt(2))) / 2


def _regression(axes: Any, pair: PairShape, correlation: float, of: str, on: str) -> None:
    step = STEPS[1] - STEPS[0]
    middles = [STEPS[0] - step / 2, *(edge + step / 2 for edge in STEPS)]
    shown = [(x, one) for x, one in zip(middles, pair.steps, strict=True) if one.rows >= _FEWEST_ROWS]
    left = math.sqrt(1 - correlation**2)
    ends = (middles[0], middles[-1])
    line = [correlation * x for x in ends]
    axes.fill_between(ends, [y - left for y in line], [y + left for y in line], color=_GREY, alpha=0.2, linewidth=0)
    axes.plot(ends, line, color=_GREY, linewidth=1.5)
    axes.errorbar(
        [x for x, _ in shown], [one.mean for _, one in shown], [one.sd for _, one in shown], fmt="o", color=_BLUE, markersize=4
    )
    axes.set_xlabel(f"{on}, in sds".replace("$", r"\$"), fontsize=8)
    axes.set_ylabel(f"{of}, in sds".replace("$", r"\$"), fontsize=8)


def _matplotlib() -> Any:
    found = None
    try:
        import matplotlib
        import matplotlib.figure

        found = matplotlib
    except ImportError:
        pass
    if found is None:
        raise UsageError("plot: needs the package matplotlib. Install it with pip install 'attrpriv[plots]'.")
    return found
