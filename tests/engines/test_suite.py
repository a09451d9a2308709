"""Every read on every engine: the same numbers, exactly, and the same failures."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.engines.gram import GramRead, gram
from attrpriv.engines.grid import Grid
from attrpriv.engines.moments import moments
from attrpriv.engines.scan import NOT_FINITE, ColumnRead, scan
from attrpriv.engines.tables import open_table
from attrpriv.engines.tally import UNKNOWN_CATEGORY, TallyRead
from attrpriv.errors import DataError
from attrpriv.queries.conditions import parse_condition
from tests.engines.backends import ENGINES, every_engine

NAN, INF = float("nan"), float("inf")
ROWS = 203


def table() -> Any:
    rng = random.Random(11)

    def some(make: Any, share: float = 0.1) -> list[Any]:
        return [None if rng.random() < share else make() for _ in range(ROWS)]

    return pa.table(
        {
            "whole": pa.array(some(lambda: rng.randint(-50, 50), 0.0), pa.int32()),
            "large": pa.array(some(lambda: rng.choice([2**62 + 1, -(2**61), 2**53 + 1]), 0.0), pa.int64()),
            "price": pa.array(some(lambda: Decimal(rng.randint(-9999, 99999)).scaleb(-2)), pa.decimal128(12, 2)),
            "income": pa.array(some(lambda: rng.gauss(60_000, 30_000), 0.0), pa.float64()),
            "height": pa.array(some(lambda: rng.choice([NAN, rng.gauss(170, 8)])), pa.float64(), from_pandas=False),
            "narrow": pa.array(some(lambda: rng.gauss(0, 1), 0.0), pa.float32()),
            "member": pa.array(some(lambda: rng.random() < 0.4), pa.bool_()),
            "city": pa.array(some(lambda: rng.choice(["Rome", "Oslo"]), 0.0)).dictionary_encode(),
            "born": pa.array([date(1990, 1, 1) + timedelta(days=k) for k in range(ROWS)]),
        }
    )


TABLE = table()
INCOME = Grid.around(60_000.0, 30_000.0)
EXACT_READS = (
    ColumnRead("whole"),
    ColumnRead("whole", clip=(-10.5, 20.0)),
    ColumnRead("large"),
    ColumnRead("large", clip=(-1e30, 2.0**60)),
)
MISSING_READS = (ColumnRead("member", fill=0.5), ColumnRead("member", fill=1.0, clip=(0.25, 0.75)))
DECIMAL_READS = (ColumnRead("price", fill=0.5), ColumnRead("price", fill=0.5, clip=(0.1, 500.25)))
FLOAT_READS = (
    ColumnRead("income", grid=INCOME),
    ColumnRead("income", clip=(20_000.0, 90_000.0)),
    ColumnRead("height", fill=170.0, clip=(150.0, 180.0)),
    ColumnRead("height", fill=170.0, grid=Grid.around(170.0, 8.0)),
    ColumnRead("height", fill=-1.0, grid=Grid(2.0**-30, 170.0)),
    ColumnRead("narrow", clip=(-0.5, 2.5)),
)


def twin(read: ColumnRead, data: Any = TABLE) -> Fraction:
    """The slow and obvious one: each value as a fraction, on the grid where there is one."""
    total = Fraction(0)
    for value in data[read.column].to_pylist():
        if value is None or value != value:
            assert read.fill is not None
            given = Fraction(read.fill)
        elif read.grid is not None:
            steps = round((value - read.grid.centre) / read.grid.step)
            given = Fraction(read.grid.centre) + steps * Fraction(read.grid.step)
        else:
            given = Fraction(value if read.clip is None else min(max(value, read.clip[0]), read.clip[1]))
        total += given if read.clip is None else min(max(given, Fraction(read.clip[0])), Fraction(read.clip[1]))
    return total


def sums(engine: str, columns: Sequence[str], reads: Sequence[ColumnRead], folder: Path) -> tuple[Fraction, ...]:
    found = scan(open_table(ENGINES[engine](TABLE.select(columns), folder)), reads)
    assert found.rows == ROWS
    return found.sums


@every_engine()
def test_whole_numbers_beyond_2_to_53_are_added_exactly(engine: str, tmp_path: Path) -> None:
    assert sums(engine, ["whole", "large"], EXACT_READS, tmp_path) == tuple(map(twin, EXACT_READS))


@every_engine()
def test_booleans_with_missing_entries(engine: str, tmp_path: Path) -> None:
    assert sums(engine, ["member", "whole"], MISSING_READS, tmp_path) == tuple(map(twin, MISSING_READS))


@every_engine(without="decimal")
def test_decimals_are_not_made_floats(engine: str, tmp_path: Path) -> None:
    assert sums(engine, ["price"], DECIMAL_READS, tmp_path) == tuple(map(twin, DECIMAL_READS))


@every_engine()
def test_floats_are_the_same_to_the_last_digit_on_every_engine(engine: str, tmp_path: Path) -> None:
    """The twin adds fractions; the grid leaves at most half a step of each value."""
    reads = FLOAT_READS if engine != "csv" else FLOAT_READS[:-1]  # a float of 32 bits is written with fewer digits
    found = sums(engine, ["income", "height", "narrow"], reads, tmp_path)
    for read, total in zip(reads, found, strict=True):
        absolute = sum(abs(x) for x in TABLE[read.column].to_pylist() if x is not None and x == x)
        if read.clip is None:
            assert total == twin(read)
        assert abs(float(total - twin(read))) <= 1e-12 * absolute


@every_engine()
def test_a_half_of_a_step_goes_to_the_even_number_everywhere(engine: str, tmp_path: Path) -> None:
    """One float in some thousands is half a step; away from zero, as some engines round, the sums would be 15 and 99."""
    data = pa.table({"x": [0.5, 1.5, 2.5, -0.5, -1.5, 3.5, 7.5]})
    source = open_table(ENGINES[engine](data, tmp_path))
    assert scan(source, [ColumnRead("x", grid=Grid(1.0))]).sums == (Fraction(14),)
    assert gram(source, [GramRead("x", 0.0, 1.0)]).products == ((92,),)


@every_engine(without="decimal")
def test_columns_that_are_dictionaries_of_numbers(engine: str, tmp_path: Path) -> None:
    """As Parquet files and categoricals of pandas hold them, with missing entries."""
    names = ("large", "price", "height")
    plain = TABLE.select(names)
    data = pa.table({name: plain[name].combine_chunks().dictionary_encode() for name in names})
    grid = Grid.around(170.0, 8.0)
    reads = [ColumnRead("large"), ColumnRead("price", fill=0.5), ColumnRead("height", fill=170.0, grid=grid)]
    found = scan(open_table(ENGINES[engine](data, tmp_path)), reads)
    assert found.sums == tuple(map(twin, reads))


SIZES: dict[str, list[float]] = {
    "alike": [random.Random(5).gauss(60_000, 30_000) for _ in range(3_000)],
    "that cancel out": [sign * 10.0 ** (k % 17) + k / 7 for k in range(1_500) for sign in (1, -1)],
    "of every size": [random.Random(k).uniform(-1, 1) * 2.0 ** (k % 120 - 60) for k in range(3_000)],
}


@every_engine()
@pytest.mark.parametrize("label", SIZES)
def test_an_engine_that_adds_floats_itself(engine: str, label: str, tmp_path: Path) -> None:
    """Where a policy says nothing of a column's size: to 1e-12 of the sum of absolute values."""
    values = SIZES[label]
    (found,) = scan(open_table(ENGINES[engine](pa.table({"x": values}), tmp_path)), [ColumnRead("x")]).sums
    exact = sum(map(Fraction, values), Fraction(0))
    absolute = sum((abs(Fraction(value)) for value in values), Fraction(0))
    assert abs(found - exact) <= Fraction(1, 10**12) * absolute


@every_engine()
def test_rows_that_a_condition_keeps(engine: str, tmp_path: Path) -> None:
    where = parse_condition("city = 'Rome' and whole > 3")
    reads = [ColumnRead("income", grid=INCOME, where=where), ColumnRead("whole", where=where), ColumnRead("whole")]
    found = scan(open_table(ENGINES[engine](TABLE.select(["city", "whole", "income"]), tmp_path)), reads)
    kept = TABLE.filter(pa.compute.and_(pa.compute.equal(TABLE["city"], "Rome"), pa.compute.greater(TABLE["whole"], 3)))
    assert found.hits == (len(kept), len(kept), ROWS)
    assert found.sums == (twin(reads[0], kept), twin(reads[1], kept), twin(reads[2]))


@every_engine()
def test_counts(engine: str, tmp_path: Path) -> None:
    texts = ["whole > 3", "whole <= 3", "income >= 60000", "whole in (1, 2, 3) or city = 'Oslo'", "not (income < 0)"]
    categories = tuple(map(parse_condition, ("city is 'Rome'", "city is 'Oslo'")))
    read = TallyRead(tuple(map(parse_condition, texts)), False, categories)
    found = scan(open_table(ENGINES[engine](TABLE.select(["whole", "income", "city"]), tmp_path)), (), read).tally
    rows = TABLE.select(["whole", "income", "city"]).to_pylist()
    cells = (
        sum(r["whole"] > 3 for r in rows),
        sum(r["whole"] <= 3 for r in rows),
        sum(r["income"] >= 60000 for r in rows),
        sum(r["whole"] in (1, 2, 3) or r["city"] == "Oslo" for r in rows),
        sum(not r["income"] < 0 for r in rows),
    )
    assert found is not None
    assert found.cells == cells
    assert found.categories == tuple(sum(r["city"] == name for r in rows) for name in ("Rome", "Oslo"))


@every_engine()
def test_sums_of_products(engine: str, tmp_path: Path) -> None:
    reads = [
        GramRead("income", 60_000.0, 2.0**-16),
        GramRead("whole", 0.0, 2.0**-26),
        GramRead("member", 0.0, 2.0**-30, fill=0.5),
    ]
    found = gram(open_table(ENGINES[engine](TABLE.select(["income", "whole", "member"]), tmp_path)), reads)
    steps = []
    for read in reads:
        values = [read.fill if v is None else v for v in TABLE[read.column].to_pylist()]
        steps.append([round((float(v or 0) - read.centre) / read.step) for v in values])
    assert found.sums == tuple(map(sum, steps))
    assert found.products == tuple(tuple(sum(a * b for a, b in zip(x, y, strict=True)) for y in steps) for x in steps)


@every_engine()
def test_moments_of_public_records(engine: str, tmp_path: Path) -> None:
    found = moments(open_table(ENGINES[engine](TABLE.select(["income", "whole"]), tmp_path)), ["income", "whole"])
    values = [list(map(Fraction, TABLE[name].to_pylist())) for name in ("income", "whole")]
    means = [sum(column) / ROWS for column in values]
    assert found.rows == ROWS
    for i in (0, 1):
        assert found.means[i] == pytest.approx(float(means[i]), rel=1e-13)
        for j in (0, 1):
            products = ((a - means[i]) * (b - means[j]) for a, b in zip(values[i], values[j], strict=True))
            assert found.covariance[i][j] == pytest.approx(float(sum(products) / (ROWS - 1)), rel=1e-12)


# ------------------------------------------------------------------------------------------------------------- failures


BAD: dict[str, list[float | None]] = {
    "missing": [1.0, None, 2.0],
    "not a number": [1.0, NAN, 2.0],
    "infinite": [1.0, INF, 2.0],
    "minus infinite": [1.0, -INF, 2.0],
    "absurd": [1.0, 1e300, 2.0],
}


@every_engine()
def test_a_value_that_does_not_fit_the_grid_is_announced(engine: str, tmp_path: Path) -> None:
    for label, values in BAD.items():
        data = pa.table({"x": pa.array(values, pa.float64(), from_pandas=False), "y": [1, 2, 3]})
        source = open_table(ENGINES[engine](data, tmp_path))
        reads = [ColumnRead("y"), ColumnRead("x", grid=Grid.around(1.0, 1.0))]
        if label == "not a number" and engine == "csv":
            continue  # read as a text
        with pytest.raises(DataError) as caught:
            scan(source, reads)
        assert str(caught.value) == NOT_FINITE.format(columns="y, x")
        clipped = [ColumnRead("x", fill=1.5, clip=(0.5, 1.75))]
        assert scan(source, clipped).sums == (twin(clipped[0], data),)


@every_engine()
def test_a_row_without_a_category_is_announced(engine: str, tmp_path: Path) -> None:
    read = TallyRead((), False, (parse_condition("city is 'Rome'"),))
    with pytest.raises(DataError) as caught:
        scan(open_table(ENGINES[engine](TABLE.select(["city", "whole"]), tmp_path)), (), read)
    assert str(caught.value) == UNKNOWN_CATEGORY.format(columns="city")


@every_engine()
def test_dates_and_categories_cannot_be_summed(engine: str, tmp_path: Path) -> None:
    source = open_table(ENGINES[engine](TABLE.select(["born", "city"]), tmp_path))
    assert dict(source.columns) == {"born": "date", "city": "text"}
    for column in ("born", "city"):
        with pytest.raises(DataError, match="need a numeric column"):
            scan(source, [ColumnRead(column)])


# -------------------------------------------------------------------------------------------------------------- accuracy


def test_a_mean_far_from_zero_keeps_the_variance(tmp_path: Path) -> None:
    """The same at 10 million rows in bench/scale.py."""
    rng = random.Random(3)
    values = [rng.gauss(1e9, 1.0) for _ in range(20_000)]
    source = open_table(ENGINES["parquet"](pa.table({"x": values}), tmp_path))
    found = gram(source, [GramRead("x", 1e9, 2.0**-32)])
    n, mean = len(values), sum(map(Fraction, values)) / len(values)
    exact = Fraction(sum((Fraction(x) - mean) ** 2 for x in values)) / n
    centred = (found.products[0][0] - Fraction(found.sums[0] ** 2, n)) / n * Fraction(2) ** -64
    assert abs(centred / exact - 1) < 1e-6
    naive = math.fsum(x * x for x in values) / n - (math.fsum(values) / n) ** 2
    assert abs(naive / float(exact) - 1) > 1e-3  # without a centre, all digits are lost
