"""Hide the mean income of the population, publish the average weight: the hierarchy assumption as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attrpriv import Hierarchy, Parameter, Policy, Session
from tests.end_to_end.material import Said, contents, write_policy, write_table

ROWS = 800
POLICY: dict[str, Any] = {
    "attrpriv": 1,
    "data": "people.parquet",
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"parameter": "income", "between": [40_000, 80_000]}],
    "assume": {
        "kind": "hierarchy",
        "mean": {"weight": 150, "income": 60_000},
        "between_sd": {"weight": 5, "income": 8_000},
        "between_correlation": {"weight~income": 0.3},
        "within_sd": {"weight": 25, "income": 30_000},
        "tolerance": 0,
    },
    "resolution": {"weight": 1, "income": 1},
    "release": ["avg(weight)"],
}


def people(seed: int = 1, *, income: float = 61_000, weight: float = 150) -> pa.Table:
    generator = np.random.default_rng(seed)
    numbers = {"weight": generator.normal(weight, 25, ROWS), "income": generator.normal(income, 30_000, ROWS)}
    return pa.table({name: np.rint(values).astype(np.int64) for name, values in numbers.items()})


def district(folder: Path, table: pa.Table | None = None, **changes: Any) -> Path:
    write_table(folder, people() if table is None else table, "people.parquet")
    return write_policy(folder, POLICY | changes, "people.yaml")


def test_plan_release_and_a_second_release(tmp_path: Path) -> None:
    path = str(district(tmp_path))
    chosen = next(entry for entry in Said("plan", path, "--json").json if entry.get("chosen"))
    assert (chosen["mechanism"], chosen["guarantee"]["kind"]) == ("transport", "proved")
    assert (chosen["parameters"]["form"], chosen["parameters"]["reads"]) == ("clamped", "income")
    released = Said("release", path, "--json").json
    answer = released["answers"][0]
    assert answer["interval"]["low"] < answer["value"] < answer["interval"]["high"]
    assert abs(answer["value"] - 150) < 6
    assert Said("release", path, "--json").json["answers"] == [answer]  # told again, not drawn again


@pytest.mark.parametrize(("income", "beyond"), [(60_000, 0), (78_000, 1), (42_000, -1)])
def test_what_is_published_is_right_near_the_centre_and_clamped_far_from_it(tmp_path: Path, income: float, beyond: int) -> None:
    """Near the centre the answer is the table's own, but for its mask; far from it, short of it by what is taken back."""
    table = people(3, income=income)
    path = district(tmp_path, table)
    said = Said("release", str(path), "--json").json
    parameters = said["plan"][0]["parameters"]
    y = parameters["slope"] * (float(np.mean(table["income"])) - 60_000)
    taken = y - min(max(y, -parameters["reach"]), parameters["reach"])
    assert np.sign(taken) == beyond
    assert said["answers"][0]["value"] == pytest.approx(float(np.mean(table["weight"])) - taken, abs=0.02)


def test_nothing_but_the_value_depends_on_the_table(tmp_path: Path) -> None:
    plans, names = [], []
    for k, income in enumerate((41_000, 79_000)):
        folder = tmp_path / str(k)
        folder.mkdir()
        path = str(district(folder, people(k, income=income)))
        plans.append(Said("release", path, "--json").json["plan"])
        names.append(sorted(contents(folder)))
    assert plans[0] == plans[1]
    assert names[0] == names[1]


def test_additive_noise_does_not_read_the_sensitive_column(tmp_path: Path) -> None:
    """Missing incomes fail a transported release with a fixed text, and do not concern additive noise."""
    table = people()
    holes = pa.array([None, *table["income"].to_pylist()[1:]], pa.int64())
    path = district(tmp_path, table.set_column(1, "income", holes))
    before = contents(tmp_path)
    said = Said("release", str(path))
    assert said.code == 2
    assert "Columns read: weight, income" in said.complaint
    assert contents(tmp_path) == before
    assert Said("release", str(path), "--mechanism", "gaussian").code == 0


def test_a_public_value_for_missing_incomes(tmp_path: Path) -> None:
    table = people()
    holes = pa.array([None, *table["income"].to_pylist()[1:]], pa.int64())
    path = district(tmp_path, table.set_column(1, "income", holes), missing={"income": 60_000})
    assert Said("release", str(path)).code == 0


def test_explain_says_who_believes_what(tmp_path: Path) -> None:
    said = Said("explain", str(district(tmp_path))).out
    assert "the parameter of income in the population behind the table between 40,000 and 80,000" in said
    assert "populations differ in their means of weight, income" in said


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"protect": [{"parameter": "income"}]}, "needs between"),
        ({"protect": [{"parameter": "mean(income)", "within": 1}]}, "or a column alone"),
        ({"assume": POLICY["assume"] | {"tolerance": 0.1}}, "tolerance: must be 0 in this version"),
        ({"known_rows": 0.1}, "known_rows: must be 0"),
    ],
)
def test_bad_policies_are_refused_before_a_row_is_read(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = district(tmp_path, **changes)
    before = contents(tmp_path)
    said = Said("release", str(path))
    assert said.code in (2, 3)
    assert says in said.complaint
    assert contents(tmp_path) == before


def test_text_where_a_mean_is_hidden_is_refused(tmp_path: Path) -> None:
    table = people().append_column("name", pa.array(["x"] * ROWS))
    assume = POLICY["assume"] | {"between_sd": {"weight": 5, "name": 1}, "within_sd": {"weight": 25, "name": 1}, "mean": {}}
    assume |= {"between_correlation": {"weight~name": 0.3}}
    path = district(tmp_path, table, protect=[{"parameter": "name", "within": 1}], assume=assume, resolution={"weight": 1})
    said = Said("plan", str(path))
    assert (said.code, "which is text" in said.complaint) == (2, True)


def test_python_spells_the_same(tmp_path: Path) -> None:
    path = district(tmp_path)
    policy = Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[Parameter("income", between=(40_000, 80_000))],
        assume=Hierarchy(**{key: value for key, value in POLICY["assume"].items() if key != "kind"}),
        resolution={"weight": 1, "income": 1},
    )
    assert policy.digest == Policy.load(path).digest
    with Session(people(), policy, ledger=tmp_path / "x.ledger") as session:
        released = session.release("avg(weight)")
    low, high = released.interval(0.95)
    assert low < released.value < high


def test_fit_says_that_one_table_is_one_population(tmp_path: Path) -> None:
    path = district(tmp_path)
    write_table(tmp_path, people(2), "public.parquet")
    said = Said("fit", str(path), "--public", str(tmp_path / "public.parquet"), "--out", str(tmp_path / "fitted.yaml"))
    assert (said.code, "one population" in said.complaint) == (2, True)
    assert not (tmp_path / "fitted.yaml").exists()
