"""Calibrated weights in use: from a table's Gram matrix to averages that say nothing about its sensitive columns.

    A = [1, X],   a0 = (1, t0),   q = a0' (A'A)^-1 a0,   B = (A'A)^-1 A'Y,   R = Y'Y - Y'A B

    answers = a0'B + sqrt(Q - q) z' R^(1/2)        z the first coordinates of a uniform direction in n - 1 - p dimensions

which is w'Y for weights w = A (A'A)^-1 a0 + sqrt(Q - q) u, u uniform on the unit sphere orthogonal to the columns of A: no row
is needed, only sums. The failure event is q > Q, a singular A'A or a singular R.

All of it is arithmetic on fractions, from whole numbers of steps; square roots have 160 binary digits. So nothing that a float
could lose is left to tell anything.

What must never change: a failure says that it happened and nothing else; q and the direction are used and forgotten, and the
direction is drawn afresh only because a ledger allows one release of a table. Two directions for one table would tell q.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.errors import CertificateError
from attrpriv.noise import add_gaussian
from attrpriv.noise.direction import direction, root

if TYPE_CHECKING:
    from attrpriv.methods.calibrated_weights.proof import WeightsEvidence

Matrix = list[list[Fraction]]


def weighted_averages(
    evidence: WeightsEvidence,
    columns: Sequence[tuple[str, float | None, object]],
    rows: int,
    sums: Sequence[int],
    products: Sequence[Sequence[int]],
) -> dict[str, Fraction] | None:
    """The released averages, masked, from sums over the sensitive columns and then the released ones; None: it failed.

    `columns` are those of a plan, each with its public value for missing entries and its clipping: they must be the evidence's.
    """
    if list(columns) != [(one.column, one.fill, None) for one in evidence.columns]:
        raise CertificateError("plan: must weight the columns that its certificate counted on. Nothing was released.")
    p, wanted = len(evidence.sensitive), len(evidence.sensitive) + len(evidence.columns)
    if rows != evidence.rows or len(sums) != wanted or [len(row) for row in products] != [wanted] * wanted:
        raise CertificateError("plan: needs the sums and the products of its columns, of as many rows as were planned for.")
    moments = [[Fraction(rows), *map(Fraction, sums)]]
    moments += [[Fraction(total), *map(Fraction, row)] for total, row in zip(sums, products, strict=True)]
    target = [Fraction(1), *_in_steps(evidence)]
    found = calibrated(moments, target, p + 1, Fraction(evidence.bound), rows - p - 1)
    if found is None:
        return None
    return {
        one.column: add_gaussian(Fraction(one.centre) + Fraction(one.step) * value, mask)
        for one, value, mask in zip(evidence.columns, found, evidence.masks, strict=True)
    }


def _in_steps(evidence: WeightsEvidence) -> list[Fraction]:
    """The target, as whatever multiple of its column's steps it is."""
    pairs = zip(evidence.sensitive, evidence.target, strict=True)
    return [(Fraction(target) - Fraction(one.centre)) / Fraction(one.step) for one, target in pairs]


def calibrated(
    moments: Matrix, target: Sequence[Fraction], known: int, bound: Fraction, dimension: int
) -> list[Fraction] | None:
    """The answers from the Gram matrix of [A, Y], A its first `known` columns; None in the failure event."""
    reduced = _eliminated(moments, target, known)
    if reduced is None:
        return None
    q, plain, residual = reduced
    factor = _factor(residual)
    if q > bound or factor is None:
        return None
    z = direction(len(plain), dimension)
    reach = root(bound - q)
    return [base + reach * sum(x * y for x, y in zip(row, z, strict=False)) for base, row in zip(plain, factor, strict=True)]


def _eliminated(moments: Matrix, target: Sequence[Fraction], known: int) -> tuple[Fraction, list[Fraction], Matrix] | None:
    """q, a0'B and R: what Gaussian elimination of A'A leaves of [[A'A, a0, A'Y], [Y'A, -, Y'Y]]; None where A'A is singular."""
    rows = [[*row[:known], Fraction(x), *row[known:]] for row, x in zip(moments[:known], target, strict=True)]
    q = Fraction(0)
    plain = [Fraction(0)] * (len(moments) - known)
    left = [list(row[known:]) for row in moments[known:]]
    for k in range(known):
        pivot = rows[k][k]
        if not pivot > 0:
            return None
        a, y = rows[k][known], rows[k][known + 1 :]
        q += a * a / pivot
        plain = [base + a * x / pivot for base, x in zip(plain, y, strict=True)]
        left = [[r - x * other / pivot for r, other in zip(row, y, strict=True)] for row, x in zip(left, y, strict=True)]
        for below in rows[k + 1 :]:
            share = below[k] / pivot
            below[k:] = [x - share * top for x, top in zip(below[k:], rows[k][k:], strict=True)]
    return q, plain, left


def _factor(residual: Matrix) -> Matrix | None:
    """A lower triangular F with F F' = R, up to the rounding of its square roots; None where R is singular."""
    rest = [list(row) for row in residual]
    columns = []
    for k in range(len(rest)):
        pivot = rest[k][k]
        if not pivot > 0:
            return None
        share = [rest[i][k] / pivot for i in range(len(rest))]
        columns.append([Fraction(0)] * k + [root(pivot) * x for x in share[k:]])
        rest = [[x - share[i] * rest[k][j] for j, x in enumerate(row)] for i, row in enumerate(rest)]
    return [list(row) for row in zip(*columns, strict=True)]
