"""Many transported answers about one table, one guarantee: the clamp with innovations (docs/theory/sequences.md).

Y are the averages of the query columns, m(gamma) what the sensitive statistics gamma tell of them, R = Y - m(gamma) ~ N(0, P0)
what they leave open. Queries q_k'Y come one after the other, each chosen after seeing the answers before it:

    M = q'(m(gamma) + me)    what the owner expects of q'Y, knowing gamma and the answers so far
    N = q'(m(gamma0) + ref)  the same for the public centre gamma0
    T2 = q'P q + s^2,   c = clip(M, N -+ mu_k sqrt(T2)/2),   out = q'Y - M + c + s Z
    K = P q/T2,   me += K (out - c),   ref += K (out - N),   P -= K (P q)'

| symbol | here |
|---|---|
| P, ref | `ClampState.covariance`, `reference`: public |
| me | `expected`: the owner's, recomputed from the table's own m(gamma) and the published answers; never stored |
| K, T2, N, mu_k | `ClampStep` |

Given gamma and the answers so far, out is N(c, T2), and c is within mu_k sqrt(T2)/2 of the public N whatever gamma is. So two
values of gamma differ by a Gaussian step of at most mu_k at each answer, and all answers together by sqrt(sum mu_k^2), also
where the next query and its mu_k depend on what was seen, as long as that sum stays below the total.

With slopes known up to a tolerance, m is off by (B_theta - B0)(gamma - gamma0), of which carried = prod (I - K q') is left when
step k comes, latest factor leftmost: mu_k + max |q' carried (B_theta - B0) kappa_i d_i| / sqrt(T2) is charged instead of mu_k,
and P0 must be below every P0_theta in the semidefinite order.

What must never change: a query in the span of earlier ones is answered by that combination of *published* answers, never drawn
again; and these steps are never mixed with plain additive noise on the same table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attrpriv.errors import RefusedError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
    Vector = NDArray[np.float64]
    Numbers = Sequence[float] | Vector

# Below this share of its first variance, what is left of a query is rounding.
_NOTHING = 1e-9
# Everything here is computed in floats; steps are charged this much more.
_ROUND_UP = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class ClampStep:
    """One answer: all public. `charge` is the Gaussian distance it costs."""

    query: Vector
    noise: float
    spread: float
    gain: Vector
    centre: float
    reach: float
    charge: float

    def shown(self, expected: float) -> float:
        """c: as much of what the owner expects as may show."""
        return min(max(expected, self.centre - self.reach), self.centre + self.reach)


@dataclass(frozen=True, eq=False)
class ClampState:
    """What everybody knows after some answers."""

    first: Matrix
    covariance: Matrix
    reference: Vector
    carried: Matrix
    left_open: Matrix
    spent: float = 0.0
    steps: tuple[ClampStep, ...] = ()
    answers: tuple[float, ...] = ()

    @classmethod
    def start(cls, covariance: Matrix, left_open: Matrix | None = None) -> ClampState:
        """`left_open`: one column (B_theta - B0) kappa_i d_i for each secret and extreme member of the class."""
        import numpy as np

        first = np.asarray(covariance, dtype=np.float64)
        size = len(first)
        if first.shape != (size, size) or not np.isfinite(first).all() or not np.allclose(first, first.T, rtol=1e-12, atol=0):
            raise UsageError("covariance: must be a finite, symmetric matrix.")
        if float(np.linalg.eigvalsh(first)[0]) < -1e-12 * float(np.trace(first)):
            raise UsageError("covariance: must be semidefinite.")
        opened = np.zeros((size, 1)) if left_open is None else np.asarray(left_open, dtype=np.float64).reshape(size, -1)
        return cls(first, first, np.zeros(size), np.eye(size), opened)

    @property
    def distance(self) -> float:
        """How far two values of the secrets can be apart by now, in standard deviations."""
        return math.sqrt(self.spent)

    def step(self, query: Numbers, mu: float, noise: float) -> ClampStep:
        """What the next answer would be like; `mu` is what it may move, `noise` its own standard deviation."""
        import numpy as np

        q = np.asarray(query, dtype=np.float64)
        if q.shape != (len(self.first),) or not np.isfinite(q).all() or not q.any():
            raise UsageError("query: must have a finite weight for each column, not all of them 0.")
        if not (math.isfinite(mu) and mu >= 0 and math.isfinite(noise) and noise >= 0):
            raise UsageError(f"mu, noise: must be finite and at least 0. Got {mu}, {noise}.")
        own = float(q @ self.covariance @ q)
        own = own if own > _NOTHING * float(q @ self.first @ q) else 0.0
        spread = own + noise**2
        if not spread > 0:
            raise RefusedError("query: nothing of it is left open and it has no noise; answer it from earlier answers.")
        bias = float(np.abs(q @ self.carried @ self.left_open).max())
        gain = self.covariance @ q / spread if own else np.zeros(len(q))
        width = math.sqrt(spread)
        return ClampStep(
            query=q,
            noise=noise,
            spread=spread,
            gain=gain,
            centre=float(q @ self.reference),
            reach=mu * width / 2,
            charge=(mu + bias / width) * _ROUND_UP,
        )

    def after(self, step: ClampStep, answer: float) -> ClampState:
        """The state once an answer is published."""
        import numpy as np

        if not math.isfinite(answer):
            raise UsageError("answer: must be finite.")
        shrunk = self.covariance - np.outer(step.gain, self.covariance @ step.query)
        return replace(
            self,
            covariance=(shrunk + shrunk.T) / 2,
            reference=self.reference + step.gain * (answer - step.centre),
            carried=self.carried - np.outer(step.gain, step.query @ self.carried),
            spent=self.spent + step.charge**2,
            steps=(*self.steps, step),
            answers=(*self.answers, answer),
        )

    def expected(self, told: Numbers) -> Vector:
        """m(gamma) + me for the owner, who knows what gamma tells (relative to gamma0): replayed from the published answers."""
        import numpy as np

        known = np.asarray(told, dtype=np.float64)
        for step, answer in zip(self.steps, self.answers, strict=True):
            known = known + step.gain * (answer - step.shown(float(step.query @ known)))
        return known

    def combination(self, query: Numbers) -> Vector | None:
        """The weights with which earlier answers give this query; None where they do not."""
        import numpy as np

        if not self.steps:
            return None
        q, rows = np.asarray(query, dtype=np.float64), np.array([step.query for step in self.steps])
        weights = np.linalg.lstsq(rows.T, q, rcond=None)[0]
        return np.asarray(weights) if np.abs(rows.T @ weights - q).max() <= 1e-12 * np.abs(q).max() else None


def moved(state: ClampState, step: ClampStep, value: float, told: Numbers) -> float:
    """q'Y - M + c: the average moved as this step says; noise comes after. Secret until then."""
    expected = float(step.query @ state.expected(told))
    own = value - expected if step.gain.any() else 0.0
    return own + step.shown(expected)
