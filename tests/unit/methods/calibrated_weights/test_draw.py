"""The draw of calibrated weights in exact fractions: lengths, least squares and what is left over, by inverting matrices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.errors import CertificateError
from attrpriv.methods.base.evidence import CHARGES
from attrpriv.methods.calibrated_weights import draw as module
from attrpriv.methods.calibrated_weights.draw import _eliminated, _factor, calibrated, weighted_averages
from attrpriv.methods.calibrated_weights.proof import WeightedColumn, WeightsCheck, WeightsEvidence

Matrix = list[list[Fraction]]
# Nine rows of two sensitive columns and two others.
X = ([3, -1, 4, 1, -5, 9, 2, -6, 5], [2, 7, 1, -8, 2, 8, 1, -8, 2])
Y = ([1, 6, 1, 8, 0, 3, 3, 9, 8], [5, -5, 0, 2, 7, -1, 8, 2, 8])


def gram(*columns: Sequence[int]) -> Matrix:
    """Of a column of ones and these."""
    whole = ([1] * len(columns[0]), *columns)
    return [[Fraction(sum(a * b for a, b in zip(x, y, strict=True))) for y in whole] for x in whole]


def determinant(m: Matrix) -> Fraction:
    """By permutations."""
    total = Fraction(0)
    for order in itertools.permutations(range(len(m))):
        odd = sum(a > b for a, b in itertools.combinations(order, 2)) % 2
        term = Fraction(-1 if odd else 1)
        for row, column in zip(m, order, strict=True):
            term *= row[column]
        total += term
    return total


def inverse(m: Matrix) -> Matrix:
    """By the adjugate."""
    whole, size = determinant(m), range(len(m))
    minor = [[[[x for c, x in enumerate(row) if c != j] for r, row in enumerate(m) if r != i] for j in size] for i in size]
    return [[determinant(minor[j][i]) * (-1) ** (i + j) / whole for j in size] for i in size]


def times(a: Matrix, b: Matrix) -> Matrix:
    return [
        [sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in zip(*b, strict=True)] for row in a
    ]


def turned(m: Matrix) -> Matrix:
    return [list(row) for row in zip(*m, strict=True)]


@pytest.mark.parametrize(("sensitive", "released"), [(X[:1], Y[:1]), (X, Y[:1]), (X[:1], Y), (X, Y)])
def test_elimination_is_least_squares(sensitive: Any, released: Any) -> None:
    moments, known = gram(*sensitive, *released), 1 + len(sensitive)
    target = [Fraction(1), Fraction(2, 3), Fraction(-5, 4)][:known]
    inner = inverse([row[:known] for row in moments[:known]])
    across = [row[known:] for row in moments[:known]]
    found = _eliminated(moments, target, known)
    assert found is not None
    assert [[found[0]]] == times(times([target], inner), turned([target]))
    assert [found[1]] == times(times([target], inner), across)
    explained = times(times(turned(across), inner), across)
    assert found[2] == [
        [y - e for y, e in zip(row, less, strict=True)]
        for row, less in zip([r[known:] for r in moments[known:]], explained, strict=True)
    ]


def test_little_variation_is_some() -> None:
    """One row of nine differs by one step: what is left of its square is 8/9."""
    found = _eliminated(gram([0] * 8 + [1], *Y), [Fraction(1), Fraction(1)], 2)
    assert found is not None
    assert found[0] == 1  # the weights are on that row alone
    assert _factor([[Fraction(1, 4)]]) == [[Fraction(1, 2)]]


def test_columns_that_determine_one_another_end_it() -> None:
    for sensitive in (([4] * 9,), (X[0], [2 * x + 1 for x in X[0]]), ([0] * 9,)):
        known = 1 + len(sensitive)
        assert _eliminated(gram(*sensitive, *Y), [Fraction(1)] * known, known) is None


SQUARE = [
    [Fraction(7), Fraction(-2), Fraction(1)],
    [Fraction(-2), Fraction(5), Fraction(3)],
    [Fraction(1), Fraction(3), Fraction(6)],
]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_factor_times_itself_is_the_matrix(size: int) -> None:
    residual = [row[:size] for row in SQUARE[:size]]
    factor = _factor(residual)
    assert factor is not None
    assert all(factor[i][j] == 0 for i in range(size) for j in range(i + 1, size))
    assert all(factor[i][i] > 0 for i in range(size))
    found = times(factor, turned(factor))
    assert all(abs(found[i][j] - residual[i][j]) < Fraction(1, 10**40) for i in range(size) for j in range(size))


def test_a_singular_matrix_has_no_factor() -> None:
    one = Fraction(1)
    for wrong in (
        [[Fraction(0)]],
        [[-one]],
        [[one, one], [one, one]],
        [[one, 2 * one], [2 * one, 4 * one]],
        [[Fraction(0), one], [one, one]],
    ):
        assert _factor(wrong) is None


TARGET = [Fraction(1), Fraction(2, 3), Fraction(-5, 4)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many coordinates of how many dimensions were drawn: always these."""
    calls: list[tuple[int, int]] = []

    def drawn(coordinates: int, dimension: int) -> tuple[Fraction, ...]:
        calls.append((coordinates, dimension))
        return (Fraction(3, 7), Fraction(-2, 5))[:coordinates]

    monkeypatch.setattr(module, "direction", drawn)
    return calls


def test_answers_are_least_squares_and_a_direction(asked: list[tuple[int, int]]) -> None:
    reduced = _eliminated(gram(*X, *Y), TARGET, 3)
    assert reduced is not None
    q, plain, residual = reduced
    factor, z = _factor(residual), (Fraction(3, 7), Fraction(-2, 5))
    assert factor is not None
    found = calibrated(gram(*X, *Y), TARGET, 3, q + Fraction(9, 4), 6)
    assert found is not None
    wanted = [
        base + Fraction(3, 2) * sum(f * one for f, one in zip(row, z, strict=True))
        for base, row in zip(plain, factor, strict=True)
    ]
    assert all(abs(a - b) < Fraction(1, 10**30) for a, b in zip(found, wanted, strict=True))
    assert asked == [(2, 6)]
    assert calibrated(gram(*X, *Y), TARGET, 3, q, 6) == plain
    assert calibrated(gram(*X, *Y), TARGET, 3, q - Fraction(1, 10**40), 6) is None
    assert calibrated(gram(*X, Y[0], Y[0]), TARGET, 3, q + 1, 6) is None
    assert calibrated(gram(X[0], X[0], *Y), TARGET, 3, q + 1, 6) is None
    assert len(asked) == 2, "where it fails nothing is drawn"


def column(name: str, **changes: Any) -> WeightedColumn:
    return WeightedColumn(**{"column": name, "centre": 0.0, "step": 1.0, **changes})


SENSITIVE = (column("g", centre=-2.0, step=0.5), column("h", centre=1.0, step=0.25))
RELEASED = (column("x", centre=10.0, step=0.125, fill=3.0), column("y", centre=-1.0, step=2.0))


def evidence(rows: int = 9, bound: float = 40.0) -> WeightsEvidence:
    check = WeightsCheck(
        secret="s", theta=0, forms=((1.0, 0.0),), ranges=((0.0, 1.0),), low=((1.0, 0.0), (0.0, 1.0)), reach=(0.0, 0.0)
    )
    return WeightsEvidence(
        **dict.fromkeys(CHARGES, 0.0), rows=rows, columns=RELEASED, sensitive=SENSITIVE, target=(0.5, 3.0), bound=bound,
        masks=(0.25, 0.75), checks=(check,),
    )  # fmt: skip


READ: list[tuple[str, float | None, object]] = [("x", 3.0, None), ("y", None, None)]
STEPS = (*X, *Y)


def totals() -> list[int]:
    return [sum(one) for one in STEPS]


def products() -> list[list[int]]:
    return [[sum(a * b for a, b in zip(x, y, strict=True)) for y in STEPS] for x in STEPS]


def test_answers_are_in_units_of_their_columns_and_masked(
    asked: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The targets are 5 steps of 0.5 above -2 and 8 steps of 0.25 above 1."""
    monkeypatch.setattr(module, "add_gaussian", lambda value, scale: value + 1000 * Fraction(scale))
    found = weighted_averages(evidence(), READ, 9, totals(), products())
    plain = calibrated(gram(*X, *Y), [Fraction(1), Fraction(5), Fraction(8)], 3, Fraction(40), 6)
    assert plain is not None
    assert found == {"x": 10 + plain[0] / 8 + 250, "y": -1 + 2 * plain[1] + 750}
    assert asked == [(2, 6), (2, 6)]
    assert weighted_averages(evidence(bound=0.125), READ, 9, totals(), products()) is None


def test_what_was_read_is_what_was_counted_on(asked: list[tuple[int, int]]) -> None:
    wrong: list[list[tuple[str, float | None, object]]] = [
        READ[:1], READ[::-1], [("x", 2.0, None), READ[1]], [("z", 3.0, None), READ[1]], [*READ, READ[1]],
        [READ[0], ("y", None, (0.0, 1.0))],
    ]  # fmt: skip
    for read in wrong:
        with pytest.raises(CertificateError, match="must weight"):
            weighted_averages(evidence(), read, 9, totals(), products())
    longer = [[*row, 0] for row in products()]
    for rows, sums, moments in (
        (8, totals(), products()),
        (10, totals(), products()),
        (9, totals()[:-1], products()),
        (9, [*totals(), 0], products()),
        (9, totals(), products()[:-1]),
        (9, totals(), longer),
        (9, totals(), [*products()[:-1], longer[-1]]),
    ):
        with pytest.raises(CertificateError, match="as many rows"):
            weighted_averages(evidence(), READ, rows, sums, moments)
    assert asked == []
