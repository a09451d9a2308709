"""What trees tell: how often, for how many rows and where each column splits, and the first splits of the first trees.

Trees differ from table to table in their size, so that their nodes cannot be compared one by one; these numbers can. Trees are
known by what they have, not by their class: scikit-learn's, and those of its boosting by histograms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attrpriv.audit.tables import Floats, Whole

FIRST = 20


@dataclass(frozen=True)
class Tree:
    """Nodes in order, the root first: the column each splits at (-1: a leaf), where, how many rows it has, what it says."""

    column: Whole
    threshold: Floats
    rows: Floats
    left: Whole
    value: Floats

    @property
    def splits(self) -> Whole:
        return np.flatnonzero(self.column >= 0)


def tree_of(value: Any) -> Tree | None:
    """The tree that an object is; None where it is something else."""
    if all(hasattr(value, name) for name in ("children_left", "feature", "threshold", "weighted_n_node_samples", "value")):
        column = np.where(value.children_left < 0, -1, value.feature)
        said = value.value.reshape(len(column), -1)[:, -1]
        return _tree(column, value.threshold, value.weighted_n_node_samples, value.children_left, said)
    nodes = getattr(value, "nodes", None)
    fields = {"feature_idx", "num_threshold", "count", "left", "is_leaf", "value"}
    if isinstance(nodes, np.ndarray) and nodes.dtype.names and fields <= set(nodes.dtype.names):
        column = np.where(nodes["is_leaf"] != 0, -1, nodes["feature_idx"].astype(np.int64))
        return _tree(column, nodes["num_threshold"], nodes["count"], nodes["left"], nodes["value"])
    return None


def _tree(column: Any, threshold: Any, rows: Any, left: Any, value: Any) -> Tree:
    where = np.nan_to_num(np.asarray(threshold, np.float64))
    numbers = np.asarray(rows, np.float64), np.asarray(left, np.int64), np.asarray(value, np.float64)
    return Tree(np.asarray(column, np.int64), where, *numbers)


def tree_numbers(trees: Sequence[Tree], names: Sequence[str] | None) -> dict[str, Floats]:
    """Of all trees of one model together, by column; and of the first ones by themselves."""
    split = 1 + max((int(tree.column.max()) for tree in trees), default=-1)
    called = list(names) if names is not None and len(names) >= split else [str(k) for k in range(split)]
    width = len(called)  # a column that never splits tells something too
    often, mass, leftwards, where = np.zeros((4, width))
    for tree in trees:
        at = tree.splits
        column, rows = tree.column[at], tree.rows[at]
        np.add.at(often, column, 1)
        np.add.at(mass, column, rows)
        np.add.at(leftwards, column, tree.rows[tree.left[at]])
        np.add.at(where, column, rows * tree.threshold[at])
    total = np.where(mass > 0, mass, 1)
    by_column = {"splits": often, "mass": mass, "leftwards": leftwards / total, "thresholds": where / total}
    found = {f".{name}[{called[k]}]": one[k : k + 1] for name, one in by_column.items() for k in range(width)}
    found[".nodes"] = np.array([sum(len(tree.column) for tree in trees), sum(len(tree.splits) for tree in trees)], float)
    found[".roots"] = np.array([_root(tree) for tree in trees[:FIRST]]).ravel()
    return found


def _root(tree: Tree) -> list[float]:
    """Which share of the rows goes to the left at the root; what the root says, and its left side."""
    if tree.column[0] < 0:
        return [1.0, tree.value[0], tree.value[0]]
    left = tree.left[0]
    return [tree.rows[left] / max(tree.rows[0], 1), tree.value[0], tree.value[left]]
