"""The mechanisms of `song2017pufferfish` for the entries of a binary chain, from their definitions.

    group(length, epsilon)                      all entries count as one
    approximate(alpha, length, epsilon)         MQMApprox: the closed bound by stationary law and eigengap
    exact(pairs, length, epsilon, starts)       MQMExact: the largest influence of each quilt, over all chains listed

All return the scale of Laplace noise on the count of one state. The family of `alpha` are the chains with p = P(0 | 0) and
q = P(1 | 1) in [alpha, 1 - alpha] from any start. `exact` goes over those pairs (p, q) that it is given, so that it is, if
anything, below what the published mechanism needs for the whole family. In floats and without rounding: this is what is
compared with, nothing is released by it. Nothing here is used by attrpriv.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
PAIRS = ((0, 1), (1, 0))


def group(length: int, epsilon: float) -> float:
    return length / epsilon


def closed(least: float, gap: float, length: int, epsilon: float, node: int | None = None) -> float:
    """The least |N|/(epsilon - e) of a node, by e <= 2 l(a) + l(b), l(n) = log (least + d)/(least - d), d = exp(-n gap/2).

    Without a node: one far from both ends.
    """
    left, right = (length, length) if node is None else (node - 1, length - node)
    widest = min(length, math.ceil(60 / gap))
    steps = np.arange(1, widest + 1)
    moved = np.exp(-steps * gap / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(moved < least, np.log((least + moved) / (least - moved)), np.inf)
    a, b = steps[: min(left, widest)], steps[: min(right, widest)]
    best = length / epsilon
    if len(a) and len(b):
        best = min(best, _least(2 * loss[: len(a), None] + loss[None, : len(b)], a[:, None] + b[None, :] - 1, epsilon))
    if node is not None:
        best = min(best, _least(2 * loss[: len(a)], length - node + a, epsilon), _least(loss[: len(b)], node + b - 1, epsilon))
    return best


def approximate(alpha: float, length: int, epsilon: float) -> float:
    """Of the family: the stationary law is at least alpha, and the gap of the reversible chain at least 4 alpha."""
    return max(closed(alpha, 4 * alpha, length, epsilon, node) for node in range(1, length + 1))


def exact(pairs: Iterable[tuple[float, float]], length: int, epsilon: float, starts: Iterable[Array] | None = None) -> float:
    """The largest score of a node of one of the chains; without starts: from any one."""
    given = None if starts is None else list(starts)
    return max(_exact(p, q, length, epsilon, given) for p, q in pairs)


def _exact(p: float, q: float, length: int, epsilon: float, starts: list[Array] | None) -> float:
    power = powers(p, q, length)
    with np.errstate(divide="ignore"):
        logs = np.log(power)
    left = np.array([(logs[1:, :, x] - logs[1:, :, y]).max(axis=1) for x, y in PAIRS])
    right = np.array([(logs[1:, x, :] - logs[1:, y, :]).max(axis=1) for x, y in PAIRS])
    # P(X_i = y)/P(X_i = x) is a quotient of two linear functions of the start: largest where the start is one state.
    laws = [power[:, k, :] for k in (0, 1)] if starts is None else [np.einsum("k,nkx->nx", start, power) for start in starts]
    with np.errstate(divide="ignore"):
        prior = np.array([np.max([np.log(law[:, y]) - np.log(law[:, x]) for law in laws], axis=0) for x, y in PAIRS])
    return max(_node(node, length, epsilon, left, right, prior[:, node - 1]) for node in range(1, length + 1))


def _node(node: int, length: int, epsilon: float, left: Array, right: Array, prior: Array) -> float:
    a, b = np.arange(1, node), np.arange(1, length - node + 1)
    before, after = left[:, : node - 1] + prior[:, None], right[:, : length - node]
    best = length / epsilon
    if len(a):
        best = min(best, _least(before.max(axis=0), length - node + a, epsilon))
    if len(b):
        best = min(best, _least(after.max(axis=0), node + b - 1, epsilon))
    if len(a) and len(b):
        both = (before[:, :, None] + after[:, None, :]).max(axis=0)
        best = min(best, _least(both, a[:, None] + b[None, :] - 1, epsilon))
    return best


def _least(influence: Array, near: Any, epsilon: float) -> float:
    spare = epsilon - influence
    with np.errstate(divide="ignore"):
        return float(np.where(spare > 0, near / np.maximum(spare, 1e-300), np.inf).min(initial=np.inf))


def powers(p: float, q: float, length: int) -> Array:
    """The matrix to the powers 0, 1, ..., length, in closed form."""
    stationary = np.array([1 - q, 1 - p]) / (2 - p - q)
    base = np.broadcast_to(stationary, (2, 2))
    left = np.eye(2) - base
    found: Array = base + ((p + q - 1.0) ** np.arange(length + 1))[:, None, None] * left
    return np.maximum(found, 0.0)


def gap_of(matrix: Array) -> tuple[float, float]:
    """(the least stationary probability, the eigengap of P times its reverse), for `closed`."""
    values, vectors = np.linalg.eig(matrix.T)
    stationary = np.real(vectors[:, int(np.argmin(abs(values - 1)))])
    stationary = stationary / stationary.sum()
    reverse = matrix.T * stationary[None, :] / stationary[:, None]
    both = np.sort(abs(np.linalg.eigvals(matrix @ reverse)))
    return float(stationary.min()), float(1 - both[-2])
