"""The ball and the noise that together err least on several averages that hide how many rows are of some category.

| form | noise that depends on the table | proof |
|---|---|---|
| equalised | all that is missing to Vmax (`calibration.groups`) | `divergences.group_vector_clamp.ball_delta` |
| direct | a public share of that, from none to nearly all | `path_delta`: the privacy loss of unequal covariances |

In both every average has its mask, and further noise common to them: for *equalised* the least trace that hides a share of the
shift, for *direct* along the shift, which is to say on the count. More noise allows a wider ball.

What must never change: a ball that is returned has been shown to keep the promise together with its noise; which one errs least
is only expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, RefusedError
from attrpriv.methods.group_transport.clamp import GOLDEN, Moves, widest
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.calibration.groups import (
    Equalised,
    Part,
    VectorNoise,
    equalise,
    equalising_covariance,
    equalising_error,
    least_group_covariance,
)
from attrpriv.numerics.divergences.group_vector_clamp import Ball, Delta, ball_delta, path_delta, told_apart, whitened
from attrpriv.numerics.divergences.groups import Between, Form
from attrpriv.numerics.laws.groups import Rows, Vector, VectorCase
from attrpriv.numerics.search import least_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

_SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 1.0)
# Of the equalising noise, where covariances are left unequal.
_LEFT = (0.0, 0.3, 0.6, 0.85)
_TRIES, _FINELY, _SHRINKS = 12, 30, 12


@dataclass(frozen=True)
class VectorClamp:
    """Noise and ball, and the mean squares of what they do to each answer."""

    form: Form
    equalised: Equalised
    independent: tuple[float, ...]
    factor: Rows
    reach: float
    metric: Rows
    squared: tuple[float, ...]

    def cost(self, unit: Sequence[float]) -> float:
        return sum(square / u**2 for square, u in zip(self.squared, unit, strict=True))


@lru_cache(maxsize=32)
def clamped_vector_delta(
    case: VectorCase,
    way: VectorClamp,
    between: Between | None = None,
    beyond: float = 0.0,
    centre: Vector | None = None,
) -> Delta:
    """An upper bound on H by epsilon, over all pairs of counts and, equalised, all categories of the rows and the whole box.

    Without a centre it is taken to lie between the two means, which matters where covariances are not made equal.
    """
    import numpy as np

    noise = _noise(way.independent, way.factor)
    ball = Ball(way.reach, np.array(way.metric, dtype=np.float64))
    if whitened(ball.metric) is None or not way.reach >= 0:
        return told_apart
    if way.form == "equalised":
        total = np.array(way.equalised.target) + noise
        found = whitened(total)
        off = math.inf if found is None else equalising_error(case, way.equalised, found[0])
        return ball_delta(case, total, off, ball, between, beyond)
    if len(case.members) != 1 or len(case.rest) != 1:
        return told_apart
    low, high = (_made(case, way.equalised, a) + noise for a in (case.low, case.high))
    return path_delta(case, low, high, ball, between, beyond, None if centre is None else beside(case, centre))


def beside(case: VectorCase, centre: Vector) -> Vector:
    """What a centre has besides the line through the means of two categories, exactly until the end."""
    one, other = ([Fraction(x) for x in law[0]] for law in (case.members[0], case.rest[0]))
    line = [a - b for a, b in zip(one, other, strict=True)]
    off = [Fraction(c) - b for c, b in zip(centre, other, strict=True)]
    # Any weights will do to find the place on the line; these make the columns comparable.
    weights = [1 / Fraction(case.rest[0][1][k][k]) for k in range(case.size)]
    length = sum((w * x * x for w, x in zip(weights, line, strict=True)), Fraction(0))
    if not length:
        return (0.0,) * case.size  # every table has the same Y
    place = sum((w * x * y for w, x, y in zip(weights, line, off, strict=True)), Fraction(0)) / length
    return tuple(float(y - place * x) for x, y in zip(line, off, strict=True))


def _noise(independent: Sequence[float], factor: Rows) -> Matrix:
    import numpy as np

    own = np.diag(np.array(independent, dtype=np.float64) ** 2)
    return own + np.array(factor) @ np.array(factor).T if factor and factor[0] else own


def _made(case: VectorCase, equalised: Equalised, count: int) -> Matrix:
    """The covariance of a table of two categories, with the noise that depends on it."""
    sides = (count,), (case.n - count,)
    return case.own(*sides) + equalising_covariance(case, equalised, *sides)


def beyond(ball: Ball, values: Matrix) -> Matrix:
    """What is taken back of each row, and not given again."""
    import numpy as np

    length = ball.norm(values)
    left = ball.reach / np.maximum(length, max(ball.reach, 1e-300))
    return np.asarray(values * (1 - left)[:, None])


def best_vector_clamp(
    case: VectorCase,
    epsilon: float,
    delta: float,
    moves: Moves,
    floors: Sequence[float],
    between: Between | None = None,
) -> VectorClamp:
    """The form, noise and ball of least expected error, in units of each average's own sd."""
    import numpy as np

    unit = np.sqrt(np.diag(np.array(equalise(case).target))).tolist()
    ways = [*_equalised_ways(case, epsilon, delta, moves, floors, unit, between)]
    if len(case.members) == len(case.rest) == 1 and not case.mean_tolerance:
        rival = min(ways, key=lambda way: way.cost(unit), default=None)
        ways += _direct_ways(case, epsilon, delta, moves, floors, unit, between, rival)
    if not ways:
        raise RefusedError("the tolerance leaves nothing that a clamp could help with; use gaussian.").because(
            Cause.NUMBERS, "mechanism gaussian"
        )
    return min(ways, key=lambda way: way.cost(unit))


# ------------------------------------------------------------------------------------------------------------ equalised


def _equalised_ways(
    case: VectorCase,
    epsilon: float,
    delta: float,
    moves: Moves,
    floors: Sequence[float],
    unit: Sequence[float],
    between: Between | None,
) -> list[VectorClamp]:
    """Noise that hides a share of the shift, and the ball that it leaves room for; none where there is no room."""
    import numpy as np

    equalised = equalise(case)
    mu = gaussian_mu(epsilon, delta)

    def at(share: float) -> tuple[VectorNoise, Matrix, VectorClamp] | None:
        """The noise for a share of the shift, the output's covariance, and about the ball that it leaves room for."""
        noise = least_group_covariance(_scaled(case, share), epsilon, delta, floors)
        total = np.array(equalised.target) + _noise(noise.independent, noise.factor)
        found = whitened(total)
        if found is None:
            return None
        untold = max(float(np.linalg.norm(found[0] @ np.array(corner))) for corner in case.untold())
        ball = Ball((mu - untold) / 2, total)
        if not ball.reach >= 0:
            return None
        return noise, total, _way("equalised", equalised, noise.independent, noise.factor, ball, moves, 1.0)

    def cost(share: float) -> float:
        found = at(share)
        return math.inf if found is None else found[2].cost(unit)

    costs = [cost(share) for share in _SHARES]
    best = min(range(len(_SHARES)), key=lambda k: costs[k])
    around = _SHARES[max(0, best - 1)], _SHARES[min(len(_SHARES) - 1, best + 1)]
    refined = least_at(cost, *around, GOLDEN)
    found = at(refined if cost(refined) < costs[best] else _SHARES[best])
    if found is None:
        return []
    noise, total, _ = found

    def made(reach: float) -> VectorClamp:
        return _way("equalised", equalised, noise.independent, noise.factor, Ball(reach, total), moves, 1.0)

    def excess(reach: float) -> float:
        return math.log(max(clamped_vector_delta(case, made(reach), between)(epsilon), 1e-300) / delta)

    # With a population's chances there is more room than the distance alone would leave.
    reach = widest(excess, mu / 2 * (1.0 if between is None else 4.0), _FINELY)
    return [] if reach is None else [made(reach)]


def _scaled(case: VectorCase, share: float) -> VectorCase:
    """The same with every difference of stated means made smaller."""
    members, rest = (
        tuple((tuple(share * mean for mean in law[0]), law[1]) for law in side) for side in (case.members, case.rest)
    )
    return replace(case, members=members, rest=rest)


def _way(
    form: Form,
    equalised: Equalised,
    independent: tuple[float, ...],
    factor: Rows,
    ball: Ball,
    moves: Moves,
    share: float,
) -> VectorClamp:
    """With what it does to answers: noise of all kinds, and what is taken back."""
    import numpy as np

    taken = moves.weights @ beyond(ball, moves.values) ** 2
    squares = np.diag(_noise(independent, factor)) + share * (moves.weights @ moves.extra) + taken
    metric = tuple(tuple(float(x) for x in row) for row in ball.metric)
    return VectorClamp(form, equalised, independent, factor, ball.reach, metric, tuple(squares.tolist()))


# --------------------------------------------------------------------------------------------------------------- direct


def _direct_ways(
    case: VectorCase,
    epsilon: float,
    delta: float,
    moves: Moves,
    floors: Sequence[float],
    unit: Sequence[float],
    between: Between | None,
    rival: VectorClamp | None,
) -> list[VectorClamp]:
    """For each share of equalising: the ball without further noise, then with the noise on the count that seems best."""
    ways: list[VectorClamp] = []
    for share in _LEFT:
        if rival is not None and _hopeless(rival, moves, floors, unit, share):
            break
        plain = _direct(case, epsilon, delta, moves, floors, share, None, between)
        noisy = None if plain is None else _direct(case, epsilon, delta, moves, floors, share, plain, between)
        better = [way for way in (plain, noisy) if way is not None]
        if ways and min(way.cost(unit) for way in better) > ways[-1].cost(unit):
            break  # more noise did not pay
        ways += sorted(better, key=lambda way: -way.cost(unit))
    return ways


def _hopeless(rival: VectorClamp, moves: Moves, floors: Sequence[float], unit: Sequence[float], share: float) -> bool:
    """Whether less equalising would not pay even with a ball as wide as that of equal covariances."""
    import numpy as np

    ball = Ball(rival.reach, np.array(rival.metric))
    free = _way("direct", rival.equalised, tuple(floors), (), ball, moves, share)
    return free.cost(unit) > 0.98 * rival.cost(unit)


def _direct(
    case: VectorCase,
    epsilon: float,
    delta: float,
    moves: Moves,
    floors: Sequence[float],
    share: float,
    before: VectorClamp | None,
    between: Between | None,
) -> VectorClamp | None:
    import numpy as np

    full = equalise(case)
    equalised = Equalised(full.target, _shares(full.parts, share))
    row = np.array(case.told()[0]) / case.apart
    scale = 0.0 if before is None else _count_noise(before, row, moves)
    if before is not None and scale == 0.0:
        return None
    independent = tuple(float(floor) for floor in floors)
    factor: Rows = tuple((float(scale * x),) for x in row) if scale else ()
    noise = _noise(independent, factor)
    low, high = (_made(case, equalised, a) + noise for a in (case.low, case.high))
    reach = _widest(case, low, high, np.array(full.target) + noise, epsilon, delta, between)
    if reach is None:
        return None
    ball = Ball(reach, np.array(full.target) + noise)
    return _way("direct", equalised, independent, factor, ball, moves, share)


def _shares(parts: Sequence[Part], share: float) -> tuple[Part, ...]:
    if not share:
        return ()
    root = math.sqrt(share)
    return tuple(replace(part, factor=tuple(tuple(root * x for x in line) for line in part.factor)) for part in parts)


def _count_noise(before: VectorClamp, row: Matrix, moves: Moves) -> float:
    """The noise on the count, as an sd in rows, that makes up best for a narrow ball: its width grows like the output's sd."""
    import numpy as np

    ball = Ball(before.reach, np.array(before.metric))
    own = 1 / float(ball.norm(row[None, :])[0])
    lengths = ball.norm(moves.values) * own
    room = before.reach * own

    def cost(noise: float) -> float:
        left = np.maximum(0.0, lengths - room * math.hypot(1.0, noise / own))
        return float(noise**2 + moves.weights @ left**2)

    found = least_at(cost, 0.0, float(lengths.max()), GOLDEN)
    return found if cost(found) < 0.99 * cost(0.0) else 0.0


def _widest(
    case: VectorCase, low: Matrix, high: Matrix, metric: Matrix, epsilon: float, delta: float, between: Between | None
) -> float | None:
    """The largest ball found: first by few distances, then made smaller until all of them agree."""
    import numpy as np

    row = np.array(case.told()[0]) / case.apart
    length = float(Ball(1.0, metric).norm(row[None, :])[0])
    if not length > 0:
        return None
    some = _some(2 * min(case.apart * length, gaussian_mu(epsilon, delta)) / length / 2, case.apart, between)

    def excess(reach: float, runs: Sequence[tuple[int, int]] | None = None) -> float:
        upper = path_delta(case, low, high, Ball(reach, metric), between, runs=runs)(epsilon)
        return math.log(max(upper, 1e-300) / delta)

    reach = widest(lambda reach: excess(reach, some), case.apart * length / 2, _TRIES)
    for _ in range(_SHRINKS):
        if reach is None or excess(reach) <= 0:
            return reach
        reach *= 0.985
    return None


def _some(most: float, apart: int, between: Between | None) -> list[tuple[int, int]]:
    """Distances that tell about where the others are: the ends and, where chances count, what is likely."""
    marks = between.marks(apart) if between is not None else (max(1, min(apart, math.floor(most))), apart)
    return [(mark, mark) for mark in dict.fromkeys(marks)]
