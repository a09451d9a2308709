"""The Markov Quilt Mechanism on a small Bayesian network: all separating sets of each node, by enumeration.

    score(X_i) = min over Q of |N| / (epsilon - e(X_Q | X_i)),      N = X_i and all that Q does not d-separate from it

The general form of `chain_quilt`: the entries are the nodes of a network (the attributes of one record, say), and any set of
other entries may be the quilt Q. Deleting Q from the drawing is not enough: two parents of a common child become dependent
when the child, or something below it, is in Q (`networks.network`). What must never change: N is everything outside Q that
is not d-separated from X_i given Q, and of several networks (Theta) each pair of node and quilt counts with its largest
influence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.networks.network import Network, connected
from attrpriv.numerics.rounding import COMPUTED_UP

MOST_NODES = 12
# An influence that leaves less than this share of epsilon is not used: its score would only carry rounding.
_LEAST_LEFT = 1e-6


@dataclass(frozen=True)
class NetworkQuilt:
    """The best quilt of one node: what separates, what stays near (the node included), and the score |N|/(epsilon - e).

    `node` is hidden, `quilt` separates, `near` stays, `influence` is e, `score` the scale. Made by `network_score`.
    """

    node: str
    quilt: tuple[str, ...]
    near: tuple[str, ...]
    influence: float
    score: float


def network_score(networks: Network | Sequence[Network], epsilon: float) -> tuple[NetworkQuilt, ...]:
    """The best quilt of each node; the noise for an L-Lipschitz query has scale L times the largest score.

    `networks` is one network or all that may be true, `epsilon` the promise.

    >>> from attrpriv.numerics.networks.network import Node
    >>> stay = ((0.9, 0.1), (0.1, 0.9))
    >>> three = Network(nodes={"x": Node(states=("0", "1"), table=((0.5, 0.5),)),
    ...     "y": Node(states=("0", "1"), parents=("x",), table=stay), "z": Node(states=("0", "1"), parents=("y",), table=stay)})
    >>> [(best.quilt, round(best.score, 4)) for best in network_score(three, 4.0)]
    [(('y',), 0.5547), ((), 0.75), (('y',), 0.5547)]
    >>> [(best.quilt, round(best.score, 4)) for best in network_score(three, 8.0)]
    [(('y',), 0.1723), (('x', 'z'), 0.2774), (('y',), 0.1723)]
    """
    theta = (networks,) if isinstance(networks, Network) else tuple(networks)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be positive and finite. Got {epsilon}.")
    names = tuple(theta[0].nodes) if theta else ()
    if not names or len(names) > MOST_NODES:
        raise UsageError(f"network: quilts are listed for up to {MOST_NODES} nodes. Got {len(names)}.")
    if any(set(network.nodes) != set(names) for network in theta):
        raise UsageError("network: those of a list must have the same nodes.")
    return tuple(_best(theta, names, node, epsilon) for node in names)


def _best(theta: Sequence[Network], names: Sequence[str], node: str, epsilon: float) -> NetworkQuilt:
    """Wider quilts are only looked at where they can still be better."""
    best = NetworkQuilt(node, (), tuple(names), 0.0, len(names) / epsilon * COMPUTED_UP)
    others = [name for name in names if name != node]
    for quilt in itertools.chain.from_iterable(itertools.combinations(others, r) for r in range(len(names))):
        near = frozenset({node}).union(*(connected(network, node, quilt) for network in theta))
        if len(near) / epsilon >= best.score:
            continue
        influence = max(max_influence(network, of=quilt, on=node).value for network in theta) if quilt else 0.0
        spare = epsilon - influence
        if spare > _LEAST_LEFT * epsilon and len(near) / spare * COMPUTED_UP < best.score:
            kept = tuple(name for name in names if name in near)
            best = NetworkQuilt(node, quilt, kept, influence, len(near) / spare * COMPUTED_UP)
    return best
