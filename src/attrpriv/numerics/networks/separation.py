"""What the graph of a network alone says: which columns cannot tell anything about another, once some are known.

| function | says |
|---|---|
| `ancestors` | the columns on which the law of some columns depends at all; all others sum to one |
| `connected` | the columns that are *not* d-separated from one, given others |
| `boundary` | of some columns those that are needed: the rest is d-separated from the one, given them |

A path is open unless it meets a given column in its middle, except that a collider (two arrows into it) is open only if it or
one of its descendants is given. So deleting a collider from the graph separates nothing: knowing it *connects* its parents.
What must never change: `connected` contains every column that some network with this graph makes dependent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from attrpriv.numerics.networks.network import Network


def ancestors(network: Network, names: Iterable[str]) -> frozenset[str]:
    """These columns and all that lead to them."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += network.nodes[name].parents
    return frozenset(found)


def ancestral(network: Network, names: Iterable[str]) -> Network:
    """The part of a network on which the joint law of these columns depends; the same law."""
    kept = ancestors(network, names)
    return Network(nodes={name: node for name, node in network.nodes.items() if name in kept})


def connected(network: Network, source: str, given: Iterable[str]) -> frozenset[str]:
    """The columns that are not d-separated from the source, given others; the source and the given ones left out."""
    known = frozenset(given)
    opened = ancestors(network, known)  # a collider in here is open
    children = _children(network)
    reached: set[str] = set()
    seen = {(source, "up")}
    left = deque(seen)
    while left:
        name, way = left.popleft()
        if name not in known:
            reached.add(name)
        steps = [(parent, "up") for parent in network.nodes[name].parents] if _climbs(name, way, known, opened) else []
        if name not in known:
            steps += [(child, "down") for child in children[name]]
        for step in steps:
            if step not in seen:
                seen.add(step)
                left.append(step)
    return frozenset(reached - {source})


def _climbs(name: str, way: str, known: frozenset[str], opened: frozenset[str]) -> bool:
    """Whether a path may go on to a parent: upwards through an unknown column, or back up from an open collider."""
    return name not in known if way == "up" else name in opened


def _children(network: Network) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {name: [] for name in network.nodes}
    for name, node in network.nodes.items():
        for parent in node.parents:
            children[parent].append(name)
    return children


def boundary(network: Network, source: str, names: Iterable[str]) -> tuple[str, ...]:
    """The fewest of these columns that say all that they say about the source, in the network's order.

    >>> from attrpriv.numerics.networks.network import Node
    >>> flip = ((0.7, 0.3), (0.3, 0.7))
    >>> chain = Network(nodes={"a": Node(states=("0", "1"), table=((0.5, 0.5),)),
    ...     "b": Node(states=("0", "1"), parents=("a",), table=flip), "c": Node(states=("0", "1"), parents=("b",), table=flip)})
    >>> boundary(chain, "a", ("b", "c"))
    ('b',)
    """
    wanted = frozenset(names)
    kept = [name for name in network.nodes if name in wanted]
    for name in reversed(tuple(kept)):
        others = [other for other in kept if other != name]
        if name not in connected(network, source, others):
            kept = others
    return tuple(kept)
