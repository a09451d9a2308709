"""H of set-valued secrets over a whole cell of distributions: one bound that holds for every member.

The ends of the sets, standardised, move in ranges while the mean and sd of g move in theirs. Two bounds, both proved; the
smaller one counts. U_a(t), U_b(t) are the sets at a member t, lam_t <= lam.

1. *Ordered intervals.* I below J. The ratio of the two output laws is monotone (a normal kernel is totally positive), so H is
   attained at a half-line of outputs, and a truncated normal law grows stochastically with both of its ends. Hence
       H(J(t) || I(t)) <= H(J with both ends highest || I with both ends lowest), and the same the other way round.
   For sets of several intervals the largest of these over pairs of intervals bounds H, because H is jointly convex.
2. *Any sets.* With the smallest set U- that all U(t) contain, the largest U+ that contains them all, and r = P(U+)/P(U-):
   f_a(t) <= r_a f_{a+} and f_b(t) >= f_{b-} / r_b pointwise, so  H_eps(a(t) || b(t)) <= r_a H_{eps'}(a+ || b-),
   eps' = eps - log r_a - log r_b.

The first is tight for half-lines and far out, the second for symmetric sets near the mean. As a cell shrinks the second
tends to H itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrpriv.errors import QueryError, UsageError
from attrpriv.numerics.divergences.mixture import log_probability_ratio
from attrpriv.numerics.divergences.set_valued import mixture_hockey_stick
from attrpriv.numerics.rounding import ROUNDED_UP

if TYPE_CHECKING:
    from attrpriv.numerics.laws.intervals import EndRange, Interval, IntervalUnion
    from attrpriv.numerics.laws.law_box import Cell


def moving_upper(
    cases: Sequence[IntervalUnion], cell: Cell, lam: float, epsilon: float, target: float | None = None
) -> tuple[float, tuple[int, int]]:
    """An upper bound on H_epsilon over all ordered pairs of cases, all members of the cell and all lam up to `lam`.

    `cases` are the sets of values of g, `cell` the range of its mean and standard deviation, `epsilon` the promise.

    Also returns the pair it comes from. With a `target`, no more is computed than shows on which side of it the bound is.

    >>> from attrpriv.numerics.laws import Cell, parse_cases
    >>> upper, pair = moving_upper(parse_cases(["< 50", ">= 50"]), Cell((49.9, 50.1), (1.0, 1.0)), 0.15, 1.0)
    >>> f"{upper:.3g}"
    '6.33e-06'
    """
    if not epsilon >= 0:
        raise UsageError(f"epsilon: must be at least 0. Got {epsilon}.")
    ranges = [case.end_ranges(cell.means, cell.sds) for case in cases]
    worst, pair = 0.0, (0, 1)
    for i, j in itertools.permutations(range(len(cases)), 2):
        upper = covered_upper(ranges[i], ranges[j], lam, epsilon, target)
        if upper > worst:
            worst, pair = upper, (i, j)
        if target is not None and worst > target:
            break
    return worst, pair


def covered_upper(
    a: Sequence[EndRange], b: Sequence[EndRange], lam: float, epsilon: float, target: float | None = None
) -> float:
    """The smaller of the two bounds on H_epsilon(a || b), for disjoint sets whose ends move together."""
    if lam == math.inf:
        return 1.0
    if len(a) == len(b) == 1:
        return _ordered(a[0], b[0], lam, epsilon)
    by_ratio = _by_ratio(a, b, lam, epsilon)
    if target is not None and by_ratio <= target:
        return by_ratio
    by_intervals = 0.0
    for part, other in itertools.product(a, b):
        by_intervals = max(by_intervals, _ordered(part, other, lam, epsilon))
        if by_intervals >= by_ratio:
            return by_ratio
    return by_intervals


def _ordered(part: EndRange, other: EndRange, lam: float, epsilon: float) -> float:
    """Bound 1 for two intervals. They are disjoint, so the one whose low end starts lower lies below."""
    from attrpriv.numerics.laws.intervals import IntervalUnion

    below = part.low[0] < other.low[0]
    first = IntervalUnion((part.lowest if below else part.highest,))
    second = IntervalUnion((other.highest if below else other.lowest,))
    return mixture_hockey_stick(first, second, lam, epsilon).upper


def _by_ratio(a: Sequence[EndRange], b: Sequence[EndRange], lam: float, epsilon: float) -> float:
    """Bound 2; 1 where some set has no part that all members share, or may be anywhere."""
    (a_wide, a_narrow), (b_wide, b_narrow) = _hulls(a), _hulls(b)
    if a_wide is None or a_narrow is None or b_wide is None or b_narrow is None:
        return 1.0
    log_a, log_b = log_probability_ratio(a_wide, a_narrow), log_probability_ratio(b_wide, b_narrow)
    if not (inner := epsilon - log_a - log_b) >= 0:  # hopeless: at least 1 - e^inner
        return 1.0
    return min(1.0, math.exp(log_a) * ROUNDED_UP * mixture_hockey_stick(a_wide, b_narrow, lam, inner).upper)


def _hulls(ranges: Sequence[EndRange]) -> tuple[IntervalUnion | None, IntervalUnion | None]:
    """The set that contains every position (None: the whole line), and the one that every position contains (None: empty)."""
    narrow = [part for moved in ranges if (part := moved.narrowest) is not None]
    return _union([moved.widest for moved in ranges]), _union(narrow)


def _union(parts: Sequence[Interval]) -> IntervalUnion | None:
    from attrpriv.numerics.laws.intervals import IntervalUnion

    try:
        return IntervalUnion(tuple(parts))
    except QueryError:
        return None
