"""One changed record replaces at most two rows of a view with exact cells: the factor two of training with privacy for persons.

By enumeration: every table of four rows over three values, every order of the ranks, every change of one record. Ranks belong
to positions, so the changed record keeps its rank. The same through the library, under one key. See
docs/guide/reference-view-training.md.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest

from attrpriv.engines.tables import open_table
from attrpriv.engines.view.draw import Cells, draw, view_table

Row = tuple[int, str]
VALUES = (0, 1, 2)
KEY = "0123456789abcdef" * 4


def view_of(table: Sequence[Row], keep: Sequence[int], rank: Sequence[int]) -> Counter[Row] | None:
    """The kept rows as a set in which a row may be several times; None where some value has too few."""
    found: Counter[Row] = Counter()
    for value in VALUES:
        rows = sorted((rank[j], row) for j, row in enumerate(table) if row[0] == value)
        if len(rows) < keep[value]:
            return None
        found.update(row for _, row in rows[: keep[value]])
    return found


def neighbours(keep: Sequence[int], n: int = 4) -> Iterator[tuple[Counter[Row], Counter[Row]]]:
    """The views of all pairs of tables that differ in one record and do not fail, under every order of the ranks."""
    for hidden in itertools.product(VALUES, repeat=n):
        table = [(value, f"row {j}") for j, value in enumerate(hidden)]
        for rank in itertools.permutations(range(n)):
            before = view_of(table, keep, rank)
            for j, value in itertools.product(range(n), VALUES):
                after = view_of([*table[:j], (value, "new"), *table[j + 1 :]], keep, rank)
                if before is not None and after is not None:
                    yield before, after


def replaced(before: Counter[Row], after: Counter[Row]) -> dict[int, int]:
    """Of each value, how many rows were replaced; both views have as many rows of each."""
    gone, come = before - after, after - before
    for value in VALUES:
        assert sum(k for row, k in gone.items() if row[0] == value) == sum(k for row, k in come.items() if row[0] == value)
    return dict(Counter(row[0] for row in gone.elements()))


@pytest.mark.parametrize("keep", [(1, 1, 0), (1, 0, 0), (2, 1, 0), (1, 1, 1)])
def test_one_changed_record_replaces_at_most_one_row_in_each_of_two_cells(keep: tuple[int, int, int]) -> None:
    most = 0
    for before, after in neighbours(keep):
        found = replaced(before, after)
        assert len(found) <= 2
        assert all(rows == 1 for rows in found.values())
        most = max(most, sum(found.values()))
    # Two, wherever two cells can both lose and gain a row: the factor is needed.
    assert most == min(2, sum(number > 0 for number in keep))


def test_a_sum_moves_by_two_ranges() -> None:
    """Entries between 0 and 1: noise for one row of the view would hide half of what a person can move."""
    entries = {f"row {j}": float(j % 2) for j in range(4)} | {"new": 1.0}

    def total(view: Counter[Row]) -> float:
        return sum(entries[row[1]] * times for row, times in view.items())

    moves = [abs(total(before) - total(after)) for before, after in neighbours((1, 1, 0))]
    assert max(moves) == 2


def test_a_group_of_two_pays_twice_with_laplace_noise() -> None:
    """Epsilon / 2 for each row of the view is epsilon for a person, and not less for the pair that moves by two."""
    epsilon, at = 1.0, np.linspace(-50, 50, 20_001)
    scale = 1 / (epsilon / 2)
    loss = np.abs(np.abs(at - 2) - np.abs(at)) / scale
    assert loss.max() == pytest.approx(epsilon)


def two_rows(epsilon: float, delta: float, rows: int = 2) -> tuple[float, float]:
    """The privacy of a group, as on the page."""
    return rows * epsilon, delta * math.expm1(rows * epsilon) / math.expm1(epsilon)


def test_the_gaussian_pays_less_than_the_group_bound() -> None:
    """The page's delta for two rows is an upper bound, by the example of Gaussian noise, whose law for a group is known."""
    from scipy.stats import norm

    def exact(mu: float, epsilon: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))

    for mu, epsilon in itertools.product((0.1, 0.3, 1.0), (0.2, 0.5, 1.0)):
        both, delta = two_rows(epsilon, exact(mu, epsilon))
        assert exact(2 * mu, both) <= delta


def library_view(hidden: Sequence[int], rest: Sequence[str], keep: Sequence[int]) -> Counter[Row]:
    n = len(hidden)
    source = open_table(pa.table({"age": list(hidden), "rest": list(rest)}))
    cells = Cells(
        conditions=(),
        keep=(*keep, 0),
        low=(*keep, 0),
        high=(n,) * (len(keep) + 1),
        columns=("age",),
        values=tuple((value,) for value in VALUES),
    )
    rows = source.engine.to_pyarrow(view_table(source, cells, draw(source, cells, n, None, KEY), None, ())).to_pylist()
    return Counter((row["age"], row["rest"]) for row in rows)


def test_the_same_by_the_library() -> None:
    """Thirty rows, one key: each of six changes, and some of them replace two rows."""
    hidden = np.repeat(VALUES, 10)
    rest = [f"row {j}" for j in range(30)]
    before = library_view(hidden.tolist(), rest, (5, 5, 5))
    kept = {row[1] for row in before}
    most = 0
    for j in (0, 3, 12, 17, 21, 29):
        changed, texts = hidden.copy(), list(rest)
        changed[j], texts[j] = (hidden[j] + 1) % 3, "new"
        found = replaced(before, library_view(changed.tolist(), texts, (5, 5, 5)))
        assert len(found) <= 2
        assert all(rows == 1 for rows in found.values())
        assert (hidden[j] in found) == (rest[j] in kept)
        most = max(most, sum(found.values()))
    assert most >= 1


def test_diffprivlib_trains_on_a_view_with_half_of_a_persons_epsilon() -> None:
    models = pytest.importorskip("diffprivlib.models", reason="diffprivlib is not installed")
    generator = np.random.default_rng(1)
    rows = generator.random((400, 3))
    label = (rows[:, 0] + 0.2 * generator.normal(size=400) > 0.5).astype(int)
    model = models.LogisticRegression(epsilon=4.0 / 2, data_norm=math.sqrt(3)).fit(rows, label)
    assert model.predict(rows).shape == (400,)
