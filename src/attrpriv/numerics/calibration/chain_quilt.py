"""The least score of the Markov Quilt Mechanism on a chain: how much Laplace noise hides each entry (Song et al. 2017).

    score(X_i) = min over quilts Q of X_i  of  |N| / (epsilon - e(Q | X_i)),       sigma = max over i of score(X_i)

| symbol | here |
|---|---|
| Q | a `Shape` (a, b): {X_{i-a}, X_{i+b}}, {X_{i-a}}, {X_{i+b}} or nothing (0, 0) |
| N | the entries that Q does not separate from X_i, itself included: `near` |
| e | `ChainInfluence`, from above |

Every quilt gives a sound score for its node, so a search can only be wasteful, never wrong. It is exact all the same: the node
with the worst score so far is searched in full, what is found there is tried on every other node, and this goes on until the
worst node is one that was searched. Nodes behind the one where the laws have settled share one search: with the quilt (a, b) a
node near the end uses {X_{i-a}} alone, which has fewer near entries and no more influence. What must never change: `sigma` is
at least the score that each node gets from the quilts listed in `shapes`, so `chain_loss` confirms it from them alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.chain_influence import INFINITE, ChainInfluence, Shape, near
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_UP, SUMMED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TRIVIAL: Shape = (0, 0)
# An influence that leaves less than this share of epsilon is not used: its score would only carry rounding.
_LEAST_LEFT = 1e-6
_CHUNK = 1 << 21
_MOST_POWERS = 1 << 23
_MOST_NODES = 1 << 24
_MOST_SEARCHES = 64
_MOST_WORK = 1 << 19


@dataclass(frozen=True)
class ChainScore:
    """sigma, the node that needs it with its best quilt, and the quilts that cover all nodes.

    `node` counts from 1, has the `quilt` with this `influence`, and `near` entries; with `tail` all later nodes but the last
    few need the same. `shapes` cover all nodes; `exact`: none was `skipped`. `sigma` is the noise. Made by `chain_score`.
    """

    sigma: float
    node: int
    quilt: Shape
    influence: float
    near: int
    tail: bool
    shapes: tuple[Shape, ...]
    skipped: int
    exact: bool

    @property
    def nodes(self) -> tuple[int, ...]:
        """The entries of the quilt by their places in the chain."""
        ends = (self.node - self.quilt[0] if self.quilt[0] else None, self.node + self.quilt[1] if self.quilt[1] else None)
        return tuple(end for end in ends if end is not None)


def chain_score(chain: MarkovChain, length: int, epsilon: float) -> ChainScore:
    """The noise that every entry of `chain` of this `length` needs for `epsilon`, in units of the sensitivity to one entry.

    >>> stays = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    >>> round(chain_score(stays, 50, 1.0).sigma, 5)
    31.73779
    """
    return _Search(ChainInfluence(chain, length), _positive(epsilon)).run()


def chain_loss(chain: MarkovChain, length: int, rate: float, shapes: Sequence[Shape]) -> float:
    """The loss of any entry of `chain` of this `length`, from above: max over i, min over `shapes`, of e(Q | X_i) + rate |N|.

    `rate` is the sensitivity to one entry over the scale of the noise; of several releases, the sum of their rates.

    >>> chain_loss(MarkovChain((0.5, 0.5), ((0.5, 0.5), (0.5, 0.5))), 50, 0.25, [(1, 1)]) < 0.25 + 1e-9
    True
    """
    import numpy as np

    table = ChainInfluence(chain, length)
    fitting = [shape for shape in dict.fromkeys([*shapes, *(side for shape in shapes for side in _sides(shape))]) if any(shape)]
    tail, head = math.nan, length
    pairs = [shape for shape in fitting if all(shape) and sum(shape) <= length]
    if table.laws.settled:
        head = min(length, table.laws.nodes + max((a for a, _ in pairs), default=0))
        tail = min([rate * length, *(table.of_settled(shape) + rate * (sum(shape) - 1) for shape in pairs)])
        tail = 0.0 if table.skipped[-1] else tail
    nodes = np.arange(1, head + 1)
    losses = np.full(head, rate * length)
    for shape in fitting:
        losses = np.minimum(losses, table.of(nodes, shape) + rate * near(nodes, shape, length))
    losses[table.skipped[_rows(table, nodes)]] = 0.0
    worst = float(losses.max()) if head >= length else max(float(losses.max()), tail)
    return worst * SUMMED_UP


def node_score(chain: MarkovChain, length: int, epsilon: float, node: int, quilt: Shape) -> float:
    """|N| / (`epsilon` - e) of a `quilt` (a, b) of `node` 1, 2, ... of a `chain` of this `length`; inf where it is not usable.

    >>> paper = MarkovChain((1.0, 0.0), ((0.9, 0.1), (0.4, 0.6)))
    >>> round(node_score(paper, 100, 1.0, 8, (5, 5)), 4)
    13.0219
    """
    import numpy as np

    if not 1 <= node <= length:
        raise UsageError(f"node: must be from 1 to {length}. Got {node}.")
    nodes = np.array([node])
    influence = ChainInfluence(chain, length).of(nodes, quilt)
    return float(_scores(influence, near(nodes, quilt, length), _positive(epsilon))[0])


class _Search:
    """One chain, one epsilon: scores from above for each node, lowered until the worst is known to be right."""

    def __init__(self, table: ChainInfluence, epsilon: float) -> None:
        import numpy as np

        self.table, self.epsilon, self.length = table, epsilon, table.length
        self.shapes: list[Shape] = [TRIVIAL]
        self.exact, self.work = True, 0
        self.trivial = self.length / epsilon * SUMMED_UP
        self.tail, self.tail_quilt, self.head = self._settle()
        self.nodes = np.arange(1, self.head + 1)
        self.upper = np.full(self.head, self.trivial)
        self.upper[table.skipped[_rows(table, self.nodes)]] = 0.0
        self.chosen = np.zeros(self.head, dtype=np.int64)
        if self.tail_quilt != TRIVIAL:
            self._apply(self.tail_quilt)

    def _settle(self) -> tuple[float, Shape, int]:
        """The score and quilt of all nodes behind the head, and how long the head is."""
        laws = self.table.laws
        if not laws.settled or laws.support[-1].sum() < 2:
            return 0.0, TRIVIAL, laws.nodes if laws.settled else self.length
        score, quilt = self._search(laws.nodes, self.trivial, settled=True)
        head = min(self.length, laws.nodes + quilt[0])
        if quilt != TRIVIAL:
            return (0.0 if head >= self.length else score), quilt, head
        if self.length * self.table.chain.states**2 <= _MOST_NODES:
            return 0.0, TRIVIAL, self.length
        self.exact = False
        return self.trivial, TRIVIAL, head

    def run(self) -> ChainScore:
        import numpy as np

        searched = self.tail
        for _ in range(_MOST_SEARCHES):
            worst = int(np.argmax(self.upper))
            if self.upper[worst] <= searched * SOLVED_UP:
                break
            if self.work > _MOST_WORK:
                self.exact = False
                break
            _, quilt = self._search(worst + 1, float(self.upper[worst]))
            if quilt != TRIVIAL:
                self._apply(quilt)
            searched = max(searched, float(self.upper[worst]))
        else:
            self.exact = False
        return self._result(int(np.argmax(self.upper)))

    def _result(self, worst: int) -> ChainScore:
        in_tail = self.tail >= self.upper[worst]
        node = min(self.length, self.head + 1) if in_tail else worst + 1
        quilt = self.tail_quilt if in_tail else self.shapes[int(self.chosen[worst])]
        influence = self.table.of_settled(quilt) if in_tail and all(quilt) else float(self.table.of(node, quilt))
        skipped = int(self.table.skipped.sum())
        if self.table.laws.settled and self.table.skipped[-1]:
            skipped += self.length - self.table.laws.nodes
        return ChainScore(
            sigma=max(self.tail, float(self.upper[worst])),
            node=node,
            quilt=quilt,
            influence=influence,
            near=(quilt[0] or node) + (quilt[1] or self.length - node + 1) - 1,
            tail=bool(in_tail),
            shapes=tuple(self.shapes),
            skipped=skipped,
            exact=self.exact,
        )

    def _apply(self, quilt: Shape) -> None:
        """Lower every node's score by this quilt, and by each of its sides alone."""
        import numpy as np

        for shape in (quilt, *_sides(quilt)):
            if shape in self.shapes:
                continue
            self.shapes.append(shape)
            found = _scores(self.table.of(self.nodes, shape), near(self.nodes, shape, self.length), self.epsilon)
            better = found < self.upper
            self.chosen = np.where(better, len(self.shapes) - 1, self.chosen)
            self.upper = np.where(better, found, self.upper)

    def _search(self, node: int, best: float, *, settled: bool = False) -> tuple[float, Shape]:
        """The best quilt of one node, with windows that grow until no wider quilt can be better: |N| <= epsilon score."""
        quilt = TRIVIAL
        before = after = self.length  # a settled node has room on both sides; its ends are looked after elsewhere
        if not settled:
            before, after = node - 1, self.length - node
        w = 32
        while True:
            limit = min(self.length, math.floor(self.epsilon * best) + 1)
            widest = min(w, limit, max(1, _MOST_POWERS // self.table.chain.states**2))
            self.work += widest
            found = self._within(node, min(before, widest), min(after, widest), best, settled=settled)
            best, quilt = (found[0], found[1]) if found[0] < best else (best, quilt)
            limit = min(self.length, math.floor(self.epsilon * best) + 1, max(before, after))
            if widest >= limit:
                return best, quilt
            if widest < w:
                self.exact = False
                return best, quilt
            w *= 4

    def _within(self, node: int, before: int, after: int, best: float, *, settled: bool) -> tuple[float, Shape]:
        import numpy as np

        table, none = self.table, (INFINITE, TRIVIAL)
        margin = table.margin(node, (before, after), settled=settled)
        possible = table.possible(node, settled=settled)
        left = table.left(node, before, settled=settled)[:, possible] + margin
        right = table.right(max(1, after))[:after, possible]
        found = [two_sided(left, right, self.epsilon, best)]
        if not settled:
            sides = np.maximum(left.max(axis=1), 0.0) if before else np.empty(0)
            scores = _scores(sides, self.length - node + np.arange(1, before + 1), self.epsilon)
            found.append((float(scores.min()), (int(scores.argmin()) + 1, 0)) if before else none)
            sides = np.maximum(right.max(axis=1), 0.0) + margin if after else np.empty(0)
            scores = _scores(sides, node - 1 + np.arange(1, after + 1), self.epsilon)
            found.append((float(scores.min()), (0, int(scores.argmin()) + 1)) if after else none)
        return min(found)


def two_sided(left: NDArray[np.float64], right: NDArray[np.float64], epsilon: float, best: float) -> tuple[float, Shape]:
    """The least score of quilts with two ends, by halving blocks: influence falls with distance (data processing).

    A block of quilts a0..a1, b0..b1 scores at least (a0 + b0 - 1)/(epsilon - e(a1, b1)), and is dropped where that is no gain.
    """
    import numpy as np

    found = (INFINITE, TRIVIAL)
    size = 4 ** max(0, math.ceil(math.log(max(1, len(left), len(right)) / 24, 4)))
    a0, b0 = (grid.ravel() for grid in np.meshgrid(np.arange(0, len(left), size), np.arange(0, len(right), size)))
    while len(a0):
        a1, b1 = np.minimum(a0 + size - 1, len(left) - 1), np.minimum(b0 + size - 1, len(right) - 1)
        influence = _sums(left, right, a1, b1)
        scores = _scores(influence, a1 + b1 + 1, epsilon)
        k = int(scores.argmin())
        found = min(found, (float(scores[k]), (int(a1[k]) + 1, int(b1[k]) + 1)))
        if size == 1:
            break
        keep = _scores(influence, a0 + b0 + 1, epsilon) < min(best, found[0])
        size //= 4
        steps = np.arange(4) * size
        a0, b0 = (
            (a0[keep][:, None, None] + steps[:, None] + 0 * steps).ravel(),
            (b0[keep][:, None, None] + 0 * steps[:, None] + steps).ravel(),
        )
        inside = (a0 < len(left)) & (b0 < len(right))
        a0, b0 = a0[inside], b0[inside]
    return found


def _sums(
    left: NDArray[np.float64], right: NDArray[np.float64], a: NDArray[np.int64], b: NDArray[np.int64]
) -> NDArray[np.float64]:
    """max over pairs of states of left + right, for each quilt."""
    import numpy as np

    per = max(1, _CHUNK // max(1, left.shape[1]))
    parts = [(left[a[k : k + per]] + right[b[k : k + per]]).max(axis=1) for k in range(0, len(a), per)]
    return np.asarray(np.maximum(np.concatenate(parts), 0.0))


def _scores(influence: NDArray[np.float64], size: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """|N| / (epsilon - e), rounded up."""
    import numpy as np

    spare = epsilon - influence
    return np.where(spare > _LEAST_LEFT * epsilon, size / np.maximum(spare, 1e-300) * SUMMED_UP, INFINITE)


def _sides(shape: Shape) -> tuple[Shape, ...]:
    return tuple(side for side in ((shape[0], 0), (0, shape[1])) if any(side) and side != shape)


def _rows(table: ChainInfluence, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    return np.minimum(nodes, table.laws.nodes) - 1


def _positive(epsilon: float) -> float:
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be positive and finite. Got {epsilon}.")
    return epsilon


# ----------------------------------------------------------------------------------------------------------------------------
# A closed bound on the score of a chain that mixes, for any node and initial law (the approximate form of Song et al.).
#
#     Delta_n = gamma^n (1/pi_min - 1)            |P^n(x, y)/pi(y) - 1| <= Delta_n for all x, y
#     e(X_{i-a}, X_{i+b} | X_i) <= 2 l(Delta_a) + l(Delta_b),       l(d) = log (1 + d)/(1 - d)
#
# | symbol | meaning |
# |---|---|
# | pi | the stationary law, all of it positive; pi_min its least probability |
# | gamma | the norm of P on functions of mean 0 under pi: the second singular value of diag(pi)^(1/2) P diag(pi)^(-1/2) |
#
# The bound holds at every node and for every initial law, so one minimum over (a, b) covers the whole chain. Where the chain
# is reversible, gamma is the second largest modulus of an eigenvalue. What must never change: pi is enclosed by the rows of a
# power of P (each stationary probability lies between the least and the largest entry of its column), and gamma is rounded up
# by what that and the linear algebra can be off.


_TIGHT = 1e-9
_DOUBLINGS = 40


def mixing(chain: MarkovChain) -> tuple[float, float]:
    """(pi_min from below, gamma from above); UsageError where the chain does not visit all states, or hardly mixes.

    >>> [round(x, 6) for x in mixing(MarkovChain((1.0, 0.0), ((0.8, 0.2), (0.3, 0.7))))]
    [0.4, 0.5]
    """
    import numpy as np

    power, steps = chain.matrix(), 1
    for _ in range(_DOUBLINGS):
        low, high = power.min(axis=0), power.max(axis=0)
        if low.min() > 0 and (high / low).max() - 1 <= _TIGHT:
            break
        power, steps = power @ power, 2 * steps
    else:
        raise UsageError("transition: the closed bound needs a chain that reaches every state and mixes; use the exact search.")
    off = float((high / low).max() - 1) + 2 * chain.error(steps)
    root = np.sqrt((low + high) / 2)
    shape = root[:, None] * chain.matrix() / root
    centred = shape - np.outer(root, root)
    slack = 2 * off * (float(np.linalg.norm(shape)) + 1) + 1e-12 * chain.states
    gamma = float(np.linalg.norm(centred, 2)) + slack
    return float(low.min()) * (1 - 2 * off), min(1.0, gamma)


def closed_influence(chain: MarkovChain, quilt: Shape) -> float:
    """The bound on e of `quilt` (a, b) for any node of `chain`; INFINITE or more where Delta is not below 1.

    >>> round(closed_influence(MarkovChain((0.5, 0.5), ((0.7, 0.3), (0.3, 0.7))), (4, 3)), 4)
    0.2306
    """
    least, gamma = mixing(chain)
    return (2 * _ratio(least, gamma, quilt[0]) if quilt[0] else 0.0) + (_ratio(least, gamma, quilt[1]) if quilt[1] else 0.0)


def approximate_chain_score(chain: MarkovChain, length: int, epsilon: float) -> tuple[float, Shape]:
    """sigma from above for every initial law, and the quilt that gives it ((0, 0): the whole chain).

    `chain` has `length` entries; its start is ignored. `epsilon` is the promise.

    >>> sigma, quilt = approximate_chain_score(MarkovChain((0.5, 0.5), ((0.7, 0.3), (0.3, 0.7))), 100, 1.0)
    >>> round(sigma, 4), quilt
    (7.7983, (4, 3))
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be positive and finite. Got {epsilon}.")
    import numpy as np

    least, gamma = mixing(chain)
    losses = np.array([_ratio(least, gamma, n) for n in range(1, _widest(least, gamma, length) + 1)]).reshape(-1, 1)
    trivial = length / epsilon * COMPUTED_UP
    score, quilt = two_sided(2 * losses, losses, epsilon, trivial)
    return (score * COMPUTED_UP, quilt) if score * COMPUTED_UP < trivial else (trivial, TRIVIAL)


def _ratio(least: float, gamma: float, n: int) -> float:
    """l(Delta_n), from above."""
    delta = gamma**n * (1 / least - 1) * COMPUTED_UP
    return (math.log1p(delta) - math.log1p(-delta)) * COMPUTED_UP if delta < 1 else INFINITE


def _widest(least: float, gamma: float, length: int) -> int:
    """Beyond this distance nothing is left of the influence that a float would show."""
    if gamma >= 1:
        return 0
    if gamma <= 0:
        return 1
    return min(length, 1 + math.ceil(math.log(1e-17 * least) / math.log(gamma)))
