"""What a quantile clip really promises where the slopes are not what was stated.

If the true slopes are (1 + off) times the stated ones, z = (F~ - m)/sqrt(V) given the statistics is not N(0, 1) but N(off t,
c^2): its mean moves with t, what the statistics tell in units of sqrt(V), and c^2 is what true slopes leave of the variance.
The answer's density at y is then

    density of R_t(y) * exp( z^2/2 - (z - off t)^2 / (2 c^2) ) / c,      z = Phi^-1(R_t(y))

and epsilon is read off the laws themselves, at the same delta, on a fine grid of answers: for the ends of what each secret's
pairs allow, for what lies between, and for slopes that are too steep or too flat. Where a secret is not all that is read, t has
a spread given the secret, and the laws are mixed over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.methods.base.accuracy import ModelError, off_by
from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence
from attrpriv.numerics.laws.exact_moments import covariance_of, regression
from attrpriv.numerics.rounding import COMPUTED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_CELLS = 241
# Densities of the answer have corners: with few nodes a mixture of them may look more alike than it is.
_NODES = 81
_BETWEEN = (-8.0, -2.0, 0.0, 2.0, 8.0)
_STEP, _STEPS = 0.5, 16
# A mean is this many standard errors from the assumption's own, at most, where a set of values has no end.
_FAR = 10.0
_HALVINGS = 30
# A normal variable is further from its mean than so many standard deviations once in 10^15.
_ROOM = 8.0
# The scan of values and cells is this fine.
_ROUND_UP = 1.01


@dataclass(frozen=True)
class Line:
    """What one secret tells of the answer, in units of sqrt(V): from where to where, how far apart, and what is left open."""

    low: float
    high: float
    apart: float
    spread: float

    def pairs(self) -> Iterator[tuple[float, float]]:
        """The values to look at: far pairs among a few, near ones along the line and at its ends."""
        ends = [t for t in (self.low, self.high - min(self.apart, self.high - self.low), self.high) if math.isfinite(t)]
        near = math.isfinite(self.apart)
        between = [k * _STEP for k in range(-_STEPS, _STEPS + 1)] if near else _BETWEEN
        points = sorted({*ends, *(t for t in between if self.low <= t <= self.high)})
        for t in points:
            others = [min(t + self.apart, self.high)] if near else points
            yield from ((t, other) for other in others if t < other)

    def covers(self, other: Line) -> bool:
        """Whether pairs of the other line look at least as much alike as the worst pair of this one.

        If the other leaves more open, its law at t is that of this line at t + u, mixed over a normal u: and mixtures of pairs
        with the same weights are no further apart than the worst of the pairs. So t + u must be on this line, too.
        """
        if self.spread > other.spread or self.apart < other.apart:
            return False
        room = _ROOM * math.sqrt(other.spread**2 - self.spread**2)
        return self.low <= other.low - room and self.high >= other.high + room


def model_error(problem: Problem, evidence: QuantileClipEvidence) -> tuple[ModelError, ...]:
    """The epsilon that holds, at the problem's delta, for slopes that are off by each of some shares."""
    try:
        lines = _lines(problem, evidence)
    except (UsageError, ZeroDivisionError):
        return off_by(lambda off: math.inf)
    families = [_Family.of(evidence, line) for line in telling(lines)]
    residual, explained = float(evidence.residual), float(evidence.explained)
    lam, loss, variance = evidence.lam, evidence.loss(), float(evidence.variance)

    def real(off: float) -> float:
        worst = 0.0
        for signed in (off, -off):
            left = (residual - (2 * signed + signed * signed) * explained) / evidence.n + evidence.mask**2
            if not left > 0:
                return math.inf
            for family in families:
                worst = family.epsilon(signed, math.sqrt(left / variance), problem.delta, worst)
        return max(worst * _ROUND_UP + 2 * lam, loss)

    return off_by(real)


def telling(lines: Sequence[Line]) -> list[Line]:
    """The lines that no other one covers; the others tell no more than they do."""
    apart = list(dict.fromkeys(lines))
    return [line for line in apart if not any(other.covers(line) for other in apart if other != line)]


def told_columns(evidence: QuantileClipEvidence) -> dict[str, float]:
    """The combination of columns that the statistics tell of the query."""
    found: dict[str, Fraction] = {}
    for slope, read in zip(evidence.slopes, evidence.reads, strict=True):
        for column, weight in read.coefficients.items():
            found[column] = found.get(column, Fraction(0)) + slope * Fraction(weight)
    return {column: float(weight) for column, weight in found.items()}


def _lines(problem: Problem, evidence: QuantileClipEvidence) -> list[Line]:
    """One for each secret; what is told has many columns, so its covariances are computed once for all."""
    moments = evidence.moments
    forms = [dict(form.coefficients) for secret in problem.secrets for form in secret.forms]
    whole = covariance_of([told_columns(evidence), *forms], moments.columns, moments.scale, moments.matrix)
    lines, end = [], 1
    for secret in problem.secrets:
        start, end = end, end + len(secret.forms)
        chosen = [0, *range(start, end)]
        lines.append(_line(problem, evidence, secret, [[whole[i][j] for j in chosen] for i in chosen]))
    return lines


def _line(problem: Problem, evidence: QuantileClipEvidence, secret: Secret, told: list[list[Fraction]]) -> Line:
    slopes, left = regression(told)
    root = math.sqrt(evidence.variance)
    left = left if left > Fraction(1, 10**12) * told[0][0] else Fraction(0)
    factors = [float(slope) / root for slope in slopes]
    low = high = 0.0
    for factor, (a, b) in zip(factors, _ranges(problem, evidence, secret, told), strict=True):
        ends = (factor * a, factor * b) if factor else (0.0, 0.0)
        low, high = low + min(ends), high + max(ends)
    weights = [form.weight(problem.n) for form in secret.forms]
    within = math.inf if secret.within is None else secret.within
    apart = within * math.hypot(*(factor / weight for factor, weight in zip(factors, weights, strict=True)))
    return Line(low, high, apart, math.sqrt(left / problem.n) / root)


def _ranges(
    problem: Problem, evidence: QuantileClipEvidence, secret: Secret, told: list[list[Fraction]]
) -> list[tuple[float, float]]:
    """How far each statistic of a secret may lie from its mean, to both sides, in the unit of a mean."""
    found = []
    for k, form in enumerate(secret.forms):
        weight, mean = form.weight(problem.n), float(evidence.moments.mean_of(dict(form.coefficients)))
        ends: tuple[float, float] | None = secret.ends
        if isinstance(secret.between, Mapping):
            ends = secret.between[form.text]
        if secret.cases is not None:
            error = math.sqrt(told[k + 1][k + 1] / problem.n) * weight
            listed = [end for case in secret.case_sets for end in case.ends if math.isfinite(end)]
            far = [] if all(case.bounded for case in secret.case_sets) else [*listed, mean * weight]
            listed += [end + side * _FAR * error for end in far for side in (-1, 1)]
            ends = (min(listed), max(listed))
        found.append((-math.inf, math.inf) if ends is None else (ends[0] / weight - mean, ends[1] / weight - mean))
    return found


@dataclass(frozen=True, eq=False)
class _Family:
    """The laws of the answer for the values on one line, on common cells: both ends, and cells of equal width between them."""

    values: tuple[float, ...]
    pairs: tuple[tuple[int, int], ...]
    t: Array  # value, node
    weights: Array
    y: Array
    z: Array  # value, node, cell
    base: Array

    @classmethod
    def of(cls, evidence: QuantileClipEvidence, line: Line) -> _Family:
        import numpy as np

        reach, clip = evidence.grid.reach, evidence.clip
        listed = list(line.pairs())
        values = tuple(sorted({t for pair in listed for t in pair}))
        both = [(values.index(a), values.index(b)) for a, b in listed]
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES) if line.spread else (np.zeros(1), np.ones(1))
        t = np.array(values).reshape(-1, 1) + line.spread * nodes
        middles = (np.arange(_CELLS) + 0.5) * (2 * reach / _CELLS) - reach
        y = np.concatenate([[-reach], middles, [reach]])
        z, ratio = clip.quantiles(t[:, :, None], y)
        base = ratio + (z**2 - y**2) / 2
        return cls(values, (*both, *((b, a) for a, b in both)), t, weights / weights.sum(), y, z, base)

    def epsilon(self, off: float, c: float, delta: float, least: float) -> float:
        """The larger of `least` and the least epsilon with sum of (p - e^epsilon q)_+ <= delta for every pair, both ways."""
        import numpy as np

        if not self.pairs:
            return least
        laws = self._laws(off, c)
        first, second = (laws[[pair[k] for pair in self.pairs]] for k in (0, 1))
        loss, p, found = first - second, np.exp(first), least
        if delta == 0:
            return max(found, float(loss.max()))
        while True:
            beyond = _beyond(p, loss, found)
            worst = int(beyond.argmax())
            if beyond[worst] <= delta:
                return found
            low, high = found, max(float(loss[worst].max()), found)
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                low, high = (low, middle) if _beyond(p[worst], loss[worst], middle) <= delta else (middle, high)
            found = max(high, found * COMPUTED_UP)

    def _laws(self, off: float, c: float) -> Array:
        """The logarithms of the cells' masses, a row for each value."""
        import numpy as np
        from scipy.special import log_ndtr

        moved = (self.z - off * self.t[:, :, None]) / c
        ends = log_ndtr(moved[:, :, 0]), log_ndtr(-moved[:, :, -1])
        width = math.log((self.y[2] - self.y[1]) / c / math.sqrt(2 * math.pi))
        laws = np.square(moved, out=moved)
        laws *= -0.5
        laws += self.base
        laws += width
        laws[:, :, 0], laws[:, :, -1] = ends
        if len(self.weights) == 1:
            return np.asarray(laws[:, 0])
        most = laws.max(axis=1)  # taken out, so that no mass is too small for a float
        laws -= most[:, None]
        return np.asarray(np.log(np.einsum("vnc,n->vc", np.exp(laws, out=laws), self.weights)) + most)


def _beyond(p: Array, loss: Array, epsilon: float) -> Array:
    import numpy as np

    return np.asarray((p * -np.expm1(np.minimum(0.0, epsilon - loss))).sum(axis=-1))
