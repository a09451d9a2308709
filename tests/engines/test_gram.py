"""One pass for a Gram matrix: exact on every engine, against plain Python; and that nothing else gets out."""

from __future__ import annotations

import contextlib
import math
import random
import traceback
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

from attrpriv.engines import gram as gram_batches
from attrpriv.engines.gram import TOO_FAR, TOO_WIDE, Gram, GramRead, gram
from attrpriv.engines.grid import whole
from attrpriv.engines.scan import ENGINE_FAILED
from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import DataError
from tests.engines.test_scan import ENGINES, EXACT

NAN, INF = float("nan"), float("inf")
ROWS = 300


def table() -> Any:
    rng = random.Random(5)
    return pa.table(
        {
            "income": pa.array([rng.gauss(60_000, 30_000) for _ in range(ROWS)]),
            "weight": pa.array([round(rng.gauss(150, 25)) for _ in range(ROWS)]),
            "member": pa.array([rng.random() < 0.3 for _ in range(ROWS)]),
            "price": pa.array([Decimal(f"{rng.gauss(20, 5):.2f}") for _ in range(ROWS)]),
        }
    )


READS = (
    GramRead("income", 60_000.0, 2.0**-16),
    GramRead("weight", 150.0, 2.0**-26),
    GramRead("member", 0.0, 2.0**-32),
    GramRead("price", 20.0, 2.0**-28),
)


def plain(data: Any, reads: Sequence[GramRead]) -> Gram:
    """The slow and obvious twin."""
    steps = []
    for read in reads:
        values = [
            read.fill if v is None or (isinstance(v, float) and math.isnan(v)) else v for v in data[read.column].to_pylist()
        ]
        steps.append([round((float(v or 0) - read.centre) / read.step) for v in values])
    products = tuple(tuple(sum(a * b for a, b in zip(one, other, strict=True)) for other in steps) for one in steps)
    return Gram(len(data), tuple(map(sum, steps)), products)


@pytest.mark.parametrize("engine", EXACT)
def test_every_engine_adds_exactly(engine: str, tmp_path: Path) -> None:
    data = table()
    assert gram(open_table(ENGINES[engine](data, tmp_path)), READS) == plain(data, READS)


@pytest.mark.parametrize("engine", ["csv", "csv.gz"])
def test_a_csv_file_too(engine: str, tmp_path: Path) -> None:
    data = table().select(["income", "weight"])
    assert gram(open_table(ENGINES[engine](data, tmp_path)), READS[:2]) == plain(data, READS[:2])


def test_whole_numbers_are_read_as_they_are() -> None:
    data = table()
    found = gram(open_table(data), [READS[1]])
    weights = data["weight"].to_pylist()
    assert found.sums[0] * 2.0**-26 + 150 * ROWS == sum(weights)
    assert found.products[0][0] * 2.0**-52 == sum((w - 150) ** 2 for w in weights)


def test_a_centre_far_off_loses_nothing() -> None:
    """Floats would lose nine digits here: the mean is a million standard deviations from the centre."""
    values = [1e6 + k / 1024 for k in range(-150, 150)]
    reads = [GramRead("x", 0.0, 2.0**-20)]
    found = gram(open_table(pa.table({"x": values})), reads)
    around = found.products[0][0] * len(values) - found.sums[0] ** 2
    assert around == sum((2 * k + 1) ** 2 for k in range(-150, 150)) * 2**18 * len(values) // 1


@pytest.mark.parametrize("engine", ["arrow", "parquet", "pandas", "polars, lazy"])
def test_missing_entries_take_the_public_value(engine: str, tmp_path: Path) -> None:
    data = pa.table({"x": [1.0, None, NAN, 2.0] * 25})
    reads = [GramRead("x", 0.0, 2.0**-10, fill=5.0)]
    assert gram(open_table(ENGINES[engine](data, tmp_path)), reads) == plain(data, reads)


BAD = {
    "missing": [1.0, None, 2.0],
    "not a number": [1.0, NAN, 2.0],
    "infinite": [1.0, INF, 2.0],
    "minus infinite": [1.0, -INF, 2.0],
    "absurd": [1.0, 1e300, 2.0],
    "just too far": [1.0, float(2**44), 2.0],
}


@pytest.mark.parametrize("label", BAD)
def test_a_value_that_cannot_be_used_is_announced_with_a_fixed_text(label: str) -> None:
    data = pa.table({"x": BAD[label], "y": [4711.25, 4712.25, 4713.25]})
    with pytest.raises(DataError) as caught:
        gram(open_table(data), [GramRead("y", 0.0, 1.0), GramRead("x", 0.0, 1.0)])
    assert str(caught.value) == TOO_FAR.format(columns="y, x")
    told = "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not any(planted in told for planted in ("4711.25", "4712.25", "e+300"))


@pytest.mark.parametrize("engine", ["arrow", "polars, lazy"])
def test_an_engine_that_fails_says_nothing(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> Any:
        raise RuntimeError("cell 4711.25")

    monkeypatch.setattr(Source, "run", failing)
    monkeypatch.setattr(gram_batches, "_batches", failing)
    with pytest.raises(DataError) as caught:
        gram(open_table(ENGINES[engine](table(), tmp_path)), READS[:1])
    assert str(caught.value) == ENGINE_FAILED.format(columns="income")
    assert caught.value.__context__ is None


@pytest.mark.parametrize("answer", ["1.5", "1e+20", "1.0e+20", "None", "nan"])
def test_an_engine_that_rounds_is_not_believed(answer: str) -> None:
    with pytest.raises(ValueError, match=r"whole|invalid"):
        whole(answer)
    assert whole("-12.000") == -12


def test_one_query_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On DuckDB whole releases are counted, by DuckDB itself (test_releases)."""
    runs: list[object] = []
    run = Source.run

    def counted(self: Source, aggregate: object) -> dict[str, Any]:
        runs.append(aggregate)
        return run(self, aggregate)

    monkeypatch.setattr(Source, "run", counted)
    gram(open_table(ENGINES["polars, lazy"](table(), tmp_path)), READS)
    assert len(runs) == 1


@pytest.mark.parametrize("value", [1.0, None, INF])
def test_a_connection_of_the_callers_is_left_as_it_was(value: float | None) -> None:
    """Also where the pass ends at its first batch, with more to come."""
    connection = ibis.duckdb.connect()
    connection.con.register("given", pa.table({"x": [value] + [1.0] * 300_000}))
    connection.raw_sql("CREATE TABLE people AS FROM given")
    before = connection.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall()
    reads = [GramRead("x", 0.0, 2.0**-10)]
    with contextlib.nullcontext() if value == 1 else pytest.raises(DataError):
        assert gram(open_table(connection.table("people")), reads).sums == (300_001 * 2**10,)
    assert connection.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall() == before
    assert connection.raw_sql("SELECT count(*) FROM people").fetchall() == [(300_001,)]


def test_the_numbers_stay_out_of_the_repr() -> None:
    assert repr(gram(open_table(table()), READS)) == f"Gram(rows={ROWS})"


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": 0.3},
        {"step": 0.0},
        {"step": INF},
        {"centre": NAN},
        {"fill": 1e300},
        {"fill": NAN},
    ],
)
def test_a_grid_must_be_public_powers_of_two(wrong: dict[str, float]) -> None:
    with pytest.raises(DataError):
        GramRead(**({"column": "x", "centre": 0.0, "step": 1.0} | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize(("column", "says"), [("incme", "must be one of the table's"), ("name", "need a numeric column")])
def test_a_column_that_cannot_be_summed_is_refused(column: str, says: str) -> None:
    data = pa.table({"income": [1.0, 2.0], "name": ["a", "b"]})
    with pytest.raises(DataError, match=says):
        gram(open_table(data), [GramRead(column, 0.0, 1.0)])


# ---------------------------------------------------------------------------------------------------------- many columns


WIDE = 42
LARGEST = 2**44 - 1


def wide(rows: int, extreme: int = LARGEST) -> Any:
    """Whole numbers up to the largest that fit, most of them at the ends, where sums of products are largest."""
    rng = random.Random(7)
    ends = (-extreme, extreme, extreme - 1, 0, 1)
    return pa.table({f"c{k}": pa.array([float(rng.choice(ends)) for _ in range(rows)]) for k in range(WIDE)})


WIDE_READS = [GramRead(f"c{k}", 0.0, 1.0) for k in range(WIDE)]
TWO = [GramRead("a", 0.0, 1.0), GramRead("b", 0.0, 1.0)]


def test_many_columns_are_multiplied_in_batches_exactly(tmp_path: Path) -> None:
    data = wide(gram_batches.SURE * 4 + 77)
    assert gram(open_table(ENGINES["parquet"](data, tmp_path)), WIDE_READS) == plain(data, WIDE_READS)


@pytest.mark.parametrize("width", [1, 2, 3, WIDE])
@pytest.mark.parametrize("rows", [1, 16, 90])
def test_many_batches_and_blocks_are_put_together(width: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 16 rows, two or three of them a batch, and their products one after the other or at once."""
    monkeypatch.setattr(gram_batches, "BLOCK", 16)
    monkeypatch.setattr(gram_batches, "SURE", 8)
    monkeypatch.setattr(gram_batches, "_LEAST_BLOCKS", 2)
    monkeypatch.setattr(gram_batches, "_MOST_BLOCKS", 3)
    monkeypatch.setattr(gram_batches, "_ENTRIES", 200)
    data = wide(rows)
    assert gram(open_table(data), WIDE_READS[:width]) == plain(data, WIDE_READS[:width])


# All parts at their largest: h = 2^22 - 1, l = 2^21 - 1.
FULL = (2**22 - 1) * 2**22 + 2**21 - 1


def test_blocks_of_full_size_at_the_ends_do_not_round() -> None:
    """In two columns and more rows than a batch holds: what is too large for a block is done again in smaller ones."""
    rows = 140_000
    found = gram(open_table(pa.table({"a": [float(FULL)] * rows, "b": [float(-FULL)] * rows})), TWO)
    most = rows * FULL**2
    assert found == Gram(rows, (rows * FULL, -rows * FULL), ((most, -most), (-most, most)))


def test_blocks_that_are_not_looked_at_would_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the test above can fail: 4096 rows of 2^44 and more are beyond 2^53."""
    monkeypatch.setattr(gram_batches, "_WHOLE", math.inf)
    rows = gram_batches.BLOCK - 1
    found = gram(open_table(pa.table({"a": [float(FULL - 1)] * rows, "b": [float(FULL)] * rows})), TWO)
    assert found.products[0][0] != rows * (FULL - 1) ** 2


def test_a_block_that_is_sure_is_below_what_floats_hold() -> None:
    """And twice as many rows might not be."""
    largest = 2**22 + 2**21  # h + l, where k is next to 2^44
    assert gram_batches.SURE * largest**2 < 2**53 < 2 * gram_batches.SURE * largest**2
    assert gram_batches._MOST_BLOCKS * gram_batches.BLOCK * largest**2 < 2**63
    assert gram_batches.BLOCK % gram_batches.SURE == 0


@pytest.mark.parametrize("size", [1, 2**20, 2**21, 2**31, 2**43, LARGEST])
def test_sizes_that_need_small_blocks_and_sizes_that_do_not(size: int) -> None:
    """Against sums of Python's whole numbers; of the sizes here some stay below 2^53 in a block and some do not."""
    rng = random.Random(size)
    data = pa.table({name: [float(rng.randint(-size, size)) for _ in range(5000)] for name in ("a", "b")})
    assert gram(open_table(data), TWO) == plain(data, TWO)


@pytest.mark.parametrize("bad", [None, NAN, INF, float(2**44)])
def test_a_value_that_cannot_be_used_among_many_columns(bad: float | None) -> None:
    data = wide(100).set_column(3, "c3", pa.array([1.0] * 99 + [bad], from_pandas=False))
    with pytest.raises(DataError) as caught:
        gram(open_table(data), WIDE_READS)
    assert str(caught.value) == TOO_FAR.format(columns=", ".join(read.column for read in WIDE_READS))
    filled = [GramRead("c3", 0.0, 1.0, fill=7.0) if read.column == "c3" else read for read in WIDE_READS]
    if bad is None or math.isnan(bad):
        assert gram(open_table(data), filled) == plain(data, filled)


def test_many_columns_elsewhere_are_refused() -> None:
    polars: Any = pytest.importorskip("polars")
    with pytest.raises(DataError) as caught:
        gram(open_table(polars.from_arrow(wide(5)).lazy()), WIDE_READS)
    assert str(caught.value) == TOO_WIDE.format(engine="polars", most=40, width=WIDE)
