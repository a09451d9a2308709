"""Averages by group and over subsets, from SQL to the ledger: one pass, one proof for all, told again, checked again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.accounting.hash_chain import Entry, canonical_json
from attrpriv.cli.app import app
from attrpriv.engines.tables import Source
from attrpriv.errors import CertificateError, DataError, RefusedError
from attrpriv.policy.strict_yaml import dump_strict
from attrpriv.queries import evaluate as overlap
from attrpriv.session.record import recheck
from attrpriv.session.table_reads import OTHER_SIZE

ROWS = {"north": 1200, "south": 800, "it's far": 600, None: 400}
N = sum(ROWS.values())
BY_REGION = "SELECT region, avg(weight) FROM data GROUP BY region"
NORTH = "avg(weight) filter (where region = 'north')"
POLICY: Mapping[str, Any] = {
    "attrpriv": 1,
    "data": "t.parquet",
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"secret": "mean(income)", "between": [20, 200], "within": 1}],
    "assume": {
        "kind": "gaussian",
        "mean": {"income": 60, "weight": 150},
        "sd": {"weight": 25, "height": 4, "income": 30},
        "correlation": {"weight~income": 0.3, "height~income": 0.2, "weight~height": 0.1},
        "tolerance": {"mean": 0.01, "sd": 0.02, "slope": 0.05},
    },
    "categories": {"region": ["north", "south", "it's far", "other"]},
    "sizes": {"region = 'north'": 1200, "region = 'south'": 800, "region = 'it''s far'": 600},
}


def people() -> pa.Table:
    rng = np.random.default_rng(2)
    listed = [name for name, rows in ROWS.items() for _ in range(rows)]
    region = [listed[k] for k in rng.permutation(N)]
    income = rng.normal(60, 30, N)
    weight = np.rint(150 + 0.25 * (income - 60) + rng.normal(0, 23.8, N)).astype(int)
    columns = {"income": np.rint(income).astype(int), "weight": weight, "height": rng.normal(68, 4, N)}
    return pa.table({**columns, "region": pa.array(region, pa.string())})


def place(folder: Path, **changes: Any) -> Path:
    pq.write_table(people(), folder / "t.parquet")
    path = folder / "p.yaml"
    path.write_text(dump_strict({**POLICY, **changes}), encoding="utf-8")
    return path


def exact() -> list[Fraction]:
    frame = people().to_pandas()
    inside = [frame[frame["region"] == name] for name in list(ROWS)[:3]] + [frame[frame["region"].isna()]]
    return [Fraction(int(rows["weight"].sum()), len(rows)) for rows in inside]


def test_by_group_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []
    run = Source.run

    def counted(source: Source, *more: Any) -> Any:
        runs.append("once")
        return run(source, *more)

    monkeypatch.setattr(Source, "run", counted)
    with ap.Session(policy=place(tmp_path)) as session:
        plan = session.plan(BY_REGION, "gaussian")
        assert runs == []
        released = session.release(BY_REGION, "gaussian")
        assert runs == ["once"]
        (answer,) = released.answers
        assert [value.group for value in answer.values] == ["north", "south", "it's far", "other"]
        for value, truth in zip(answer.values, exact(), strict=True):
            assert abs(value.value - float(truth)) < 6.5 * plan.noise_of(plan.queries[0], value.group).scale
            low, high = value.interval(0.95)
            assert low < value.value < high
        assert session.release(BY_REGION).values == released.values
        assert session.left == 0
        frame = released.to_frame()
        assert list(frame["group"]) == ["north", "south", "it's far", "other"]
    assert "independent of the columns of the assumption" in str(plan.certificate)


def test_without_what_the_secret_tells(tmp_path: Path) -> None:
    """`auto` takes the transport, which reads the secret in the same pass; its errors are a tenth."""
    with ap.Session(policy=place(tmp_path)) as session:
        additive = session.plan(BY_REGION, "gaussian")
        released = session.release(BY_REGION)
        assert released.plan.mechanism == "transport"
        error = released.plan.error_of(released.plan.queries[0]).rmse
        assert error is not None
        assert 5 * error < additive.noise_of(additive.queries[0]).scale
        for value, truth in zip(released.answers[0].values, exact(), strict=True):
            assert abs(value.value - float(truth)) < 6.5 * error
        sums = session.release(BY_REGION.replace("avg", "sum"))
        assert sums.values == tuple(float(Fraction(x) * m) for x, m in zip(released.values, ROWS.values(), strict=True))
        assert session.left == 0
    recheck("record", session.recorded())


def kept(seen: list[Fraction], average: Fraction, scale: float) -> Fraction:
    """No noise of its own, to see what it would be added to."""
    seen.append(average)
    return average


def test_the_averages_are_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Fraction] = []
    monkeypatch.setattr("attrpriv.methods.base.column_plan.add_gaussian", partial(kept, seen))
    monkeypatch.setattr("attrpriv.methods.base.evidence.correlated_noise", lambda factor, bits: [Fraction(0)] * len(factor))
    with ap.Session(policy=place(tmp_path)) as session:
        session.release(BY_REGION, "gaussian")
    assert seen == exact()


def test_sums_follow_from_averages_of_the_same_rows(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path)) as session:
        averages = session.release(BY_REGION)
        sums = session.release(BY_REGION.replace("avg", "sum"))
        assert sums.recorded
        assert sums.values == tuple(float(Fraction(x) * m) for x, m in zip(averages.values, ROWS.values(), strict=True))
        wide = [[high - low for low, high in (v.interval(0.9) for v in r.answers[0].values)] for r in (averages, sums)]
        assert wide[1] == pytest.approx([width * rows for width, rows in zip(wide[0], ROWS.values(), strict=True)])
    alone = tmp_path / "alone"
    alone.mkdir()
    with ap.Session(policy=place(alone)) as session:
        total = session.release("sum(weight) filter (where region = 'south')")
        assert session.release("avg(weight) filter (where region = 'south')").value == float(Fraction(total.value) / 800)


def test_a_sequence_of_the_table_and_its_groups(tmp_path: Path) -> None:
    path = place(tmp_path)
    with ap.Session(policy=path) as session:
        whole = session.release("avg(weight)", "gaussian", spend=0.3)
        north = session.release(NORTH, spend=0.5)
        south = session.release(NORTH.replace("north", "south"), spend=0.5)
        assert north.plan.certificate.follows(whole.plan.certificate)
        assert south.plan.certificate.follows(north.plan.certificate)
        assert session.left == pytest.approx(0.7 * 0.25, rel=1e-3)
        with pytest.raises(RefusedError, match="was released before"):
            session.release(BY_REGION, spend=0.5)
        heights = session.release(BY_REGION.replace("weight", "height"), spend=0.5)
        assert len(heights.values) == 4
        with pytest.raises(RefusedError, match="follows from the others, weighted by their sizes"):
            session.release("avg(height)", "gaussian", spend=0.5)
        entries = session.recorded()
    found = recheck("record", entries)
    assert (found.certificates, found.planned_again) == (4, 4)


def test_a_record_with_another_number_of_rows_is_found(tmp_path: Path) -> None:
    """Whoever writes a record anew, digests and all, cannot say that a subset had more rows, or was another one."""
    with ap.Session(policy=place(tmp_path)) as session:
        session.release(BY_REGION, "gaussian")
        (entry,) = session.recorded()
    assert recheck("record", [entry]).planned_again == 1
    for change in ({"rows": 3}, {"where": "region = 'south'"}):
        details = json.loads(canonical_json(entry.details))
        details["columns"][0] |= change
        plan = json.loads(canonical_json(entry.plan))
        if "rows" in change:
            plan[0]["parameters"]["groups"]["north"]["rows"] = 3
        else:
            plan[0]["parameters"]["groups"]["north"]["where"] = change["where"]
        forged = Entry(**{**vars(entry), "details": details, "plan": plan})
        with pytest.raises(CertificateError, match="must promise and draw what its certificate counted on"):
            recheck("record", [forged])
        del details["bound"]  # as if 0.1.0 had written it
        with pytest.raises(CertificateError, match=r"columns\[0\]\.(rows|where): must be .*, as the policy plans it"):
            recheck("record", [Entry(**{**vars(entry), "details": details, "plan": plan})])


def test_groups_of_another_size_are_an_announced_failure(tmp_path: Path) -> None:
    sizes = {**POLICY["sizes"], "region = 'north'": 1199}  # `other` has one more by that
    with ap.Session(policy=place(tmp_path, sizes=sizes)) as session:
        for query in (BY_REGION, NORTH, f"avg(height), {NORTH}"):
            with pytest.raises(DataError) as caught:
                session.release(query)
            assert str(caught.value) == OTHER_SIZE
            assert caught.value.__context__ is None
        assert session.recorded() == ()


def test_a_filter_beside_all_rows(tmp_path: Path) -> None:
    frame = people().to_pandas()
    with ap.Session(policy=place(tmp_path)) as session:
        released = session.release(f"avg(weight), {NORTH}, avg(height) filter (where region = 'south')")
        assert len(released.values) == 3
        assert abs(released.values[2] - frame[frame["region"] == "south"]["height"].mean()) < 1


def test_groups_of_some_rows_and_groups_by_bins(tmp_path: Path) -> None:
    """Sizes are declared under the condition of the filter and of the group together."""
    frame = people().to_pandas()
    frame["visits"] = frame.index % 7
    frame["member"] = frame.index % 3 == 0
    few, many = "visits >= 0 and visits < 3", "visits >= 3 and visits <= 6"
    sizes = {
        "member = true": int(frame["member"].sum()),
        f"member = true and {few}": int((frame["member"] & (frame["visits"] < 3)).sum()),
        f"member = true and {many}": int((frame["member"] & (frame["visits"] >= 3)).sum()),
        "member = false": int((~frame["member"]).sum()),
    }
    path = place(tmp_path, sizes=sizes, categories={}, bins={"visits": [0, 3, 6]})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    with ap.Session(policy=path) as session:
        query = "SELECT visits, avg(height) FROM data WHERE member = true GROUP BY visits"
        first = session.release(query, spend=0.5)
        truth = frame[frame["member"]].groupby(frame["visits"] >= 3)["height"].mean()
        assert np.abs(np.array(first.values) - truth.to_numpy()).max() < 1
        second = session.release("SELECT member, avg(weight) FROM data GROUP BY member", spend=0.5)
        assert [value.group for value in second.answers[0].values] == ["true", "false"]
        assert recheck("record", session.recorded()).planned_again == 2


@pytest.mark.parametrize("command", ["plan", "release"])
def test_on_the_command_line(tmp_path: Path, command: str) -> None:
    path = place(tmp_path)
    said = CliRunner().invoke(app, [command, str(path), BY_REGION], env={"COLUMNS": "160"})
    assert said.exit_code == 0, said.output
    assert "gaussian" in said.output
    told = json.loads(CliRunner().invoke(app, [command, str(path), BY_REGION, "--json"]).stdout)
    if command == "release":
        assert "it's far" in said.output
        assert [one["group"] for one in told["answers"][0]["groups"]] == ["north", "south", "it's far", "other"]
    else:
        chosen = next(one for one in told if one.get("chosen"))
        assert chosen["parameters"]["groups"]["other"]["rows"] == 400


@pytest.mark.parametrize("mechanism", ["gaussian", "transport"])
def test_subsets_that_are_not_apart_in_the_table_are_a_failure(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a collation takes two texts for one another and nobody knew that: what counts is the table."""
    monkeypatch.setattr(overlap, "_coarse", str)
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE t (weight BIGINT, income BIGINT, w VARCHAR COLLATE noaccent)")
    connection.raw_sql(
        "INSERT INTO t SELECT 150 + i % 7, 60 + i % 5, CASE WHEN i < 1000 THEN 'oe' ELSE 'x' END FROM range(3000) r(i)"
    )
    wheres = ["w = 'oe'", "w = 'o\u00e9'"]
    sizes = dict.fromkeys(wheres, 1000)
    found = [connection.raw_sql(f"SELECT count(*) FROM t WHERE {one}").fetchall()[0][0] for one in wheres]
    assert found == [1000, 1000]
    told = {**POLICY, "sizes": sizes, "rows": 3000, "categories": {}}
    told = {key: value for key, value in told.items() if key not in ("data", "categories")}
    asked = [f"avg(weight) filter (where {one})" for one in wheres]
    with ap.Session(connection.table("t"), ap.Policy(**told), ledger=tmp_path / "x.ledger") as session:
        plan = session.plan(asked, mechanism)
        assert [(union.wheres, union.rows) for union in plan.unions] == [(tuple(wheres), 2000)]
        with pytest.raises(DataError, match="apart or one inside the other"):
            session.release(asked, mechanism)
        assert session.recorded() == ()


def test_how_subsets_lie_is_counted(tmp_path: Path) -> None:
    """Groups of a table: that they make up as many rows as they have; one inside another: that it adds none."""
    with ap.Session(policy=place(tmp_path)) as session:
        by_region = session.plan(BY_REGION, "gaussian")
        assert [len(union.wheres) for union in by_region.unions] == [4]
        assert by_region.unions[0].rows == N
        session.release(NORTH, "gaussian", spend=0.5)
        later = session.plan("avg(weight) filter (where region = 'south')", "gaussian", spend=0.5)
        assert [(union.wheres, union.rows) for union in later.unions] == [(("region = 'north'", "region = 'south'"), 2000)]


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Before anybody is asked to declare the size of its subsets."""
    with ap.Session(policy=place(tmp_path)) as session, pytest.raises(DataError, match="Got Region"):
        session.plan("avg(weight) filter (where Region = 'north')")
