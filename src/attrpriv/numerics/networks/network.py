"""A Bayesian network: columns (or their parameters) with finite states, and a table of probabilities for each.

    P(x) = product over columns of table[x_column | its parents]

Read from BIF files, taken from pyagrum (extra `networks`), or stated in Python. What must never change: a network that exists
has no cycle (parents come before children), and every row of every table is a law.
"""

from __future__ import annotations

import math
import os
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator, model_validator

from attrpriv.errors import PolicyError
from attrpriv.frozen import Finite, FrozenDict, FrozenMap, FrozenModel
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.networks.bif import read_bif

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tensor = NDArray[np.float64]

# How far a row of decimal fractions may be from summing to one; at tolerance 0 it is then divided by its sum.
_SUM_SLACK = 1e-5
_MOST_BYTES = 16 << 20
_COUNTED = 1_000_000_000


class Node(FrozenModel):
    """One column: its states, its parents, and a row of probabilities for each combination of theirs, the last one fastest."""

    states: tuple[str, ...] = Field(min_length=2)
    parents: tuple[str, ...] = ()
    table: tuple[tuple[Finite, ...], ...]


class Network(FrozenModel):
    """Columns in an order in which parents come before children."""

    nodes: FrozenMap[Node]

    @field_validator("nodes")
    @classmethod
    def _parents_first(cls, nodes: Mapping[str, Node]) -> Mapping[str, Node]:
        """The order of the nodes is kept where it is right; JSON with sorted keys, as a ledger keeps it, forgets it."""
        left, done = dict(nodes), dict[str, Node]()
        while left:
            ready = next((name for name, node in left.items() if all(parent in done for parent in node.parents)), None)
            if ready is None:
                break  # a cycle, or a parent that is not there: refused below
            done[ready] = left.pop(ready)
        return FrozenDict({**done, **left})

    @model_validator(mode="after")
    def _consistent(self) -> Network:
        seen: dict[str, int] = {}
        for name, node in self.nodes.items():
            unknown = [parent for parent in node.parents if parent not in seen]
            if unknown:
                raise ValueError(f"{name}: parents must come before their children. Got {unknown[0]}.")
            if any(len(set(names)) != len(names) for names in (node.states, node.parents)):
                raise ValueError(f"{name}: its states and its parents must be different from one another.")
            _require_table(name, node, math.prod(seen[parent] for parent in node.parents))
            seen[name] = len(node.states)
        return self

    def array(self, name: str) -> Tensor:
        """The table of a column, one axis for each parent and the last one for the column itself."""
        import numpy as np

        node = self.nodes[name]
        shape = [len(self.nodes[parent].states) for parent in node.parents]
        return np.array(node.table, dtype=np.float64).reshape(*shape, len(node.states))


def _require_table(name: str, node: Node, rows: int) -> None:
    if len(node.table) != rows or any(len(row) != len(node.states) for row in node.table):
        many = str(rows) if rows < _COUNTED else "too many"  # Python does not write out thousands of digits
        raise ValueError(f"{name}: its table needs {many} row(s) of {len(node.states)} probabilities.")
    for row in node.table:
        if any(not 0 <= p <= 1 for p in row):
            raise ValueError(f"{name}: probabilities must be between 0 and 1. Got {list(row)}.")
        off = math.fsum(row) - 1
        if abs(off) > _SUM_SLACK:
            raise ValueError(f"{name}: each row of its table must sum to 1. Got a row that is off by {off:+.3g}.")


def read_network(source: object) -> object:
    """A network from a BIF file's path, from a pyagrum network, or as it is."""
    if isinstance(source, Network | Mapping):
        return source
    if isinstance(source, str | Path):
        return _load(Path(source))
    gum = sys.modules.get("pyagrum")  # who holds one of its networks has imported it
    if gum is None or not isinstance(source, gum.BayesNet):
        raise ValueError(f"must be the path of a BIF file or a pyagrum network. Got {shown(source)}.")
    order = list(source.topologicalOrder())
    place = {source.variable(k).name(): at for at, k in enumerate(order)}
    return Network(nodes={source.variable(k).name(): _node(source, k, place) for k in order})


def _load(path: Path) -> Network:
    text, problem = _content(path)
    if problem is not None:
        raise PolicyError(f"network: must be the path of a BIF file. Got {shown(str(path), 200)}, which {problem}.")
    found = read_bif(text, shown(path.name, 200)[1:-1])
    return Network(
        nodes={name: Node(states=states, parents=parents, table=table) for name, (states, parents, table) in found.items()}
    )


def _content(path: Path) -> tuple[str, str | None]:
    """The text, or what is wrong with the file in fixed words."""
    if not os.path.isfile(path):  # os.path, unlike Path, answers False to a name that no file system would take
        return "", "is not there"
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            return "", f"is larger than {_MOST_BYTES >> 20} MiB"
        return content.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        return "", "is not in UTF-8"
    except OSError:
        return "", "cannot be read"


def _node(net: Any, k: int, place: Mapping[str, int]) -> Node:
    """pyagrum keeps the column first among a table's variables, and numpy's axes in the reverse order."""
    import numpy as np

    tensor = net.cpt(k)
    names = list(tensor.names)
    parents = tuple(sorted(names[1:], key=lambda name: place[name]))
    values = np.asarray(tensor.toarray(), dtype=np.float64)
    axes = list(reversed(names)) if values.ndim == len(names) else names
    ordered = np.transpose(values, [axes.index(name) for name in (*parents, names[0])])
    variable = net.variable(k)
    rows = ordered.reshape(-1, ordered.shape[-1])
    return Node(
        states=tuple(variable.label(state) for state in range(variable.domainSize())),
        parents=parents,
        table=tuple(tuple(_as_written(float(p)) for p in row) for row in rows),
    )


def _as_written(p: float) -> float:
    """pyagrum reads a file's numbers in single precision: of those, the shortest decimal fraction (0.3, not 0.30000001192)."""
    import numpy as np

    single = np.float32(p)
    return float(str(single)) if float(single) == p else p


# ----------------------------------------------------------------------------------------------------------------------------
# What the graph of a network alone says: which columns cannot tell anything about another, once some are known.
#
# | function | says |
# |---|---|
# | `ancestors` | the columns on which the law of some columns depends at all; all others sum to one |
# | `connected` | the columns that are *not* d-separated from one, given others |
# | `boundary` | of some columns those that are needed: the rest is d-separated from the one, given them |
#
# A path is open unless it meets a given column in its middle, except that a collider (two arrows into it) is open only if it
# or one of its descendants is given. So deleting a collider from the graph separates nothing: knowing it *connects* its
# parents. What must never change: `connected` contains every column that some network with this graph makes dependent.


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
