"""How much one entry of a Markov chain tells about two others: max-influence, never underestimated.

    e(X_{i-a}, X_{i+b} | X_i) = max over s, t of  D_i(s, t) + M_a(s, t) + R_b(s, t)

| symbol | meaning |
|---|---|
| D_i(s, t) | log pi_i(t)/pi_i(s), pi_i the law of X_i |
| M_a(s, t) | max over x that X_{i-a} can be, of log P^a(x, s)/P^a(x, t) |
| R_b(s, t) | max over y, of log P^b(s, y)/P^b(t, y) |

s and t are states that X_i can have. Given X_i the two sides are independent, so the loss of both is the sum, at the same pair
(s, t). A `Shape` (a, b) is the quilt {X_{i-a}, X_{i+b}}; 0 means no entry on that side, and (0, 0) is the empty quilt.
What must never change: a support that differs gives infinity, and every number has `margin` on top, which covers all rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.markov import LEAST, Marginals, MarkovChain, Powers, marginals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Shape = tuple[int, int]
# Finite stand-ins, so that sums of them are never NaN: an infinite influence, and a pair of states that cannot be.
INFINITE = 1e30
IMPOSSIBLE = -1e60
# Logarithms of floats above LEAST are below 700; a few of them are added, each off by less than 1e-13.
_LOGS = 2e-12
_CHUNK = 1 << 21
_MOST = 1 << 25


@dataclass(eq=False)
class ChainInfluence:
    """The influences of one chain of `length` nodes; tables of powers grow as they are needed.

    `chain` has `length` entries; `laws` are those of each entry.

    >>> stays = ChainInfluence(MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9))), 100)
    >>> float(stays.of(50, (3, 0)).round(6))
    1.130873
    """

    chain: MarkovChain
    length: int
    laws: Marginals = field(init=False)
    _powers: Powers = field(init=False)
    _tables: dict[bytes, NDArray[np.float64]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        import numpy as np

        if self.length < 1:
            raise UsageError(f"length: must be at least 1. Got {self.length}.")
        k = self.chain.states
        self.laws, self._powers = marginals(self.chain, self.length), Powers(self.chain)
        if self.laws.nodes * k * k > _MOST:
            raise UsageError(
                f"length: a chain of {k} states that does not settle is too long to be searched. Got {self.length}."
            )
        s, t = np.nonzero(~np.eye(k, dtype=bool))
        self._s, self._t = s, t
        self._own = self._log_ratios()
        self._kinds, self._kind_of = np.unique(self.laws.support, axis=0, return_inverse=True)
        self._kind_of = self._kind_of.reshape(-1)

    def _log_ratios(self) -> NDArray[np.float64]:
        """D_i(s, t), a row for each node that is known on its own."""
        import numpy as np

        values, support = self.laws.values, self.laws.support
        with np.errstate(divide="ignore"):
            logs = np.where(values >= LEAST, np.log(values), 0.0)
        usable = values >= LEAST
        found = np.where(usable[:, self._s] & usable[:, self._t], logs[:, self._t] - logs[:, self._s], INFINITE)
        return np.where(support[:, self._s] & support[:, self._t], found, IMPOSSIBLE)

    @property
    def skipped(self) -> NDArray[np.bool_]:
        """The nodes, of those known on their own, that have a single possible state: nothing to hide."""
        import numpy as np

        return np.asarray(self.laws.support.sum(axis=1) < 2)

    def right(self, w: int) -> NDArray[np.float64]:
        """R_1, ..., R_w: a row each, a column for each pair (s, t)."""
        return self._table(b"right", w)

    def left(self, node: int, w: int, *, settled: bool = False) -> NDArray[np.float64]:
        """D_i + M_a for a = 1, ..., w; `settled`: for any node far from the start."""
        import numpy as np

        own = self._own[self._row(node)]
        kinds = self._kind_of[self._row(np.arange(node - 1, node - 1 - w, -1))]
        if settled:
            own, kinds = self._own[-1], np.full(w, self._kind_of[-1])
        found = np.empty((w, len(self._s)))
        for kind in np.unique(kinds):
            found[kinds == kind] = self._table(self._kinds[kind].tobytes(), w)[:w][kinds == kind]
        return np.asarray(own + found)

    def own(self, node: int) -> NDArray[np.float64]:
        """D_i(s, t) for each pair (s, t); IMPOSSIBLE where X_i cannot have one of the two states."""
        import numpy as np

        return np.asarray(self._own[self._row(node)])

    def backwards(self, w: int) -> NDArray[np.float64]:
        """M_m(t, s) for each pair (s, t) and m = 1, ..., w, whatever the earlier entry is."""
        import numpy as np

        k = self.chain.states
        places = np.zeros((k, k), dtype=np.int64)
        places[self._s, self._t] = np.arange(len(self._s))
        return self._table(np.ones(k, dtype=bool).tobytes(), w)[:, places[self._t, self._s]]

    def possible(self, node: int, *, settled: bool = False) -> NDArray[np.bool_]:
        """The pairs (s, t) of states that X_i can have."""
        import numpy as np

        return np.asarray(self._own[-1 if settled else self._row(node)] > IMPOSSIBLE)

    def _row(self, node: int | NDArray[np.int64]) -> NDArray[np.int64]:
        import numpy as np

        return np.minimum(np.maximum(node, 1), self.laws.nodes) - 1

    def _table(self, key: bytes, w: int) -> NDArray[np.float64]:
        """The log-ratios of the powers for one support of the earlier entry, extended to P^w."""
        import numpy as np

        known = self._tables.get(key, np.empty((0, len(self._s))))
        if len(known) < w:
            self._powers.reach(w)
            more = self._ratios(key, len(known), len(self._powers.values))
            known = self._tables[key] = np.concatenate([known, more])
        return known[:w]

    def _ratios(self, key: bytes, start: int, end: int) -> NDArray[np.float64]:
        import numpy as np

        values, positive = self._powers.values[start:end], self._powers.positive[start:end]
        if key == b"right":
            values, positive, rows = values.swapaxes(1, 2), positive.swapaxes(1, 2), np.ones(self.chain.states, dtype=bool)
        else:
            rows = np.frombuffer(key, dtype=bool)
        usable = positive & (values >= LEAST)
        logs = np.log(np.where(usable, values, 1.0))
        worst = np.full((end - start, len(self._s)), IMPOSSIBLE)
        for x in np.flatnonzero(rows):
            both = usable[:, x, self._s] & usable[:, x, self._t]
            ratio = np.where(both, logs[:, x, self._s] - logs[:, x, self._t], INFINITE)
            worst = np.maximum(worst, np.where(positive[:, x, self._s], ratio, IMPOSSIBLE))
        return worst

    def margin(self, node: int, shape: Shape, *, settled: bool = False) -> float:
        """What all rounding can amount to, and the drift of the laws after they have settled."""
        steps = min(node, self.laws.nodes) + shape[0] + shape[1]
        moved = self.laws.drift if settled or node > self.laws.nodes else 0.0
        return 2.5 * self.chain.error(steps + 3) + _LOGS + moved

    def of(self, nodes: int | Sequence[int] | NDArray[np.int64], shape: Shape) -> NDArray[np.float64]:
        """The influence of each of these nodes on its quilt, from above; INFINITE where the quilt does not fit."""
        import numpy as np

        listed = np.atleast_1d(np.asarray(nodes, dtype=np.int64))
        per = max(1, _CHUNK // len(self._s))
        parts = [self._of(listed[k : k + per], shape) for k in range(0, len(listed), per)]
        found = np.concatenate(parts) if parts else np.empty(0)
        return found if np.ndim(nodes) else found[0]

    def _of(self, nodes: NDArray[np.int64], shape: Shape) -> NDArray[np.float64]:
        import numpy as np

        a, b = shape
        fits = ((nodes - a >= 1) | (a == 0)) & ((nodes + b <= self.length) | (b == 0))
        total = self._own[self._row(nodes)]
        possible = total.max(axis=1) > IMPOSSIBLE
        if a == b == 0:
            return np.zeros(len(nodes))
        if a:
            sides = np.stack([self._table(kind.tobytes(), a)[a - 1] for kind in self._kinds])
            total = total + sides[self._kind_of[self._row(nodes - a)]]
        else:  # nothing of the past is told: only which states are possible matters
            total = np.where(total > IMPOSSIBLE, 0.0, IMPOSSIBLE)
        total = total + self.right(b)[b - 1] if b else total
        late = np.where(nodes > self.laws.nodes, self.laws.drift, 0.0)
        found = np.maximum(total.max(axis=1), 0.0) + self.margin(self.laws.nodes, shape) + late
        return np.where(fits, np.where(possible, found, 0.0), INFINITE)

    def of_settled(self, shape: Shape) -> float:
        """The influence on a quilt with both ends, for every node further than `laws.nodes` + a from the start."""
        worst = self.left(1, shape[0], settled=True)[-1] + self.right(shape[1])[-1]
        return max(0.0, float(worst.max())) + self.margin(self.laws.nodes, shape, settled=True)


def near(nodes: NDArray[np.int64], shape: Shape, length: int) -> NDArray[np.int64]:
    """How many entries the quilt does not separate from X_i, itself included."""
    import numpy as np

    a, b = shape
    return np.asarray((a or nodes) + (b or length - nodes + 1) - 1 + 0 * nodes)
