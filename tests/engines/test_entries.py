"""Conditions on columns with public values for missing entries and bounds: the same on every engine, against fractions."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.engines import conditions as conditions_module
from attrpriv.engines.scan import scan
from attrpriv.engines.tables import open_table
from attrpriv.engines.tally import TallyRead
from attrpriv.queries.conditions import Compare, Condition, In, IsNull, Not, Operator, Written
from tests.engines.backends import ENGINES, every_engine

OPERATORS: dict[Operator, Callable[[Fraction, Fraction], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
COLUMNS = {
    "small": pa.array([-128, 0, 1, 2, 3, 127, None], pa.int8()),
    "price": pa.array([*map(Decimal, ("0.10", "0.50", "1.00", "2.50", "-3.00", "9.99")), None], pa.decimal128(4, 2)),
    "length": pa.array([0.1, 0.5, 1.0, 2.5, -3.0, float("nan"), None], pa.float64(), from_pandas=False),
}
CONSTANTS: tuple[float, ...] = (0, 0.1, 0.5, 1, 2, 2.5, 3, -200, 1000)
CLIPS = (None, (0.5, 2.5), (1.0, 2.0), (-1000.0, 1000.0), (0.1, 1e30), (2.0, 2.0))
FILLS = (None, 0.5, 1.0, 300.0, 1e30)


def twin(name: str, condition: tuple[str, float], fill: float | None, clip: tuple[float, float] | None) -> int:
    """Each entry as it is after filling and clipping; numbers as they are written, and as doubles among floats."""

    def read(number: Any) -> Fraction:
        return Fraction(float(number)) if name == "length" else Fraction(str(number))

    given = [fill if value is None or value != value else value for value in COLUMNS[name].to_pylist()]
    entries = [read(value) for value in given if value is not None]
    if clip is not None:
        entries = [min(max(entry, read(clip[0])), read(clip[1])) for entry in entries]
    sign, constant = condition
    if sign == "null":
        return len(given) - len(entries)
    if sign == "not in":
        return sum(entry not in (read(constant), 1) for entry in entries)
    return sum(OPERATORS[sign](entry, read(constant)) for entry in entries)  # type: ignore[index]


def tree(name: str, sign: Any, constant: float) -> Condition:
    if sign == "null":
        return IsNull(name)
    return Not(In(name, (constant, 1))) if sign == "not in" else Compare(name, sign, constant)


ASKED = [*itertools.product(OPERATORS, CONSTANTS), *(("not in", constant) for constant in CONSTANTS), ("null", 0)]


def counts(data: object, cells: list[Condition], name: str, fill: Any, clip: Any) -> list[int]:
    read = TallyRead(tuple(cells), False, (), {} if fill is None else {name: fill}, {} if clip is None else {name: clip})
    found = scan(open_table(data), (), read).tally
    assert found is not None
    return list(found.cells)


@every_engine(without="decimal")
def test_entries_are_filled_and_clipped_and_keep_their_type(engine: str, tmp_path: Path) -> None:
    data = ENGINES[engine](pa.table(dict(COLUMNS)), tmp_path)
    for k, (name, fill, clip) in enumerate(list(itertools.product(COLUMNS, FILLS, CLIPS))[::7]):
        asked = ASKED[k % 3 :: 3]
        found = counts(data, [tree(name, *one) for one in asked], name, fill, clip)
        assert dict(zip(asked, found, strict=True)) == {one: twin(name, one, fill, clip) for one in asked}, (name, fill, clip)


def test_a_clip_that_forgets_its_ends_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = conditions_module._compared
    monkeypatch.setattr(conditions_module, "_clipped", lambda column, condition, constant, ends: plain(column, condition))
    found = counts(pa.table(dict(COLUMNS)), [tree("small", *one) for one in ASKED], "small", None, (0.5, 2.5))
    assert found != [twin("small", one, None, (0.5, 2.5)) for one in ASKED]


def test_whole_numbers_by_name_keep_their_names() -> None:
    cells: list[Condition] = [Written("small", text) for text in ("1", "1.0", "01", "127", "0.5", "300", "")]
    data = pa.table(dict(COLUMNS))
    assert counts(data, cells, "small", 0.5, None) == [1, 0, 0, 1, 0, 0, 0]
    assert counts(data, cells, "small", 300.0, None) == [1, 0, 0, 1, 0, 1, 0]
    assert counts(data, cells, "small", 1.0, (1.0, 3.0)) == [4, 0, 0, 0, 0, 0, 0]
