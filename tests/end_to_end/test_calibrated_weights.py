"""Hide the mean income of a table whatever the slopes are: `calibrated_weights` as a user meets it, and when it fails."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attrpriv import Policy, Session
from attrpriv.errors import RefusedError
from attrpriv.session.record import FAILED
from tests.end_to_end.material import Said, write_policy, write_table

ROWS = 900
POLICY: dict[str, Any] = {
    "attrpriv": 1,
    "data": "students.parquet",
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"secret": "mean(income)", "between": [80_000, 140_000]}],
    "assume": {
        "kind": "gaussian",
        "mean": {"income": 110_000},
        "sd": {"weight": 25, "height": 4, "income": 30_000},
        "correlation": {"weight~income": 0.3, "weight~height": 0.5, "height~income": 0.1},
        "tolerance": {"sd": 0.02, "slope": 0.5},
    },
    "resolution": {"weight": 1},
    "release": ["avg(weight)", "sum(height)"],
}
BY_WEIGHTS = ("--mechanism", "calibrated_weights")


def students(income: float = 110_000.0, seed: int = 1) -> pa.Table:
    """Slopes that nobody stated: a thousand more income, five pounds less weight."""
    rng = np.random.default_rng(seed)
    incomes = rng.normal(income, 30_000, ROWS)
    weight = np.rint(150 - 0.005 * (incomes - 110_000) + rng.normal(0, 20, ROWS)).astype(np.int64)
    return pa.table({"income": incomes, "weight": weight, "height": rng.normal(67, 4, ROWS)})


def school(folder: Path, table: pa.Table | None = None, **changes: Any) -> str:
    write_table(folder, students() if table is None else table, "students.parquet")
    return str(write_policy(folder, POLICY | changes, "students.yaml"))


def test_plan_release_and_a_second_release(tmp_path: Path) -> None:
    path = school(tmp_path)
    entries = {entry["mechanism"]: entry for entry in Said("plan", path, "--json").json}
    found = entries["calibrated_weights"]
    assert found["guarantee"]["kind"] == "proved"
    assert found["parameters"]["failing"] <= 1e-6
    assert len({row["epsilon"] for row in found["model_error"]}) == 1
    released = Said("release", path, *BY_WEIGHTS, "--json").json
    weight, height = released["answers"]
    assert abs(weight["value"] - 150) < 12
    assert abs(height["value"] / ROWS - 67) < 2
    assert weight["interval"]["low"] < weight["value"] < weight["interval"]["high"]
    told = Said("release", path, "avg(height)", "--json").json  # follows from the sum that is out
    assert told["ledger"]["recorded"]
    assert told["answers"][0]["value"] == pytest.approx(height["value"] / ROWS, rel=1e-12)
    assert Said("release", path, "avg(income)", "--spend", "0.5", *BY_WEIGHTS).code == 3
    again = Said("release", path, *BY_WEIGHTS, "--json")  # told again or refused, but never drawn again
    assert again.code == 3 or again.json["answers"] == released["answers"]


def test_auto_takes_it_where_slopes_are_hardly_known(tmp_path: Path) -> None:
    chosen = [entry for entry in Said("plan", school(tmp_path), "--json").json if entry.get("chosen")]
    assert {entry["mechanism"] for entry in chosen} == {"calibrated_weights"}


def test_a_failure_is_recorded_says_one_thing_and_spends_the_ledger(tmp_path: Path) -> None:
    """Two tables far outside of the range, of different means: the same words, the same entry but for time and digest."""
    entries = []
    for name, income in (("a", 300_000.0), ("b", -500_000.0)):
        folder = tmp_path / name
        folder.mkdir()
        path = school(folder, students(income, seed=2))
        said = Said("release", path, *BY_WEIGHTS)
        assert said.code == 3
        assert FAILED in " ".join((said.out + said.err).split())
        assert Said("release", path, *BY_WEIGHTS).code == 3
        assert Said("release", path, "--mechanism", "gaussian").code == 3
        (entry,) = Said("ledger", path, "--json").json["entries"]
        assert (entry["kind"], entry["answers"]) == ("failure", [])
        entries.append({key: value for key, value in entry.items() if key not in ("time", "digest")})
        assert "a release that failed" in Said("ledger", path).out
        assert FAILED in " ".join(Said("plan", path).err.split())
    assert entries[0] == entries[1]


def test_a_failure_in_python_leaves_no_trace_of_the_table(tmp_path: Path) -> None:
    policy = Policy(**{key: value for key, value in POLICY.items() if key != "data"})
    with Session(students(300_000.0), policy, ledger=tmp_path / "x.ledger") as session:
        with pytest.raises(RefusedError) as caught:
            session.release(mechanism="calibrated_weights")
        assert str(caught.value) == FAILED
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        (entry,) = session.recorded()
    assert entry.kind == "failure"
    assert not re.search(r"\b300000(\.0)?\b", json.dumps(entry.to_json()))  # as a number of its own, not within a digest


def test_a_constant_sensitive_column_fails_alike(tmp_path: Path) -> None:
    table = students().set_column(0, "income", pa.array([110_000.0] * ROWS))
    said = Said("release", school(tmp_path, table), *BY_WEIGHTS)
    assert said.code == 3
    assert FAILED in " ".join((said.out + said.err).split())


def test_missing_entries_take_the_public_value(tmp_path: Path) -> None:
    table = students()
    gaps = pa.array([None if k % 50 == 0 else v for k, v in enumerate(table["weight"].to_pylist())])
    table = table.set_column(1, "weight", gaps)
    refused = Said("release", school(tmp_path, table), *BY_WEIGHTS)
    assert refused.code == 2
    assert "within a few hundred standard deviations" in " ".join(refused.err.split())
    path = school(tmp_path, table, missing={"weight": 150})
    assert Said("release", path, *BY_WEIGHTS).code == 0
