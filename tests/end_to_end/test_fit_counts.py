"""`attrpriv fit` for a policy that releases counts: from public records to a release, and the private table refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.engines.moments import SAME_TABLE
from attrpriv.policy import Policy
from tests.end_to_end.material import Said, contents

OUT = "survey.assumption.yaml"
POLICY = """attrpriv: 1
data: hospital.parquet
epsilon: 1.0
delta: 1e-6
protect:
  - secret: share(smoker = 'yes')
    between: [20%, 40%]
    within: 2%
assume:
  file: survey.assumption.yaml
release:
  - count(*) filter (where stay > 7)
  - SELECT ward, count(*) FROM data GROUP BY ward
"""


def patients(rows: int, seed: int, pad: str = "") -> pa.Table:
    rng = np.random.default_rng(seed)
    smoker = rng.random(rows) < 0.3
    ward = np.where(smoker, rng.choice(["a", "b"], rows, p=[0.7, 0.3]), rng.choice(["a", "b"], rows, p=[0.4, 0.6]))
    stay = np.where(smoker, rng.random(rows) < 0.4, rng.random(rows) < 0.2) * 5 + rng.integers(3, 8, rows)
    return pa.table({"smoker": np.where(smoker, f"{pad}yes", f"{pad}no"), "stay": stay, "ward": ward, "cost": stay * 100.0})


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pq.write_table(patients(2000, 1), tmp_path / "hospital.parquet")
    pq.write_table(patients(20_000, 2), tmp_path / "survey.parquet")
    (tmp_path / "hospital.yaml").write_text(POLICY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(*more: str, public: str = "survey.parquet") -> Said:
    return Said("fit", "hospital.yaml", "--public", public, "--out", OUT, *more)


def changed(old: str, new: str) -> None:
    assert old in POLICY
    Path("hospital.yaml").write_text(POLICY.replace(old, new), encoding="utf-8")


@pytest.mark.usefixtures("hospital")
def test_from_public_records_to_a_release_that_can_be_rechecked() -> None:
    assert Said("check", "hospital.yaml").code == 2  # the assumption is not there yet
    said = fit()
    assert (said.code, said.err) == (0, "")
    assert "probability of stay > 7 in yes" in said.out
    assert "probability of ward = 'a' in no" in said.out
    assert "share of yes" in said.out
    assert "normal" not in said.out
    (box,) = Policy.load("hospital.yaml").assume
    wanted = {"sensitive": "smoker", "events": ["stay > 7"], "columns": ["ward"], "confidence": 0.9999995}
    assert box == ap.Counts.fit(ap.PublicTable("survey.parquet"), **wanted)  # type: ignore[arg-type]
    assert Said("check", "hospital.yaml").code == 0
    told = Said("release", "hospital.yaml", "--json").json
    assert "fit_delta" in str(told)
    rechecked = Said("ledger", "hospital.yaml", "--verify", "--recheck")
    assert rechecked.code == 0
    assert "2 of 2 releases" in rechecked.out


@pytest.mark.usefixtures("hospital")
def test_the_document() -> None:
    told = fit("--json").json
    assert set(told) == {"schema_version", "out", "assume", "assumption", "intervals", "notes", "shape", "tried"}
    assert told["shape"] is None
    assert told["assume"] == {"file": OUT}
    assert {one["kind"] for one in told["intervals"]} == {"probability", "share"}
    for one in told["intervals"]:
        assert 0 <= one["low"] <= one["estimate"] <= one["high"] <= 1
    text = Path(OUT).read_text(encoding="utf-8")
    assert "provided the public rows are independent, drawn from the population of the private table, and" in text
    assert "normal" not in text


@pytest.mark.parametrize("disguise", ["itself", "a link", "shuffled", "csv"])
def test_the_private_table_is_refused(disguise: str, hospital: Path) -> None:
    table = pq.read_table("hospital.parquet")
    public = {"itself": "hospital.parquet", "a link": "link.parquet", "shuffled": "other.parquet", "csv": "other.csv"}[disguise]
    if disguise == "a link":
        os.link("hospital.parquet", public)
    if disguise == "shuffled":
        pq.write_table(table.take(np.random.default_rng(1).permutation(table.num_rows)), public)
    if disguise == "csv":
        pyarrow.csv.write_csv(table, public)
    before = contents(hospital)
    said = fit(public=public)
    assert (said.code, said.complaint) == (2, SAME_TABLE)
    assert contents(hospital) == before


@pytest.mark.usefixtures("hospital")
def test_a_release_refuses_an_assumption_of_its_own_table() -> None:
    """Fitted while the private table was not there to compare with."""
    os.rename("hospital.parquet", "away.parquet")
    assert fit(public="away.parquet").code == 0
    os.rename("away.parquet", "hospital.parquet")
    said = Said("release", "hospital.yaml")
    assert (said.code, said.complaint) == (2, SAME_TABLE)


@pytest.mark.usefixtures("hospital")
def test_padded_categories_are_pointed_out() -> None:
    pq.write_table(patients(20_000, 2, " "), "padded.parquet")
    said = fit(public="padded.parquet")
    assert said.code == 2
    assert "the public records have ' no', ' yes' for smoker. Got 'yes'. Did you mean ' yes'?" in said.complaint
    changed("'yes'", "' yes'")
    said = fit(public="padded.parquet")
    assert said.code == 0
    assert "smoker: ' no', ' yes' begin or end with a space." in " ".join(said.out.split())
    assert "' yes', ' no': begins or ends with a space" in Said("check", "hospital.yaml").out.replace(
        "' no', ' yes'", "' yes', ' no'"
    )


@pytest.mark.usefixtures("hospital")
def test_an_event_that_no_public_row_has_is_pointed_out() -> None:
    changed("stay > 7", "ward = ' a'")
    said = fit()
    assert said.code == 0
    assert "ward = ' a': no public row is so. Is it written as the records are?" in " ".join(said.out.split())


@pytest.mark.usefixtures("hospital")
def test_padded_categories_of_groups_too() -> None:
    pq.write_table(patients(20_000, 2, " "), "padded.parquet")
    changed(POLICY.partition("release:\n")[2], "  - avg(cost)\n")
    said = fit(public="padded.parquet")
    assert said.code == 2
    assert "Did you mean ' yes'?" in said.complaint
    assert fit().code == 0


@pytest.mark.usefixtures("hospital")
def test_what_cannot_be_fitted() -> None:
    changed("stay > 7", "stay > 7 and smoker = 'no'")
    assert "release: an event is fitted where it is not about smoker" in fit().complaint
    changed(POLICY.partition("release:\n")[2], "  - count(*) filter (where smoker = 'yes')\n")
    assert "must count something else than smoker alone" in fit().complaint
    changed("GROUP BY ward\n", "GROUP BY ward\nbins: {ward: [0, 1]}\n")
    assert "bins of ward are not fitted" in fit().complaint
    changed("FROM data GROUP", "FROM data WHERE stay > 3 GROUP")
    assert "a histogram with a filter is not covered" in fit().complaint
    changed("delta: 1e-6\n", "")
    assert "delta: must be above 0" in fit().complaint
