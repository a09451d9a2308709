"""The leakage map: its number is that of the best test, and it reads public rows alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.audit.leaks import leaks, right_guesses
from attrpriv.cli.app import app
from attrpriv.errors import DataError, UsageError
from attrpriv.pictures.marks import Cell
from attrpriv.pictures.svg import _layout, _wide
from tests.end_to_end.material import policy, write_policy


def records(rows: int = 3_000) -> pd.DataFrame:
    generator = np.random.default_rng(1)
    sex = np.where(generator.random(rows) < 0.4, "F", "M")
    height = np.where(sex == "F", 165.0, 178.0) + 7 * generator.normal(size=rows)
    level = generator.integers(1, 4, rows)
    return pd.DataFrame({"sex": sex, "height": height, "level": level, "school": np.array(["", "a", "b", "c"])[level]})


def test_the_number_is_that_of_the_best_test() -> None:
    """Simulated: averages given a mean, told apart at the midpoint. Within five standard errors: a false alarm below 1e-6."""
    rho, distance, n, tables = 0.3, 1_000 / 30_000, 10_000, 200_000
    generator = np.random.default_rng(2)
    means = np.repeat([0.0, distance], tables)
    seen = rho * means + np.sqrt((1 - rho**2) / n) * generator.normal(size=2 * tables)
    right = float(((seen > rho * distance / 2) == (means > 0)).mean())
    assert abs(right - right_guesses(rho, distance, n)) < 5 * 0.5 / np.sqrt(2 * tables)
    assert round(right_guesses(rho, distance, n), 3) == 0.7


def test_what_goes_along_is_found_and_what_does_not_is_not() -> None:
    found = leaks(records(), rows=2_000)
    assert found.of("avg(height)", "share(sex = 'M')").right > 0.95
    assert found.of("avg(height)", "mean(level)").right < 0.6
    assert found.of("avg(height)", "mean(height)").same
    assert found.largest[0].right == max(one.right for one in found.leaks if not one.same)
    more = leaks(records(), rows=200)
    assert more.of("avg(height)", "share(sex = 'M')").right < found.of("avg(height)", "share(sex = 'M')").right


def test_columns_that_are_functions_of_others_are_named() -> None:
    flags = leaks(records()).flags
    assert any("school is a function of level" in line for line in flags)
    assert not any("height" in line for line in flags)


def test_of_a_policy_the_stated_secret_at_its_stated_distance() -> None:
    """The students' average weight tells two incomes 1,000 apart in 70% of all guesses, with 10,000 rows."""
    stated = ap.Policy(**policy("data", rows=10_000))
    found = leaks(policy=stated)
    assert {one.property for one in found.leaks} == {"mean(income)"}
    one = found.of("avg(weight)", "mean(income)")
    assert one.apart == 1_000
    assert one.right == pytest.approx(stats.norm.cdf(0.3 / np.sqrt(1 - 0.09) / 30 * 100 / 2), abs=1e-12)


def test_what_is_given_is_checked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one of them is needed"):
        leaks()
    with pytest.raises(UsageError, match="distance: must be"):
        leaks(records(), distance=0)
    with pytest.raises(UsageError, match="columns: must be"):
        leaks(records(), columns=["weight"])
    records().to_parquet(tmp_path / "students.parquet")
    with pytest.raises(DataError, match="must be public"):
        leaks(tmp_path / "students.parquet", ap.Policy.load(write_policy(tmp_path)))


def test_words_numbers_and_pictures() -> None:
    found = leaks(records(), rows=1_000)
    assert "50% is a coin" in str(found)
    assert len(found.to_frame()) == len(found.leaks)
    assert "<style>" in found._repr_html_()  # a notebook has none of ours
    worst = found.largest[0]
    assert f"{worst.statistic} reveals {worst.property}: " in found.picture.description


def test_a_heat_map_of_many_columns_shows_the_largest_and_its_words_do_not_cover_each_other() -> None:
    """32 columns: each field would be as wide as a letter."""
    generator = np.random.default_rng(4)
    table = pd.DataFrame({f"column_{k}": generator.normal(size=500) for k in range(30)})
    table["seen"], table["hidden"] = table["column_7"] + table["column_9"] / 5, table["column_7"]
    found = leaks(table, rows=500)
    shown = found.picture
    fields = [mark for mark in shown.marks if isinstance(mark, Cell)]
    assert len(fields) == len(shown.x.names) * len(shown.y.names) < len(found.leaks) == 32 * 32
    assert {"avg(seen)", "avg(hidden)"} <= set(shown.x.names)
    assert {"mean(seen)", "mean(hidden)"} <= set(shown.y.names)
    assert f"({len(shown.x.names)} of 32)" in shown.x.label
    assert "to_frame() and --json have all" in shown.description
    _, frame = _layout(shown)
    room = (frame.right - frame.left) / len(shown.x.names)
    assert all(_wide(one.text) < room for one in fields)
    assert found.of("avg(seen)", "mean(hidden)").right < 1
    assert not any(one.text == "100%" for one in fields)  # nothing is rounded to certainty


def test_the_command(tmp_path: Path) -> None:
    records().to_parquet(tmp_path / "public.parquet")
    given = ["leaks", "--public", str(tmp_path / "public.parquet"), "--rows", "2000"]
    result = CliRunner().invoke(app, [*given, "--plot", str(tmp_path / "map.svg")])
    assert result.exit_code == 0, result.stderr
    assert "avg(height)" in result.stdout
    assert "school is a function of level" in result.stdout
    assert (tmp_path / "map.svg").read_text().endswith("</svg>\n")
    told = json.loads(CliRunner().invoke(app, [*given, "--json"]).stdout)
    assert told["rows"] == 2_000
    assert CliRunner().invoke(app, ["leaks"]).exit_code == 2
