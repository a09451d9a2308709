"""A parameter network from reference populations: hospitals, districts or years, one row each, never the private table.

    table[x | parents] = (count of x with these parents + smoothing) / (count of these parents + smoothing * number of states)

Columns are cut into bins; a bin stands for its middle. Without `parents` the graph is the tree of the most mutual information
between neighbours, rooted at the first column. The fit is a *modelling choice*: how many populations there are, where the edges
lie and which parents are allowed decide what an adversary is taken to believe, and no confidence is claimed. State a tolerance
for that.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from attrpriv.assumptions.parameter_network import FittedPopulations, ParameterNetwork
from attrpriv.errors import DataError, UsageError
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.composition import bin_names


class Populations(Protocol):
    """What a pass over reference populations gives."""

    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def values(self) -> Sequence[Sequence[float]]:
        """Of each column, its entries in the order of the rows."""
        ...

    @property
    def digest(self) -> str: ...


class PopulationTable(Protocol):
    """Reference populations; `attrpriv.engines.moments.PublicTable` is one."""

    def populations(self, columns: Sequence[str]) -> Populations: ...


Codes = Mapping[str, Sequence[int]]


def fit_populations(
    table: PopulationTable,
    *,
    bins: Mapping[str, Sequence[float]],
    tolerance: float,
    parents: Mapping[str, Sequence[str]] | None = None,
    smoothing: float = 1.0,
) -> ParameterNetwork:
    """Read the columns that have bins, cut them, and count."""
    if not callable(getattr(table, "populations", None)):  # a path is easily given by mistake
        raise UsageError(
            f'populations: must be a public table, as in PublicTable("districts.csv"). Got a {type(table).__name__}.'
        )
    if not bins or not (math.isfinite(smoothing) and smoothing >= 0):
        raise UsageError(f"bins: must name one or more columns, and smoothing be at least 0. Got {smoothing!r}.")
    for column, edges in bins.items():
        _require_edges(column, edges)
    found = table.populations(tuple(bins))
    if found.rows < 2:
        raise DataError(f"populations: must be two or more. Got {found.rows}.")
    codes = {
        name: [_bin(name, bins[name], x) for x in column] for name, column in zip(found.columns, found.values, strict=True)
    }
    graph = _ordered(tuple(bins), _tree(codes, bins) if parents is None else parents)
    nodes = {name: _node(name, graph[name], codes, bins, smoothing) for name in graph}
    return ParameterNetwork(
        network=Network(nodes=nodes),
        values={name: {state: _middle(bins[name], k) for k, state in enumerate(bin_names(bins[name]))} for name in graph},
        tolerance=tolerance,
        fitted=FittedPopulations(rows=found.rows, digest=found.digest, columns=tuple(found.columns)),
    )


def _require_edges(column: str, edges: Sequence[float]) -> None:
    increasing = all(a < b for a, b in itertools.pairwise(edges)) and all(map(math.isfinite, edges))
    if len(edges) < 3 or not increasing:
        raise UsageError(f"bins: {column} needs three or more finite edges, each above the one before. Got {list(edges)}.")


def _bin(column: str, edges: Sequence[float], x: float) -> int:
    """Which bin; the last one includes its upper edge."""
    if not edges[0] <= x <= edges[-1]:  # also a NaN
        raise DataError(f"populations: every entry of {column} must lie in its bins, {edges[0]:g} to {edges[-1]:g}.")
    return min(sum(x >= edge for edge in edges) - 1, len(edges) - 2)


def _middle(edges: Sequence[float], k: int) -> float:
    return edges[k] + (edges[k + 1] - edges[k]) / 2


def _ordered(columns: Sequence[str], parents: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Each column's parents, parents before children; an error where there is a cycle."""
    unknown = [name for child, given in parents.items() for name in (child, *given) if name not in columns]
    if unknown:
        raise UsageError(f"parents: must be columns with bins. Got {unknown[0]}.")
    graph: dict[str, tuple[str, ...]] = {}
    while len(graph) < len(columns):
        ready = [c for c in columns if c not in graph and all(p in graph for p in parents.get(c, ()))]
        if not ready:
            left = ", ".join(c for c in columns if c not in graph)
            raise UsageError(f"parents: must be without cycles. Got one among {left}.")
        graph[ready[0]] = tuple(parents.get(ready[0], ()))
    return graph


def _tree(codes: Codes, bins: Mapping[str, Sequence[float]]) -> dict[str, tuple[str, ...]]:
    """The tree that joins each column to the one, among those already joined, with which it shares the most information."""
    names = list(bins)
    tree: dict[str, tuple[str, ...]] = {names[0]: ()}
    while len(tree) < len(names):
        left = [name for name in names if name not in tree]
        child, parent = max(itertools.product(left, tree), key=lambda pair: _information(codes[pair[0]], codes[pair[1]]))
        tree[child] = (parent,)
    return tree


def _information(a: Sequence[int], b: Sequence[int]) -> float:
    """Mutual information of two columns of codes."""
    n, first, second = len(a), Counter(a), Counter(b)
    return math.fsum(c / n * math.log(c * n / (first[x] * second[y])) for (x, y), c in Counter(zip(a, b, strict=True)).items())


def _node(name: str, parents: tuple[str, ...], codes: Codes, bins: Mapping[str, Sequence[float]], smoothing: float) -> Node:
    states, sizes = bin_names(bins[name]), [len(bins[parent]) - 1 for parent in parents]
    seen = Counter(zip(codes[name], *(codes[parent] for parent in parents), strict=True))
    rows = []
    for combination in itertools.product(*map(range, sizes)):
        counts = [seen[(k, *combination)] + smoothing for k in range(len(states))]
        total = math.fsum(counts)
        if not total > 0:
            raise DataError(f"populations: some combination of {', '.join(parents)} has none. Use smoothing, or wider bins.")
        rows.append(tuple(count / total for count in counts))
    return Node(states=tuple(states), parents=parents, table=tuple(rows))
