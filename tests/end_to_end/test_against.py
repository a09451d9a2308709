"""`attrpriv plan --against`: plans tried on a public file, in words and in JSON; the private table is refused as that file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.audit.release import weighed
from attrpriv.engines.moments import SAME_TABLE
from tests.end_to_end.material import Said, policy, write_policy

ROWS = 200
ASSUME = {
    "kind": "gaussian",
    "mean": {"hours": 20, "grade": 10},
    "sd": {"hours": 5, "grade": 3},
    "correlation": {"hours~grade": 0.8},
    "tolerance": {"mean": 0.1, "sd": 0.02, "slope": 0.05},
}


def table(rows: int, seed: int, **more: Any) -> pa.Table:
    rng = np.random.default_rng(seed)
    grade = np.rint(rng.normal(10, 3, rows)).astype(np.int64)
    hours = np.rint(20 + 4 / 3 * (grade - 10) + rng.normal(0, 3, rows)).astype(np.int64)
    return pa.table({"hours": hours, "grade": grade, "sex": np.where(hours % 2, "F", "M"), **more})


def stated(**changes: Any) -> dict[str, Any]:
    return policy(
        data="school.parquet",
        protect=[{"secret": "mean(grade)", "between": [9.5, 10.5]}],
        assume=ASSUME,
        **{"resolution": {}, "release": ["avg(hours)"], **changes},
    )


@pytest.fixture
def school(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(weighed, "TABLES", 600)  # what is simulated is tested elsewhere
    monkeypatch.setattr(weighed, "CHOOSING", 300)
    pq.write_table(table(ROWS, 1), "school.parquet")
    pq.write_table(table(5000, 2), "public.parquet")
    write_policy(tmp_path, stated())
    return tmp_path


def against(*more: str, public: str = "public.parquet") -> Said:
    return Said("plan", "students.yaml", "--against", public, *more)


def of(said: Said, mechanism: str) -> dict[str, Any]:
    (entry,) = [entry for entry in said.json if entry["mechanism"] == mechanism]
    return dict(entry)


def test_what_holds_is_told_in_a_table(school: Path) -> None:
    said = against()
    assert said.code == 0, said.err
    assert "tried on public.parquet, 5,000 rows" in said.out
    assert "promised epsilon" in said.out
    (line,) = [line for line in said.out.splitlines() if line.startswith("gaussian ") and "held" in line]
    assert "9.5 and 10.5" in line
    assert "if rows are independent draws like those of the public file" in said.out


def test_json_has_the_numbers_and_the_notes(school: Path) -> None:
    entry = of(against("--json"), "gaussian")
    (tried,) = entry["against"]["tried"]
    assert entry["against"]["rows"] == 5000
    assert (tried["verdict"], tried["secret"], tried["pair"], tried["n"]) == ("held", "mean(grade)", [9.5, 10.5], ROWS)
    assert tried["at_least"] <= tried["at_most"] <= 1.0
    assert any("if rows are independent draws like those of public.parquet" in note for note in entry["notes"])
    assert "against" not in Said("plan", "students.yaml", "--json").out


def test_rows_of_another_shape_break_it(school: Path) -> None:
    """Twice as steep as is stated."""
    rows = table(5000, 3)
    grade = rows["grade"].to_numpy()
    pq.write_table(rows.set_column(0, "hours", pa.array(20 + 3 * (grade - 10) + rows["hours"].to_numpy() % 3)), "steep.parquet")
    tried = of(against("--json", public="steep.parquet"), "gaussian")["against"]["tried"][0]
    assert tried["verdict"] == "broken"
    assert tried["at_least"] > 1.5


def test_from_python(school: Path) -> None:
    with ap.Session(policy="students.yaml") as session:
        trials = ap.try_on(session, pq.read_table("public.parquet"), "avg(hours)")
        assert [one.verdict for one in trials.of("avg(hours)", "gaussian")] == ["held"]
        assert ap.try_on(session, "public.parquet", "sum(hours)").tried[0].query == "sum(hours)"


@pytest.mark.parametrize("disguise", ["itself", "link", "another order", "csv"])
def test_the_private_table_is_refused(school: Path, disguise: str) -> None:
    name = "copy.csv" if disguise == "csv" else "copy.parquet"
    if disguise == "link":
        Path(name).symlink_to("school.parquet")
    elif disguise == "csv":
        pq.read_table("school.parquet").to_pandas().to_csv(name, index=False)
    elif disguise == "another order":
        pq.write_table(pq.read_table("school.parquet").take(list(range(ROWS))[::-1]).drop_columns(["sex"]), name)
    else:
        name = "school.parquet"
    said = against(public=name)
    assert said.code != 0
    assert SAME_TABLE in said.err


def test_nothing_depends_on_the_private_rows(school: Path) -> None:
    first = against("--json").out
    pq.write_table(table(ROWS, 99), "school.parquet")
    assert against("--json").out == first


def reasons(said: Said) -> str:
    assert said.code == 0, said.err
    entry = of(said, "gaussian")["against"]["tried"][0]
    assert entry["verdict"] == "not tried"
    return str(entry["reason"])


def test_what_cannot_be_read_is_not_tried(school: Path) -> None:
    rows = table(500, 4)
    hours: list[int | None] = rows["hours"].to_pylist()
    hours[3] = None
    pq.write_table(rows.set_column(0, "hours", pa.array(hours)), "public.parquet")
    assert "every value of a column read must be present" in reasons(against("--json"))
    pq.write_table(rows.drop_columns(["grade"]), "public.parquet")
    assert "grade" in reasons(against("--json"))
    pq.write_table(rows.set_column(1, "grade", pa.array(np.full(500, 10))), "public.parquet")
    assert "every public row has the same grade" in reasons(against("--json"))


def test_missing_entries_are_filled_as_a_release_does(school: Path) -> None:
    rows = table(5000, 2)
    hours: list[int | None] = rows["hours"].to_pylist()
    hours[3] = None
    pq.write_table(rows.set_column(0, "hours", pa.array(hours)), "public.parquet")
    write_policy(school, stated(missing={"hours": 20}))
    assert of(against("--json"), "gaussian")["against"]["tried"][0]["verdict"] == "held"


def test_numbers_without_a_spacing_are_rounded_and_it_says_so(school: Path) -> None:
    rows = table(5000, 2)
    noise = np.random.default_rng(5).normal(0, 0.1, 5000)
    pq.write_table(rows.set_column(0, "hours", pa.array(rows["hours"].to_numpy() + noise)), "public.parquet")
    tried = of(against("--json"), "gaussian")["against"]["tried"][0]
    assert tried["verdict"] == "held"
    assert "The public hours was rounded to 0.01." in tried["reason"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protect": [{"secret": "mean(grade)", "cases": ["< 10", ">= 10"]}]}, "only values of a mean, sum, count or share"),
        ({"protect": [{"secret": "mean(2*grade)", "between": [19, 21]}]}, "only one column's mean"),
        ({"release": ["avg(hours + grade)"]}, "only averages and sums of one column over all rows"),
    ],
)
def test_what_is_not_covered_says_so(school: Path, changes: dict[str, Any], words: str) -> None:
    write_policy(school, {**stated(), **changes})
    said = against("--json")
    tried = [one for entry in said.json for one in entry.get("against", {}).get("tried", ())]
    assert tried
    assert all(one["verdict"] != "held" for one in tried)
    assert any(words in one.get("reason", "") for one in tried)


def test_who_knows_rows_is_not_tried_and_breaks_for_who_knows_none_count(school: Path) -> None:
    write_policy(school, stated(known_rows=0.1))
    for mechanism in ("gaussian", "transport"):
        (tried,) = of(against("--json"), mechanism)["against"]["tried"]
        assert (tried["verdict"], "at_most" in tried) == ("not tried", False)
        assert "an adversary who knows some rows is not tried" in tried["reason"]
    rows = table(5000, 3)
    steep = 20 + 3 * (rows["grade"].to_numpy() - 10) + rows["hours"].to_numpy() % 3
    pq.write_table(rows.set_column(0, "hours", pa.array(steep)), "steep.parquet")
    assert of(against("--json", public="steep.parquet"), "gaussian")["against"]["tried"][0]["verdict"] == "broken"


def test_two_answers_are_tried_one_by_one(school: Path) -> None:
    for name, rows, seed in (("school.parquet", ROWS, 1), ("public.parquet", 5000, 2)):
        pq.write_table(table(rows, seed, days=table(rows, seed + 7)["hours"]), name)
    means = {**ASSUME, "mean": {**ASSUME["mean"], "days": 20}, "sd": {**ASSUME["sd"], "days": 5}}  # type: ignore[dict-item]
    correlations = {"hours~grade": 0.8, "days~grade": 0.1, "hours~days": 0.1}
    write_policy(school, {**stated(), "assume": {**means, "correlation": correlations}, "release": ["avg(hours)", "avg(days)"]})
    found = [one for entry in against("--json").json for one in entry.get("against", {}).get("tried", ())]
    gaussian = [one for one in found if one["mechanism"] == "gaussian"]
    assert {one["query"] for one in gaussian} == {"avg(hours)", "avg(days)"}
    assert all("together with the other answers it may tell more" in one.get("reason", "") for one in gaussian)


def test_a_share(school: Path) -> None:
    groups = {"kind": "groups", "sensitive": "sex", "tolerance": 0}
    sides = {"mean": {"F": {"hours": 20}, "M": {"hours": 22}}, "sd": {"F": {"hours": 4}, "M": {"hours": 4}}}
    secret = {"secret": "share(sex = 'F')", "between": [0.4, 0.6]}
    write_policy(school, {**stated(), "protect": [secret], "assume": {**groups, **sides}})
    said = against("--json")
    for mechanism in ("gaussian", "transport"):
        (tried,) = of(said, mechanism)["against"]["tried"]
        assert tried["at_least"] >= 0
        assert tried["pair"][0] >= 0.4
        assert (tried["looked"], tried["values"]) == (41, 41)


def test_a_file_that_is_not_there(school: Path) -> None:
    said = against(public="nowhere.parquet")
    assert said.code != 0
    assert "nowhere.parquet" in said.err
    shutil.copy("public.parquet", "also.parquet")
    assert against(public="also.parquet").code == 0


# ---------------------------------------------------------------------------------------------- what a fit tries by itself


def fitted(school: Path, bend: float, *more: str, **changes: Any) -> Said:
    """An assumption that is fitted on rows whose regression bends, tried on the same rows."""
    rng = np.random.default_rng(6)
    grade = np.rint(rng.normal(10, 3, 20_000)).clip(0, 30)
    hours = 20 + 0.3 * (grade - 10) + bend * (grade - 10) ** 2 + rng.normal(0, 3, 20_000)
    pq.write_table(pa.table({"hours": np.rint(hours).astype(np.int64), "grade": grade.astype(np.int64)}), "public.parquet")
    far = [{"secret": "mean(grade)", "between": [11, 12]}]  # where the slope is another one
    write_policy(school, {**stated(**changes), "protect": far, "assume": {"file": "fitted.yaml"}})
    return Said("fit", "students.yaml", "--public", "public.parquet", "--out", "fitted.yaml", *more)


def test_a_fit_tries_the_plans_and_records_what_held(school: Path) -> None:
    said = fitted(school, 0.0)
    assert said.code == 0, said.err
    assert "plans for what the policy lists, tried on these rows" in said.out
    (member,) = ap.Policy.load("students.yaml").assume
    record = member.fit_record()
    assert record is not None
    assert record.tried is not None
    assert {one.verdict for one in record.tried if one.mechanism == "gaussian"} == {"held"}
    assert Said("plan", "students.yaml").code == 0


def test_a_fit_records_nothing_that_held_where_rows_may_be_known(school: Path) -> None:
    said = fitted(school, 0.0, "--json", known_rows=0.1)
    assert said.code == 0, said.err
    tried = {one["mechanism"]: one["verdict"] for one in said.json["tried"]}
    assert tried["gaussian"] == "not tried"
    (member,) = ap.Policy.load("students.yaml").assume
    record = member.fit_record()
    assert record is not None
    assert record.tried is None


def test_auto_does_not_choose_what_broke(school: Path) -> None:
    said = fitted(school, 0.5, "--json")
    assert said.code == 0, said.err
    tried = {one["mechanism"]: one for one in said.json["tried"]}
    assert tried["gaussian"]["verdict"] == "broken"
    (refused,) = [entry for entry in Said("plan", "students.yaml", "--json").json if entry["mechanism"] == "gaussian"]
    assert "broke its promise when it was tried on the public records" in refused["refused"]
    assert refused["cause"] == "shape"
    assert refused["needs"] == ["columns(...) under protect with public records as the reference, or kind: records"]
    assert "gaussian by name" not in Said("check", "students.yaml").out  # what is known to break is no way out
    by_name = Said("plan", "students.yaml", "--mechanism", "gaussian")
    assert by_name.code == 0
    assert "warning tried: gaussian broke its promise" in by_name.out
    asked = Said("plan", "students.yaml", "sum(hours)", "--json").json
    assert [entry for entry in asked if entry["mechanism"] == "gaussian" and "refused" in entry]


def test_a_fit_depends_on_no_private_row(school: Path) -> None:
    first = fitted(school, 0.5, "--json").out
    pq.write_table(table(ROWS, 98), "school.parquet")
    assert fitted(school, 0.5, "--json", "--force").out == first


def test_a_fit_tries_by_itself_what_cannot_be_planned_with_the_rest(school: Path) -> None:
    """A count has no law under a gaussian assumption; for its sake the average beside it was not tried, without a word."""
    count = "count(*) filter (where sex = 'F')"
    said = fitted(school, 0.0, release=["avg(hours)", count])
    assert said.code == 0, said.err
    assert "no plan was tried" not in said.out
    (member,) = ap.Policy.load("students.yaml").assume
    record = member.fit_record()
    assert record is not None
    assert record.tried is not None
    assert {(one.query, one.verdict) for one in record.tried if one.mechanism == "gaussian"} == {("avg(hours)", "held")}


def test_a_fit_says_where_no_plan_rests_on_its_numbers(school: Path) -> None:
    """Values on a spacing far above their standard deviation have no nearly normal average."""
    said = fitted(school, 0.0, resolution={"hours": 1000})
    assert said.code == 0, said.err
    assert "no plan was tried on the public rows: no mechanism that rests on these numbers" in said.out


def test_a_fit_without_a_table_says_that_nothing_was_tried(school: Path) -> None:
    Path("school.parquet").unlink()
    said = fitted(school, 0.0)
    assert said.code == 0, said.err
    assert "no plan was tried on the public rows" in said.out
