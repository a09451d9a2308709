"""Hide the share of women, publish average hours: the groups assumption as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attrpriv.engines.tally import UNKNOWN_CATEGORY
from tests.end_to_end.material import Said, contents, write_policy, write_table

ROWS = 800
POLICY: dict[str, Any] = {
    "attrpriv": 1,
    "data": "staff.parquet",
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"secret": "share(gender = 'F')", "between": [0.25, 0.4]}],
    "assume": {
        "kind": "groups",
        "sensitive": "gender",
        "mean": {"F": {"hours": 36}, "M": {"hours": 42}},
        "sd": {"F": {"hours": 11}, "M": {"hours": 12}},
        "tolerance": {"mean": 0.02, "sd": 0.02},
    },
    "resolution": {"hours": 1},
    "release": ["avg(hours)"],
}


def staff(seed: int = 1, *, women: float = 0.3, rows: int = ROWS) -> pa.Table:
    generator = np.random.default_rng(seed)
    gender = np.where(generator.random(rows) < women, "F", "M")
    hours = np.where(gender == "F", generator.normal(36, 11, rows), generator.normal(42, 12, rows))
    return pa.table({"gender": gender, "hours": np.rint(hours).astype(np.int64)})


def office(folder: Path, table: pa.Table | None = None, **changes: Any) -> Path:
    write_table(folder, staff() if table is None else table, "staff.parquet")
    return write_policy(folder, POLICY | changes, "staff.yaml")


def test_plan_release_and_a_second_release(tmp_path: Path) -> None:
    path = str(office(tmp_path))
    ranked = Said("plan", path, "--json").json
    chosen = next(entry for entry in ranked if entry.get("chosen"))
    assert (chosen["mechanism"], chosen["guarantee"]["kind"]) == ("transport", "proved")
    released = Said("release", path, "--json").json
    answer = released["answers"][0]
    assert answer["interval"]["low"] < answer["value"] < answer["interval"]["high"]
    # The table's own average is within six standard errors of 40.2, and the answer within some of its own from that.
    assert abs(answer["value"] - 40.2) < 6 * 12 / 800**0.5 + 12 * chosen["error"]["rmse"]
    assert Said("release", path, "--json").json["answers"] == [answer]  # told again, not drawn again


def test_nothing_but_the_value_depends_on_the_counts(tmp_path: Path) -> None:
    """Two tables, a quarter and two fifths of women: the same plan, the same words, the same files."""
    plans, names = [], []
    for k, women in enumerate((0.26, 0.39)):
        folder = tmp_path / str(k)
        folder.mkdir()
        path = str(office(folder, staff(k, women=women), assume=POLICY["assume"] | {"tolerance": {"mean": 0.02}}))
        said = Said("release", path, "--json").json
        assert said["plan"][0]["parameters"]["form"] == "equalised"
        plans.append(said["plan"])
        names.append(sorted(contents(folder)))
    assert plans[0] == plans[1]
    assert names[0] == names[1]


def test_several_averages_and_a_share_of_the_population(tmp_path: Path) -> None:
    """The counts are read in the same pass; two tables of the same population have the same plan."""
    assume = POLICY["assume"] | {
        "mean": {"F": {"hours": 36, "pay": 30}, "M": {"hours": 42, "pay": 33}},
        "sd": {"F": {"hours": 11, "pay": 8}, "M": {"hours": 12, "pay": 9}},
        "correlation": {"F": {"hours~pay": 0}, "M": {"hours~pay": 0}},
        "prior": {"F": 0.3, "M": 0.7},
        "tolerance": 0,
    }
    plans = []
    for k, women in enumerate((0.27, 0.36)):
        folder = tmp_path / str(k)
        folder.mkdir()
        table = staff(k, women=women)
        generator = np.random.default_rng(k)
        pay = np.where(
            np.array(table["gender"].to_pylist()) == "F", generator.normal(30, 8, ROWS), generator.normal(33, 9, ROWS)
        )
        path = office(
            folder,
            table.append_column("pay", pa.array(np.rint(pay).astype(np.int64))),
            assume=assume,
            protect=[{"parameter": "share(gender = 'F')", "between": [0.25, 0.4]}],
            resolution={"hours": 1, "pay": 1},
            release=["avg(hours)", "sum(pay)"],
        )
        said = Said("release", str(path), "--mechanism", "transport", "--json").json
        evidence = said["plan"][0]["certificate"]["evidence"]
        assert evidence["kind"] == "group_vector_transport"
        assert evidence["check"]["shares"] == [0.25, 0.4]
        assert len(said["answers"]) == 2
        plans.append(said["plan"])
    assert plans[0] == plans[1]


@pytest.mark.parametrize("stranger", ["X", None])
def test_an_unknown_category_is_an_announced_failure(tmp_path: Path, stranger: str | None) -> None:
    table = staff()
    genders = table["gender"].to_pylist()
    genders[7] = stranger
    path = office(tmp_path, table.set_column(0, "gender", pa.array(genders, pa.string())))
    before = contents(tmp_path)
    said = Said("release", str(path))
    assert said.code == 2
    assert said.complaint == UNKNOWN_CATEGORY.format(columns="hours, gender")
    assert contents(tmp_path) == before


def test_other_takes_the_rows_of_no_category(tmp_path: Path) -> None:
    table = staff()
    genders = ["?" if k < 3 else gender for k, gender in enumerate(table["gender"].to_pylist())]
    path = office(tmp_path, table.set_column(0, "gender", pa.array(genders)), assume=POLICY["assume"] | {"other": "M"})
    assert Said("release", str(path)).code == 0


def test_fit_from_public_records(tmp_path: Path) -> None:
    """`attrpriv fit` sees that the secret is a share and writes a groups assumption; its risk is paid out of delta."""
    path = office(tmp_path, delta=1e-3)
    write_table(tmp_path, staff(2, rows=20_000), "public.parquet")
    fitted = Said("fit", str(path), "--public", str(tmp_path / "public.parquet"), "--out", str(tmp_path / "fitted.yaml"))
    assert fitted.code == 0
    assert "kind: groups" in (tmp_path / "fitted.yaml").read_text(encoding="utf-8")
    whole = POLICY | {"delta": 1e-3, "assume": {"file": "fitted.yaml"}}
    path = write_policy(tmp_path, whole, "fitted-policy.yaml")
    said = Said("release", str(path), "--json").json
    evidence = said["plan"][0]["certificate"]["evidence"]
    assert evidence["kind"] == "group_transport"
    assert evidence["fit_delta"] > 0


def test_fit_refuses_the_private_table(tmp_path: Path) -> None:
    path = office(tmp_path, delta=1e-3)
    said = Said("fit", str(path), "--public", str(tmp_path / "staff.parquet"), "--out", str(tmp_path / "fitted.yaml"))
    assert said.code == 2
    assert not (tmp_path / "fitted.yaml").exists()


def test_a_fit_on_these_very_rows_is_found_out_at_release(tmp_path: Path) -> None:
    """The same rows under another name, fitted where the table was not known."""
    path = office(tmp_path, delta=1e-3)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    apart = office(elsewhere, staff(3), delta=1e-3)
    write_table(elsewhere, staff(), "copy.parquet")
    out = str(tmp_path / "fitted.yaml")
    assert Said("fit", str(apart), "--public", str(elsewhere / "copy.parquet"), "--out", out).code == 0
    whole = write_policy(tmp_path, POLICY | {"delta": 1e-3, "assume": {"file": "fitted.yaml"}}, "again.yaml")
    assert Said("release", str(whole)).code == 2
    assert Said("plan", str(path)).code == 0
