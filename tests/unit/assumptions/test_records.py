"""Public rows as an assumption: one order, the same resamples everywhere, and a digest that tells the private table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from attrpriv.assumptions.recorded_table import RecordedTable
from attrpriv.assumptions.records import Records, Resamples
from attrpriv.engines.public_counts import rows_digest
from attrpriv.engines.tables import open_table
from attrpriv.errors import PolicyError, QueryError
from attrpriv.policy import Policy
from attrpriv.queries.conditions import parse_condition

ROWS: dict[str, Any] = {
    "hours": [40, 38, 40, None, 45, 38],
    "pay": [1.5, 2.0, 1.5, 0.25, 2.0, 2.0],
    "sex": ["F", "M", "F", "M", None, "M"],
    "leads": [True, False, True, True, False, False],
}
FILES: dict[str, Any] = {"hours": [40, 38, 40, 41], "sex": ["F", "M", "F", "M"]}


def test_rows_stand_in_one_order() -> None:
    turned = {name: values[::-1] for name, values in ROWS.items()}
    assert RecordedTable.of(ROWS).rows == RecordedTable.of(turned).rows
    assert RecordedTable.of(ROWS).total == 6
    assert RecordedTable.from_json(RecordedTable.of(ROWS).to_json()) == RecordedTable.of(ROWS)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_holds_what_was_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"public.{suffix}"
    frame = pd.DataFrame(FILES)
    if suffix == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    assert RecordedTable.read(path, ["hours", "sex"]) == RecordedTable.of(FILES, name=path.name)


def test_the_digest_is_that_of_an_engine() -> None:
    """So that the private table is told from the public one, whatever its format and order."""
    frame = pd.DataFrame({"hours": [40.0, 38.0, None], "sex": ["F", None, "M"], "leads": [True, False, True]})
    table = RecordedTable.of({"hours": [40, 38, None], "sex": ["F", None, "M"], "leads": [True, False, True]})
    assert table.records().digest == rows_digest(open_table(frame), ["hours", "sex", "leads"])
    other = RecordedTable.of({"hours": [40, 38, None], "sex": ["F", None, "F"], "leads": [True, False, True]})
    assert other.records().digest != table.records().digest


def test_resamples_are_the_same_everywhere() -> None:
    """SHAKE-256 of the seed: these numbers must never change, or recorded releases could not be planned again."""
    table = RecordedTable.of({"x": list(range(5)), "y": [0] * 5})
    drawn = Resamples(number=2, size=8, seed=1).drawn(table)
    assert [one.tolist() for one in drawn] == [[0, 1, 3, 2, 2], [1, 4, 2, 1, 0]]
    assert [one.tolist() for one in Resamples(number=2, size=8, seed=2).drawn(table)] != [one.tolist() for one in drawn]


def test_a_resample_draws_every_row_alike() -> None:
    """Chi-square of 40,000 draws from 8 rows, 7 degrees: above 50 with a chance of 1e-8; a seed has no chance in it."""
    table = RecordedTable.of({"x": [0, 1, 1, 2, 3, 4, 5, 5], "y": [0] * 8})
    (drawn,) = Resamples(number=1, size=40_000, seed=3).drawn(table)
    expected = table.counts() * 5000
    assert float(((drawn - expected) ** 2 / expected).sum()) < 50


def test_the_default_is_twenty_of_a_quarter() -> None:
    theta = Records(file=RecordedTable.of({"x": list(range(40)), "y": [1] * 40}), columns=("x", "y"))
    assert [int(member.counts.sum()) for member in theta.members()] == [40, *[10] * 20]


def test_conditions_are_decided_as_sql_does() -> None:
    table = RecordedTable.of(ROWS)
    often = table.counts()

    def rows(condition: str, fill: dict[str, float] | None = None) -> int:
        parsed = parse_condition(condition)
        return int((table.holds(parsed, ["hours", "sex", "leads"], fill or {}) * often).sum())

    assert rows("hours >= 40") == 3
    assert rows("not hours >= 40") == 2  # a missing entry satisfies neither
    assert rows("hours >= 40", {"hours": 50.0}) == 4
    assert rows("sex = 'F' or leads = true") == 3
    assert rows("sex is null") == 1
    with pytest.raises(QueryError, match="must compare hours with a number"):
        rows("hours = 'a'")


def test_a_policy_keeps_the_rows_and_not_the_place(tmp_path: Path) -> None:
    pd.DataFrame(FILES).to_csv(tmp_path / "public.csv", index=False)
    pd.DataFrame(FILES).to_csv(tmp_path / "older.csv", index=False)
    text = "attrpriv: 1\nepsilon: 1\ndelta: 1e-6\nprotect:\n  - {secret: mean(hours), between: [38, 41]}\n"
    text += "assume: {kind: records, file: public.csv, further: [older.csv], columns: [hours, sex]}\n"
    (tmp_path / "policy.yaml").write_text(text)
    policy = Policy.load(tmp_path / "policy.yaml")
    assert str(tmp_path) not in str(policy.stated)
    assert Policy.from_json(policy.to_json()).digest == policy.digest
    (assumed,) = policy.assume
    assert len(assumed.public_tables()) == 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"file": "nowhere.csv"}, "must be a Parquet or CSV file of public rows"),
        ({"columns": ["hours", "hours"]}, "columns"),
        ({"columns": ["sex", "hours"]}, "file: must have the columns sex, hours"),
        ({"file": 3}, "must be the path of a Parquet or CSV file"),
        ({"resamples": {"size": 1}}, "size"),
        ({"resamples": {"size": 10**12}}, "size"),
        ({"resamples": {"number": -1}}, "number"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        Records(**{"file": RecordedTable.of(FILES), "columns": ["hours", "sex"], **changes})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rows": ((0, 1, 1), (0, 1, 2))}, "in order, each once"),
        ({"rows": ((0, 9, 1),)}, "places that exist"),
        ({"rows": ((0, 0, 0),)}, "counts of at least 1"),
        ({"rows": ((0, 0),)}, "a place for each column"),
        ({"values": {"hours": (40, 38, 41), "sex": ("F", "M")}}, "values: must stand in order"),
    ],
)
def test_a_table_that_is_none_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        RecordedTable.from_json({**RecordedTable.of(FILES).to_json(), **changes})


def test_a_file_without_the_column_names_those_it_has(tmp_path: Path) -> None:
    pd.DataFrame(FILES).to_csv(tmp_path / "public.csv", index=False)
    with pytest.raises(PolicyError, match=r"Got pay, which it has not. It has hours, sex"):
        RecordedTable.read(tmp_path / "public.csv", ["hours", "pay"])


def test_without_columns_that_alone_is_said(tmp_path: Path) -> None:
    """The file cannot be read without them; it used to be said that it is no path, and that one more thing is wrong."""
    pd.DataFrame(FILES).to_csv(tmp_path / "public.csv", index=False)
    given = {"file": str(tmp_path / "public.csv"), "further": [str(tmp_path / "public.csv")]}
    with pytest.raises(PolicyError) as refused:
        Records.checked(given)
    assert str(refused.value) == "columns: is required and has no default. Add it."
    with pytest.raises(PolicyError, match=r"^colums: unknown key\. Did you mean columns\?"):
        Records.checked({**given, "colums": ["hours", "sex"]})
    assert Records.checked({**given, "columns": ["hours", "sex"]}).columns == ("hours", "sex")
