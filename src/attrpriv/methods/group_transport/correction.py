"""What a table's counts tell of its averages, taken back; and how far such an answer will be from the table's own.

    F' = F - Y + h(Y) + noise,      Y = sum over c of n_c m_c/n - centre

*Tables to expect.* Errors are means over the counts that are expected: binomial by the prior share of the secret's categories
(of an interval, by that end where errors are larger); for a share of the population binomial by that end of its range where
they are (a mean over binomial counts of a convex function is convex in the share); without either, all counts of the range
alike. Categories on one side share its rows by their prior shares, or equally. None of this is part of the promise.

What must never change: Y is exact in fractions; only the factor that shortens a vector is a float, whose rounding the promise
covers. Nothing of the counts is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attrpriv.assumptions.groups import Groups
from attrpriv.cases.unequal import members_of
from attrpriv.errors import UsageError
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.mixed_spread import MixedSpread
from attrpriv.methods.group_transport.clamp import Moves
from attrpriv.methods.group_transport.vector_clamp import beyond
from attrpriv.numerics.calibration.groups import Part
from attrpriv.numerics.divergences.group_vector_clamp import Ball
from attrpriv.numerics.laws.groups import GroupCase, VectorCase
from attrpriv.problem.problem import Problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.methods.group_transport.proof import AnyGroupTransport, GroupTransportEvidence, GroupVectorTransportEvidence

    Array = NDArray[np.float64]

_NODES = 1001
_DRAWS = 8192


# ------------------------------------------------------------------------------------------------------ tables to expect


@dataclass(frozen=True)
class Expected:
    """How counts vary: a share for binomial counts, none for all counts of the range; and how sides share their rows."""

    share: float | None
    inside: tuple[float, ...]
    outside: tuple[float, ...]

    def to_parameters(self) -> dict[str, Any]:
        return {"share": self.share, "inside": list(self.inside), "outside": list(self.outside)}

    @classmethod
    def of(cls, parameters: Any) -> Expected:
        return cls(parameters["share"], tuple(parameters["inside"]), tuple(parameters["outside"]))


def expected_tables(groups: Groups, members: Sequence[str], shares: tuple[float, float] | None) -> tuple[Expected, ...]:
    """What is expected of the tables: one way, or one for each end of a population's range, or of a prior share's interval."""
    rest = [name for name in groups.categories if name not in members]
    stated = {name: float((low + high) / 2) for name, (low, high) in (groups.prior or {}).items()}
    sides = [_weights([stated.get(name) for name in side]) for side in (list(members), rest)]
    if shares is not None:
        return tuple(Expected(end, *sides) for end in shares)
    ends: list[float | None] = [None]
    if all(name in stated for name in members):
        ends = [min(1.0, float(sum((groups.prior or {})[name][end] for name in members))) for end in (0, 1)]
    elif all(name in stated for name in rest):
        ends = [max(0.0, float(1 - sum((groups.prior or {})[name][end] for name in rest))) for end in (1, 0)]
    return tuple(Expected(share, *sides) for share in dict.fromkeys(ends))


def _weights(stated: Sequence[float | None]) -> tuple[float, ...]:
    known = [share or 0.0 for share in stated]
    total = sum(known)
    if any(share is None for share in stated) or not total > 0:
        return (1 / len(stated),) * len(stated)
    return tuple(share / total for share in known)


def centre_share(case: GroupCase | VectorCase, ways: Sequence[Expected]) -> float:
    """The share around which nothing is taken back: the expected one, or the middle of the range."""
    shares = [way.share for way in ways if way.share is not None]
    return sum(shares) / len(shares) if shares else (case.low + case.high) / 2 / case.n


def tables(case: GroupCase | VectorCase, way: Expected) -> tuple[Array, Array]:
    """Counts of each category (a row for each table) and how likely they are; the same on every run."""
    import numpy as np

    if len(way.inside) + len(way.outside) == 2:
        count, weights = _counts(case, way.share)
        return np.column_stack([count, case.n - count]), weights
    # Several categories on a side: draws from a fixed stream, which is public like everything here.
    stream = np.random.default_rng(0)
    low, high = case.low, case.high
    inside = stream.integers(low, high + 1, _DRAWS) if way.share is None else stream.binomial(case.n, way.share, _DRAWS)
    drawn = [stream.multinomial(inside, way.inside), stream.multinomial(case.n - inside, way.outside)]
    return np.hstack(drawn).astype(np.float64), np.full(_DRAWS, 1 / _DRAWS)


def _counts(case: GroupCase | VectorCase, share: float | None) -> tuple[Array, Array]:
    import numpy as np
    from scipy.special import gammaln, xlog1py, xlogy

    low, high = case.low, case.high
    if share is not None:
        reach = 9 * math.sqrt(case.n * share * (1 - share)) + 9
        low, high = max(0, math.floor(case.n * share - reach)), min(case.n, math.ceil(case.n * share + reach))
    count = np.unique(np.round(np.linspace(low, high, min(_NODES, high - low + 1))))
    if share is None:
        return count, np.full(len(count), 1 / len(count))
    ways = gammaln(case.n + 1) - gammaln(count + 1) - gammaln(case.n - count + 1)
    weights = np.exp(ways + xlogy(count, share) + xlog1py(case.n - count, -share))
    return count, weights / weights.sum()


def scalar_moves(case: GroupCase, centre: float, way: Expected) -> Moves:
    """y, and the noise that equalising would add."""
    import numpy as np

    counts, weights = tables(case, way)
    laws = (*case.members, *case.rest)
    values = counts @ np.array([mean for mean, _ in laws]) / case.n - centre
    own = counts @ np.array([sd**2 for _, sd in laws]) / case.n**2
    return Moves(values, weights, np.maximum(0.0, case.stated.most_variance - own))


def vector_moves(case: VectorCase, parts: Sequence[Part], centre: Sequence[float], way: Expected) -> Moves:
    """Y, and the noise of these parts."""
    import numpy as np

    counts, weights = tables(case, way)
    laws = (*case.members, *case.rest)
    values = counts @ np.array([mean for mean, _ in laws]) / case.n - np.array(centre)
    inside = counts[:, : len(case.members)].sum(axis=1)
    x = np.clip((inside - case.low) / (case.high - case.low), 0.0, 1.0)
    extra = np.zeros(values.shape)
    for part in parts:
        side = part.index + (len(case.members) if part.role == "rest" else 0)
        weight = {"low": 1 - x, "high": x}.get(part.role, counts[:, side] / case.n)
        extra += np.outer(weight, (np.array(part.factor) ** 2).sum(axis=1))
    return Moves(values, weights, extra)


# ---------------------------------------------------------------------------------------------------------- the errors


def scalar_spreads(evidence: GroupTransportEvidence, way: Expected) -> tuple[MixedSpread, ...]:
    """The law of one average's error over the tables that are expected."""
    import numpy as np

    case = evidence.check.case
    if not isinstance(case, GroupCase):
        raise UsageError("evidence: must be about one average.")
    moves = scalar_moves(case, evidence.centre, way)
    left = np.sign(moves.values) * np.maximum(0.0, np.abs(moves.values) - evidence.reach)
    extra = moves.extra * (evidence.form == "equalised")
    return (MixedSpread(left, np.sqrt(evidence.scale**2 + extra), moves.weights),)


def vector_spreads(evidence: GroupVectorTransportEvidence, way: Expected) -> tuple[MixedSpread, ...]:
    """The law of each average's error over the tables that are expected."""
    import numpy as np

    case = evidence.check.case
    if not isinstance(case, VectorCase):
        raise UsageError("evidence: must be about several averages.")
    moves = vector_moves(case, evidence.equalised.parts, evidence.centre, way)
    gone = beyond(Ball(evidence.reach, np.array(evidence.metric)), moves.values)
    spreads = []
    for k, own in enumerate(evidence.independent):
        common = sum(x * x for x in evidence.factor[k]) if evidence.factor else 0.0
        spreads.append(MixedSpread(gone[:, k], np.sqrt(own**2 + common + moves.extra[:, k]), moves.weights))
    return tuple(spreads)


def taken_along(evidence: AnyGroupTransport, way: Expected, column: int, constant: float) -> float:
    """E of what is taken back times how far the average that the counts tell of is from a constant, over expected tables."""
    import numpy as np

    case = evidence.check.case
    gone, weights = evidence.spreads(way)[column].residuals, tables(case, way)[1]
    counts = tables(case, way)[0]
    means = np.array([np.atleast_1d(mean)[column] for mean, _ in (*case.members, *case.rest)])
    return float(weights @ (gone * (counts @ means / case.n - constant)))


def along(evidence: AnyGroupTransport, problem: Problem, column: int, constant: float) -> float | None:
    """The most that the tables of one groups assumption give; None where there are several."""
    stated = problem.assumed(Groups)
    if len(stated) != 1:
        return None
    ways = expected_tables(stated[0], members_of(stated[0], problem.secrets[0]), None)
    return max(taken_along(evidence, way, column, constant) for way in ways)


def error_law(evidence: AnyGroupTransport, columns: Sequence[ColumnPlan], place: int) -> MixedSpread:
    """The law of the error of the average at this place, over the tables that are expected."""
    return evidence.spreads(Expected.of(columns[place].parameters["expected"]))[place]
