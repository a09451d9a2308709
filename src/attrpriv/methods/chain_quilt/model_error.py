"""What holds if the probabilities of a chain are off: the real epsilon of its quilts, from above.

Every probability may be larger or smaller by a share x of itself; what is impossible stays so. With c = log (1 + x)/(1 - x)

    e' of a quilt {X_(i-a), X_(i+b)} <= e + (a + b) c + E,     E what the law of X_i itself can move

With the symbols of `divergences.chain_influence`, R_b and M_a move by b c and a c. D_i(s, t) = log pi_i(t)/pi_i(s)
moves by i c at most (the first entry and i - 1 steps); and for every m < i it is at most M_m(t, s) + m c after the move, so by
no more than M_m(t, s) - D_i(s, t) + m c, which stays small however long the chain is. A quilt with ends at a and b has
a + b - 1 near entries, one with one end at distance a at least a, so that (a + b) c is no more than c for each near entry and c
once: the loss at rate r is at most that at rate r + c, plus c + E.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrpriv.errors import AttrprivError
from attrpriv.methods.base.accuracy import ModelError, off_by
from attrpriv.numerics.calibration.chain_quilt import chain_loss
from attrpriv.numerics.divergences.chain_influence import IMPOSSIBLE, INFINITE, ChainInfluence
from attrpriv.numerics.laws.records import log_change
from attrpriv.numerics.rounding import COMPUTED_UP
from attrpriv.numerics.search import or_infinite

if TYPE_CHECKING:
    from attrpriv.methods.chain_quilt.plan import ChainCheck, ChainEvidence

# How many steps back the law of an entry is looked at, and how many numbers that may take.
_STEPS = 48
_MOST_WORK = 3e7


def chain_model_error(evidence: ChainEvidence) -> tuple[ModelError, ...]:
    """The loss of the same noise where the first law and every transition are off; nothing where the chain is too large."""
    moves = [_Moves.of(check, evidence.length) for check in evidence.checks]
    if any(move is None for move in moves):
        return ()
    known = [(check, move) for check, move in zip(evidence.checks, moves, strict=True) if move is not None]
    return off_by(lambda off: max(_chain_loss(evidence, check, move, off) for check, move in known))


def _chain_loss(evidence: ChainEvidence, check: ChainCheck, moves: _Moves, off: float) -> float:
    rate, change = evidence.rate(), log_change(off)
    # Without a quilt all entries are near, and nothing rests on the chain.
    trivial = evidence.length * rate * COMPUTED_UP
    found = or_infinite(lambda: chain_loss(check.chain, evidence.length, rate + change, check.shapes))
    return min(trivial, found + change + moves.largest(change))


class _Moves:
    """How far the law of an entry can move: for each node the least excess of M_m(t, s) over D_i(s, t), for m = 1, 2, ..."""

    def __init__(self, excess: list[list[float]], length: int) -> None:
        self._excess, self._length = excess, length

    @staticmethod
    def of(check: ChainCheck, length: int) -> _Moves | None:
        """None where there are too many nodes that differ, or states."""
        try:
            table = ChainInfluence(check.chain, length)
        except AttrprivError:
            return None
        nodes, states = table.laws.nodes, check.chain.states
        if float(nodes) * states * states * _STEPS > _MOST_WORK:
            return None
        return _Moves([_excess(table, node) for node in range(1, nodes + 1)], length)

    def largest(self, change: float) -> float:
        """E: the most that any node moves. Later nodes move as the last one listed does, but have more nodes before them."""
        last = len(self._excess)
        later = (*range(last + 1, min(self._length, last + _STEPS + 1) + 1), self._length)
        nodes = [*enumerate(self._excess, 1), *((node, self._excess[-1]) for node in later)]
        return max(self._of(node, found, change) for node, found in nodes)

    @staticmethod
    def _of(node: int, excess: list[float], change: float) -> float:
        ways = [node * change, *(more + m * change for m, more in enumerate(excess, 1) if m < node)]
        return min(ways)


def _excess(table: ChainInfluence, node: int) -> list[float]:
    """max over (s, t) of M_m(t, s) - D_i(s, t) for m = 1, 2, ..., from above; the law of a settled node drifts a little."""
    import numpy as np

    settled = table.laws.settled and node == table.laws.nodes
    own = np.asarray(table.own(node))
    possible = own > IMPOSSIBLE
    if not possible.any():
        return [0.0] * _STEPS
    back = table.backwards(_STEPS)[:, possible]
    found = np.where(back >= INFINITE / 2, math.inf, back - own[possible]).max(axis=1)
    return [float(x) + table.margin(node, (_STEPS, 0), settled=settled) for x in found]
