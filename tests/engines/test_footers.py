"""What a Parquet file's footer says is what DuckDB reads; so a plan needs no engine, and a release needs no pandas."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.engines.files import _parquet_footer
from attrpriv.engines.tables import _column_type, open_table
from tests.end_to_end.material import environment, school

DAY = datetime.date(2024, 5, 6)
ARROW: dict[str, tuple[pa.Array, bool]] = {
    "bool": (pa.array([True]), True),
    **{name: (pa.array([1], getattr(pa, name)()), True) for name in ("int8", "int16", "int32", "int64")},
    **{name: (pa.array([1], getattr(pa, name)()), True) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: (pa.array([1.0], getattr(pa, name)()), True) for name in ("float32", "float64")},
    "float16": (pa.array(np.array([1.0], dtype=np.float16)), False),
    "string": (pa.array(["x"]), True),
    "large_string": (pa.array(["x"], pa.large_string()), True),
    "dictionary": (pa.array(["x"]).dictionary_encode(), False),
    "binary": (pa.array([b"x"]), False),
    "date32": (pa.array([DAY]), True),
    "timestamp": (pa.array([datetime.datetime(2024, 5, 6)]), False),
    "duration": (pa.array([1], pa.duration("us")), False),
    "time": (pa.array([datetime.time(1)]), False),
    "decimal": (pa.array([decimal.Decimal("1.20")]), True),
    "decimal of 38 digits": (pa.array([decimal.Decimal("9" * 38)]), True),
    "decimal of 76 digits": (pa.array([decimal.Decimal("9" * 76)], pa.decimal256(76)), False),
    "null": (pa.nulls(1), False),
    "list": (pa.array([[1]]), False),
    "struct of one": (pa.array([{"a": 1}]), False),
    "struct of two": (pa.array([{"a": 1, "b": 2}]), False),
}
DUCKDB = {
    **dict.fromkeys(("'1'::JSON", "uuid()", "'a'::BLOB", "INTERVAL 1 DAY", "TIME '01:00'", "now()", "[1]", "{'a': 1}"), False),
    **dict.fromkeys(("1::TINYINT", "1::UBIGINT", "1.5::FLOAT", "1.5::DOUBLE", "1.5::DECIMAL(4, 1)", "true", "'a'"), True),
    **dict.fromkeys(("1::HUGEINT", "'a'::ENUM ('a', 'b')", "'101'::BIT", "DATE '2024-05-06'"), True),  # some as another type
}


def agreed(path: Path, known: bool) -> None:
    """The footer's types are DuckDB's, and the engine is only asked where they are not beyond doubt."""
    source = open_table(path)
    assert "_connected" not in vars(source)
    read = {str(name): _column_type(kind) for name, kind in source.table.schema().items()}
    assert dict(source.columns) == read
    assert (_parquet_footer(path).columns is not None) == known


@pytest.mark.parametrize("name", ARROW)
def test_what_arrow_writes(name: str, tmp_path: Path) -> None:
    values, known = ARROW[name]
    pq.write_table(pa.table({"before": [1], "x": values, "after": ["a"]}), tmp_path / "x.parquet")
    agreed(tmp_path / "x.parquet", known)


@pytest.mark.parametrize("value", DUCKDB)
def test_what_duckdb_writes(value: str, tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT 1 AS before, {value} AS x, 'a' AS after) TO '{tmp_path}/x.parquet' (FORMAT parquet)")
    agreed(tmp_path / "x.parquet", DUCKDB[value])


def test_several_files_and_positions(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"x": [1, 2], "y": ["u", "v"]}), tmp_path / f"{name}.parquet")
    for pattern, rows in (("*.parquet", 4), ("a.parquet", 2)):
        source = open_table(str(tmp_path / pattern))
        assert (source.rows, dict(source.columns)) == (rows, {"x": "integer", "y": "text"})
        assert source.positioned is not None
        at = source.engine.to_pyarrow(source.positioned("at"))["at"].to_pylist()
        assert at == list(range(rows))


LOADED = """
import sys
sys.argv[0] = "attrpriv"
from attrpriv.cli import main
try:
    main()
finally:
    print(*sorted({"ibis", "duckdb", "pandas", "scipy"} & {*sys.modules}), file=sys.stderr)
"""


# Of a count, whose plan has the tails of binomial laws.
WARD = """attrpriv: 1
data: ward.parquet
rows: 1000
epsilon: 1.0
protect:
  - secret: count(smoker = 'yes')
    between: [250, 400]
assume:
  kind: counts
  sensitive: smoker
  given:
    weight > 150: {'yes': [0.48, 0.52], 'no': [0.48, 0.52]}
release: ["count(*) filter (where weight > 150)"]
"""


def ward(folder: Path) -> Path:
    rows = {"weight": [140, 160] * 500, "smoker": ["yes", "no", "no", "yes", "no"] * 200}
    pq.write_table(pa.table(rows), folder / "ward.parquet")
    (folder / "ward.yaml").write_text(WARD, encoding="utf-8")
    return folder / "ward.yaml"


@pytest.mark.parametrize(("arranged", "plan"), [(school, ["scipy"]), (ward, [])])
@pytest.mark.parametrize(("command", "engine"), [("check", []), ("plan", []), ("explain", []), ("release", ["duckdb", "ibis"])])
def test_what_a_command_does_not_need_is_not_loaded(
    command: str, engine: list[str], arranged: Callable[[Path], Path], plan: list[str], tmp_path: Path
) -> None:
    run = [sys.executable, "-c", LOADED, command, str(arranged(tmp_path))]
    found = subprocess.run(run, env=environment(), capture_output=True, text=True, timeout=120, check=True)
    assert found.stderr.split() == [*engine, *plan]


@pytest.mark.parametrize(("given", "kept"), [({}, "16"), ({"OPENBLAS_THREAD_TIMEOUT": "20"}, "20")])
def test_a_command_lets_idle_threads_sleep(given: dict[str, str], kept: str) -> None:
    """Said before NumPy is loaded, which then is too late, and only where nobody said something else."""
    code = """
import sys
from attrpriv.cli import main
assert "numpy" not in sys.modules
sys.argv[1:] = ["--version"]
try:
    main()
finally:
    import os
    print(os.environ["OPENBLAS_THREAD_TIMEOUT"], file=sys.stderr)
"""
    plain = {name: value for name, value in environment().items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=plain | given, capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stderr == kept + "\n"
