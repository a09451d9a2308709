"""A policy without a delta, exactly known moments: the quantile clip as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.end_to_end.material import Said, write_policy, write_table

ROWS = 2_000
POLICY: dict[str, Any] = {
    "attrpriv": 1,
    "data": "people.parquet",
    "epsilon": 1.0,
    "protect": [{"secret": "mean(income)", "between": [20_000, 200_000]}, {"secret": "mean(sat)", "within": 50}],
    "assume": {
        "kind": "gaussian",
        "mean": {"weight": 150, "income": 60_000, "sat": 1_050},
        "sd": {"weight": 25, "income": 30_000, "sat": 200},
        "correlation": {"weight~income": 0.3, "weight~sat": 0.1, "income~sat": 0.4},
        "tolerance": 0,
    },
    "resolution": {"weight": 1, "income": 1, "sat": 10},
    "missing": {"income": 60_000},
    "release": ["avg(weight)", "sum(weight)"],
}


def people(income: float = 60_000.0) -> pa.Table:
    generator = np.random.default_rng(5)
    z = generator.multivariate_normal([0, 0, 0], [[1, 0.3, 0.1], [0.3, 1, 0.4], [0.1, 0.4, 1]], ROWS)
    incomes = np.rint(income + 30_000 * z[:, 1]).tolist()
    incomes[7] = None
    return pa.table(
        {
            "weight": np.rint(150 + 25 * z[:, 0]).astype(np.int64),
            "income": pa.array(incomes, pa.float64()),
            "sat": 10 * np.rint(105 + 20 * z[:, 2]).astype(np.int64),
        }
    )


def written(folder: Path, table: pa.Table, **changes: Any) -> str:
    write_table(folder, table, "people.parquet")
    return str(write_policy(folder, POLICY | changes, "people.yaml"))


def test_plan_release_and_a_second_release(tmp_path: Path) -> None:
    path = written(tmp_path, people())
    chosen = [entry for entry in Said("plan", path, "--json").json if entry.get("chosen")]
    assert [(entry["mechanism"], entry["delta"], entry["guarantee"]["kind"]) for entry in chosen] == [
        ("transport", 0.0, "proved")
    ] * 2
    assert chosen[0]["parameters"]["form"] == "quantile clip"
    assert chosen[0]["parameters"]["reads"] == ["income", "sat"]
    released = Said("release", path, "--json").json
    average, total = (answer["value"] for answer in released["answers"])
    own = float(np.mean(people()["weight"]))
    assert abs(average - own) < 5 * chosen[0]["error"]["rmse"] + 5 / ROWS
    assert total == pytest.approx(ROWS * average, rel=1e-12)
    assert Said("release", path, "--json").json["answers"] == released["answers"]  # told again, not drawn again


def test_far_from_the_stated_mean_the_answer_stays_where_it_may(tmp_path: Path) -> None:
    """With incomes 60,000 above the stated mean the answer tells no more than a public law allows: it stays in reach."""
    path = written(tmp_path, people(120_000.0))
    released = Said("release", path, "--json").json
    answer, parameters = released["answers"][0]["value"], released["plan"][0]["parameters"]
    assert abs(answer - 150) <= parameters["reach"]


def test_a_tolerance_needs_a_delta(tmp_path: Path) -> None:
    said = Said("plan", written(tmp_path, people(), assume=POLICY["assume"] | {"tolerance": {"slope": 0.01}}))
    assert said.code == 2
    assert "delta" in said.err
