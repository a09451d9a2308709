"""What there is to see: pictures of what a release tells, what it costs, what a view keeps, and of a ledger's budget.

Only public facts and released values are drawn. What must never change: a bound is called one in the label of its curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.formatting import number, percent
from attrpriv.pictures.marks import Axis, Bar, Dot, Line, Mark, Picture, Point, Rule, spread_apart

if TYPE_CHECKING:
    from attrpriv.methods.base.belief import Belief
    from attrpriv.methods.base.tells import BestTest, Tells
    from attrpriv.methods.base.view_plan import ViewCell, ViewPlan
    from attrpriv.methods.choice.error_curve import ErrorCurve
    from attrpriv.methods.choice.ranking import Ranking

_SHOWN = 14  # rows of a picture with names; more would not be read
_LABEL = 0.36  # of the width of a picture, for the name of a curve


def trade_off(told: Tells) -> Picture:
    """The best tests of two values: each share of false alarms with the misses that remain."""
    marks: list[Mark] = [Line(((0.0, 1.0), (1.0, 0.0)), "a coin", 4, label_at=(0.62, 0.45))]
    if told.after.how != "unknown":
        marks.append(Line(told.after.curve, _named("this release", told.after), 0, label_at=(0.3, 0.79), filled=True))
    if told.before.how != "unknown":
        marks.append(Line(told.before.curve, _named("exact answers", told.before), 1, label_at=(0.03, 0.06)))
    return Picture(
        f"Telling apart values of {told.secret} {_pair(told)}",
        f"Curves of false alarms against misses. {told} The nearer to the coin's straight line, the less can be learnt.",
        Axis("false alarms", form="percent"),
        Axis("misses", form="percent"),
        tuple(marks),
    )


def _named(name: str, test: BestTest) -> str:
    return f"{name}: {'at most ' if test.how == 'bound' else ''}{percent(test.right)} right"


def _pair(told: Tells) -> str:
    return "that must be indistinguishable" if told.distance is None else f"{told.distance:,.10g} apart"


def fading(told: Sequence[Tells]) -> Picture:
    """Right guesses against distance: how protection fades beyond what is promised."""
    points = [(one.distance or 0.0, one) for one in told]
    after = tuple((x, one.after.right) for x, one in points if one.after.how != "unknown")
    before = tuple((x, one.before.right) for x, one in points if one.before.how != "unknown")
    if not after or len(points) < 2:
        raise UsageError("picture: needs two distances or more of which something is known.")
    marks: list[Mark] = [Rule(0.5, "a coin"), Line(after, _at_most("this release", [one.after for one in told]), 0)]
    marks += [Line(before, _at_most("exact answers", [one.before for one in told]), 1)] if len(before) > 1 else []
    first = told[0]
    marks += [Rule(first.promised, "promised", "x")] if first.promised and first.promised < points[-1][0] else []
    most = " and ".join(f"{line.label} {percent(line.points[-1][1])}" for line in marks if isinstance(line, Line))
    low = min(x for x, _ in points if x > 0)
    return Picture(
        f"Right guesses, by the distance of two values of {first.secret}",
        f"Two curves that rise from a coin's 50% with the distance. At {points[-1][0]:,.10g} apart: {most}.",
        Axis("distance of the two values", low, points[-1][0], "log"),
        Axis("right guesses", 0.45, 1.0, form="percent"),
        tuple(marks),
    )


def _at_most(name: str, tests: Sequence[BestTest]) -> str:
    return f"{name}, at most" if any(one.how == "bound" for one in tests) else name


def believed(found: Belief) -> Picture:
    """Belief over the values of a secret, before and after."""
    named = [("before anything", found.prior), ("exact answers", found.exact), ("this release", found.typical)]
    named.append(("worst release", found.worst))
    top = max(max(weights) for _, weights in named if weights)
    shown = [(name, weights, series) for (name, weights), series in zip(named, (4, 1, 0, 3), strict=True) if weights]
    curves = [tuple(zip(found.values, weights, strict=True)) for _, weights, _ in shown]
    places = _beside(curves, top)
    lines = [Line(curve, name, k, at) for curve, (name, _, k), at in zip(curves, shown, places, strict=True)]
    return Picture(
        f"What somebody may believe about {found.secret}, where it is {found.at:,.10g}",
        f"Weights of its values before and after. {found}",
        Axis(found.secret, found.values[0], found.values[-1]),
        Axis("weight", 0.0, top * 1.05 or 1.0, form="percent"),
        (*lines, Rule(found.at, "the truth", "x")),
    )


def _beside(curves: Sequence[Sequence[Point]], top: float) -> list[Point]:
    """Where the names of hills stand: beside their right halves, or left of all where the right has no room; apart."""
    low, high = curves[0][0][0], curves[0][-1][0]
    last = high - _LABEL * (high - low)
    wanted = [_half_way_down(curve, 0.06 * top) for curve in curves]
    heights = spread_apart([y for _, y in wanted], 0.075 * top, 0.05 * top, top)
    hills = [x for x, _ in wanted if x > low]
    free = last if hills and max(hills) <= (low + high) / 2 else low
    xs = [x if low < x <= last else free for x, _ in wanted]
    return [(x + 0.02 * (high - low), y) for x, y in zip(xs, heights, strict=True)]


def _half_way_down(curve: Sequence[Point], off: float) -> Point:
    """Right of its top, where it has lost half of its height; where it never does, off its left end."""
    top = max(range(len(curve)), key=lambda place: curve[place][1])
    height = curve[top][1]
    for (x0, y0), (x1, y1) in zip(curve[top:], curve[top + 1 :], strict=False):
        if y1 < height / 2:
            return x0 + (x1 - x0) * (y0 - height / 2) / (y0 - y1), height / 2
    start, y = curve[0]
    return start, y + off if y > 0.9 * height else y - off


def mechanisms(ranking: Ranking) -> Picture:
    """Mechanisms side by side: the expected error of the first query, the chosen one marked."""
    query = next((one for one in ranking.problem.queries if not one.whole_table), ranking.problem.queries[0])
    errors = [(plan, plan.error_of(query).by(ranking.by)) for plan in ranking.plans]
    known = [(plan, error) for plan, error in errors if error is not None][:_SHOWN]
    if not known:
        raise UsageError("plot: no mechanism has an error that is known before a row is read.")
    top = max(error for _, error in known) or 1.0
    bars = [
        Bar(place, error, f"{number(error)}{' chosen' if plan is ranking.chosen else ''}", marked=plan is ranking.chosen)
        for place, (plan, error) in enumerate(known)
    ]
    positive = [error for _, error in known if error > 0]
    wide = len(positive) == len(known) and max(positive) > 50 * min(positive)
    axis = Axis("expected error", min(positive) / 3 if wide else 0.0, top * 1.02, "log" if wide else "linear")
    listed = "; ".join(f"{plan.mechanism} {number(error)}" for plan, error in known)
    chosen = "none" if ranking.chosen is None else ranking.chosen.mechanism
    return Picture(
        f"Expected error of {query.text}, by mechanism",
        f"A bar for each mechanism, shorter is better: {listed}. Chosen: {chosen}.",
        axis,
        Axis("", names=tuple(plan.mechanism for plan, _ in known)),
        tuple(bars),
    )


def against_epsilon(curve: ErrorCurve) -> Picture:
    """Error against epsilon, with the chosen point."""
    points = curve.points
    if len(points) < 2:
        raise UsageError("plot: the error is known at one epsilon only.")
    low, high = min(error for _, error in points), max(error for _, error in points)
    log = low > 0
    ends = (low / 2, high * 2) if log else (0.0, high * 1.1 or 1.0)
    marks: list[Mark] = [Line(points, curve.mechanism, 0)]
    if curve.constant is not None and ends[0] < curve.constant:
        ends = (ends[0], max(ends[1], curve.constant * 1.5))
        marks.append(Rule(curve.constant, "what the assumption already says"))
    at = dict(points).get(curve.epsilon)
    marks += [] if at is None else [Dot(curve.epsilon, at, f"chosen: {number(at)}")]
    told = ", ".join(f"{number(error)} at epsilon {eps:g}" for eps, error in points)
    return Picture(
        f"Expected error of {curve.query} against epsilon",
        f"The error of {curve.mechanism} falls as epsilon grows: {told}.",
        Axis("epsilon", points[0][0], points[-1][0], "log"),
        Axis("expected error", *ends, "log" if log else "linear"),
        tuple(marks),
    )


def kept(view: ViewPlan) -> Picture:
    """The share of each cell's rows that a view keeps, at the least and the largest number that it may have.

    Of a reference view any number may be in a cell: there it is the share of what a table has that is like the public.
    """
    cells = view.first_cells[:_SHOWN]
    public = all(cell.share for cell in cells) and bool(view.secret.whole_columns)
    dots = [_kept_of_public(view, cell, place) if public else _kept_of_range(cell, place) for place, cell in enumerate(cells)]
    more = f" The first {len(cells)} of {len(view.cells):,} cells." if len(cells) < len(view.cells) else ""
    told = "; ".join(f"{cell.name} {cell.keep:,} rows" for cell in cells)
    where = "in a table like the public" if public else "from its largest possible number to its least"
    return Picture(
        f"What the view keeps: {view.rows:,} of {view.n:,} rows ({view.rows / view.n:.1%})",
        f"Of each cell, the share of its rows that is kept, {where}: {told}.{more}",
        Axis(f"share of the cell's rows{f', {where}' if public else ''}", 0.0, 1.0, form="percent"),
        Axis("", names=tuple(f"{cell.name}: {cell.keep:,}" for cell in cells)),
        tuple(dots),
    )


def _kept_of_range(cell: ViewCell, place: int) -> Dot:
    least = cell.keep / max(1, cell.high)
    return Dot(least, float(place), "", low=least, high=min(1.0, cell.keep / max(1, cell.low)))


def _kept_of_public(view: ViewPlan, cell: ViewCell, place: int) -> Dot:
    return Dot(min(1.0, cell.keep / (view.n * (cell.share or 1.0))), float(place))


def budget(left: Sequence[tuple[str, float]]) -> Picture:
    """The share of a table's budget that was left after each entry of its ledger."""
    if not left:
        raise UsageError("plot: nothing has been released, so there is no budget to show.")
    points = ((0.0, 1.0), *((float(place + 1), share) for place, (_, share) in enumerate(left)))
    told = "; ".join(f"{name}: {share:.1%}" for name, share in left[-5:])
    return Picture(
        f"What is left of the budget: {left[-1][1]:.1%} after {len(left):,} entr{'y' if len(left) == 1 else 'ies'}",
        f"Steps down from the whole budget with every release. The last ones: {told}.",
        Axis("entries of the ledger", 0.0, float(max(1, len(left))), form="whole"),
        Axis("left", 0.0, 1.05, form="percent"),
        (Line(points, f"{left[-1][1]:.1%} left", 0, stepped=True, filled=True), *_last(points)),
    )


def _last(points: Sequence[tuple[float, float]]) -> tuple[Dot, ...]:
    x, y = points[-1]
    return (Dot(x, y),) if math.isfinite(y) else ()
