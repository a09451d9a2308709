"""The choice of noise and clamp for a transported release: the least expected error that the distance mu allows.

More noise allows a wider clamp. One average: the noise's variance is searched, from the least that hides what the class leaves
open of the slopes to that which needs no clamp at all. Several: noise of least trace for what is left open, and a few amounts
more of it along what the secrets tell. The certificate checks the result; nothing here has to be right for the promise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.shift import ShiftCase, design
from attrpriv.errors import CertificateError
from attrpriv.methods.base.clamp import Clamp, ClampSpread, MovedSpread, Read, clamp_spreads
from attrpriv.methods.base.column_plan import Design
from attrpriv.methods.transport.case import Told
from attrpriv.methods.transport.proof import Moves, TransportCheck, norm, output_spread, shortening, stretch
from attrpriv.numerics.rounding import SHY_DOWN, SOLVED_UP
from attrpriv.numerics.search import least_at
from attrpriv.problem.problem import Problem

_STEPS = 30
# Noise beyond the masks, in units of what the secrets tell; and shares of the distance for what the class leaves open.
_EXTRA = (0.0, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 2.0)
_SHARES = (0.5, 0.7, 0.85, 0.95, 0.99)
_MOST_CORNERS = 64

Spread = ClampSpread | MovedSpread


@dataclass(frozen=True)
class Way:
    """One choice of noise and clamp."""

    layout: Design
    clamp: Clamp
    spreads: tuple[Spread, ...]

    def cost(self, sds: Sequence[float]) -> float:
        """Mean square errors in units of the averages' own variances."""
        return sum((spread.rmse / sd) ** 2 for spread, sd in zip(self.spreads, sds, strict=True))


def best_way(
    problem: Problem, theta: Sequence[Gaussian], found: Told, least: Mapping[str, float], sds: Sequence[float], mu: float
) -> Way | None:
    """The least expected error in units of the averages' sds; None where no noise that is tried leaves any of the distance."""
    periods: list[float | None] = [None]
    line = len(problem.columns) == 1 or len(found.statistics) == 1
    if line and all(secret.within is not None for secret in problem.secrets) and all(m.told is not None for m in found.moves):
        periods.append(1.0)
    ways: list[Way] = []
    for stairs in periods:
        clamp = _centred(problem, theta, found, least)
        search = _scalar_ways if len(problem.columns) == 1 else _vector_ways
        ways += search(found, clamp, [least[c] for c in problem.columns], sds, mu, stairs is not None)
    return min(ways, key=lambda way: way.cost(sds), default=None)


def _centred(problem: Problem, theta: Sequence[Gaussian], found: Told, least: Mapping[str, float]) -> Clamp:
    reads = [
        Read(
            coefficients=one,
            centre=sum(weight * theta[0].mean[column] for column, weight in one.items()),
            mask=least[next(iter(one))] if len(found.statistics) > 1 else 0.0,
            fill={column: problem.missing[column] for column in one if column in problem.missing},
        )
        for one in found.statistics
    ]
    slopes = tuple(tuple(float(x) for x in row) for row in found.slopes)
    size = len(problem.columns)
    metric = tuple(tuple(float(j == k) for k in range(size)) for j in range(size)) if size > 1 else ()
    return Clamp(reads=tuple(reads), slopes=slopes, reach=0.0, metric=metric)


def _way(found: Told, clamp: Clamp, layout: Design, mu: float, stairs: bool) -> Way | None:
    """The widest clamp that this noise allows."""
    import numpy as np

    spreads = [output_spread(check, layout.independent, layout.factor) for check in found.checks]
    # Several averages: lengths are measured in the spread of the output under the first member.
    metric = spreads[0] if clamp.metric else np.ones((1, 1))
    room, widest = math.inf, 0.0
    for moves, spread in zip(found.moves, spreads, strict=True):
        free = mu * SHY_DOWN - norm(moves.untold, moves.untold_off, spread)
        if free < 0:
            return None
        seen = math.inf if moves.told is None else norm(moves.told, moves.told_off, metric)
        longer = stretch(metric, spread)
        widest = max(widest, seen)
        room = min(room, math.inf if longer * seen <= free else free / longer)
    rows = tuple(tuple(float(x) for x in row) for row in metric) if clamp.metric else ()
    reach = room / 2 * SHY_DOWN / (1 + 2 * shortening(metric)) if math.isfinite(room) else widest
    period = widest * SOLVED_UP if stairs and widest > 0 else None
    clamp = clamp.model_copy(update={"reach": reach, "period": period, "metric": rows})
    return Way(layout, clamp, _spreads(found, clamp, layout))


def _spreads(found: Told, clamp: Clamp, layout: Design) -> tuple[Spread, ...]:
    """The laws of the errors; in closed form where what is taken back is centred and one number."""
    import numpy as np

    scales = layout.scales()
    line = len(scales) == 1 or found.wander.shape[1] == 1
    if line and clamp.period is None and not found.bias.any():
        wander = np.linalg.norm(found.wander, axis=1)
        rooms = room_of(clamp, found.wander)
        return tuple(ClampSpread(s, float(w), r) for s, w, r in zip(scales, wander, rooms, strict=True))
    rows = np.linalg.norm(found.wander, axis=1)[:, None] if len(scales) == 1 else found.wander
    return clamp_spreads(clamp, rows.tolist(), found.bias.tolist(), scales)


def room_of(clamp: Clamp, wander: object) -> list[float]:
    """Along one line, how far each average may move to each side."""
    import numpy as np

    rows = np.asarray(wander, dtype=np.float64)
    if not clamp.metric:
        return [clamp.reach]
    root = np.linalg.cholesky(np.array(clamp.metric, dtype=np.float64))
    length = float(np.linalg.norm(np.linalg.solve(root, rows[:, 0])))
    return [clamp.reach * abs(float(x)) / length if length else clamp.reach for x in rows[:, 0]]


def _scalar_ways(
    found: Told, clamp: Clamp, own: Sequence[float], sds: Sequence[float], mu: float, stairs: bool
) -> Iterator[Way]:
    """One average: from the least noise that hides what the class leaves open to that which needs no clamp."""
    shy = mu * SHY_DOWN**2
    low = high = own[0] ** 2
    for check, moves in zip(found.checks, found.moves, strict=True):
        credited = check.credited[0][0]
        untold = abs(moves.untold[0]) + moves.untold_off[0]
        seen = math.inf if moves.told is None else abs(moves.told[0]) + moves.told_off[0]
        low = max(low, (untold / shy) ** 2 * SOLVED_UP - credited)
        high = max(high, ((seen + untold) / shy) ** 2 - credited) if math.isfinite(seen) else high
    high = max(high, low, 4 * float((found.wander**2).sum()) / mu**2)

    def at(variance: float) -> Way | None:
        return _way(found, clamp, Design((math.sqrt(variance) * SOLVED_UP,), ()), mu, stairs)

    def cost(variance: float) -> float:
        way = at(variance)
        return math.inf if way is None else way.cost(sds)

    for variance in (low, math.exp(_least_log(cost, low, high))):
        way = at(variance)
        if way is not None:
            yield way


def _least_log(cost: Callable[[float], float], low: float, high: float) -> float:
    return least_at(lambda x: cost(math.exp(x)), math.log(low), math.log(max(high, low * SOLVED_UP)), _STEPS)


def _vector_ways(
    found: Told, clamp: Clamp, own: Sequence[float], sds: Sequence[float], mu: float, stairs: bool
) -> Iterator[Way]:
    """Several averages: noise for what the class leaves open, and more of it along what the secrets tell."""
    for base in _bases(found, own, sds, mu):
        for extra in _EXTRA:
            factor = tuple(
                (*(base.factor[k] if base.factor else ()), *((float(x) * math.sqrt(extra) / mu for x in row) if extra else ()))
                for k, row in enumerate(found.wander)
            )
            layout = Design(base.independent, factor if any(map(len, factor)) else ())
            try:
                way = _way(found, clamp, layout, mu, stairs)
            except CertificateError:  # nearly singular: the certificate would not have it either
                continue
            if way is not None:
                yield way


def _bases(found: Told, own: Sequence[float], sds: Sequence[float], mu: float) -> Iterator[Design]:
    import numpy as np

    plain = Design(tuple(scale * SOLVED_UP for scale in own), ())
    yield plain
    for share in _SHARES:
        cases = [case for pair in zip(found.checks, found.moves, strict=True) for case in _left_open(*pair)]
        if not any(case.shifts.any() for case in cases):
            return
        yield design(cases, own, list(np.asarray(sds)), share * mu)


def _left_open(check: TransportCheck, moves: Moves) -> list[ShiftCase]:
    """What the class leaves open, at the corners of its box; too many corners: whatever the signs are."""
    import numpy as np

    middle, off, residual = np.array(moves.untold), np.array(moves.untold_off), np.array(check.credited)
    moving = int((off > 1e-9 * (np.abs(middle) + np.array(moves.told_off) + 1e-300)).sum())
    if 2**moving > _MOST_CORNERS:
        return [ShiftCase(check.secret, check.theta, (np.abs(middle) + off)[:, None], np.zeros_like(residual), signless=True)]
    corners = itertools.product(*[(1.0, -1.0) if width else (1.0,) for width in off])
    return [ShiftCase(check.secret, check.theta, (middle + np.array(c) * off)[:, None], residual) for c in corners]
