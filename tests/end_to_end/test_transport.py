"""Hide the mean income of this table, publish the average weight without what income tells of it: as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attrpriv import Gaussian, Policy, Secret, Session
from attrpriv.cli import app as app_module
from attrpriv.methods.transport import plan as gaussian_transport
from tests.end_to_end.material import NOON, Said, policy, write_policy, write_table
from tests.end_to_end.test_nothing_leaks import World, differences

ROWS = 800
ASSUME: dict[str, Any] = {
    "kind": "gaussian",
    "mean": {"income": 60_000, "age": 40},
    "sd": {"weight": 25, "height": 10, "income": 30_000, "age": 12},
    "correlation": {
        "weight~income": 0.3,
        "weight~age": 0.2,
        "income~age": 0.4,
        "weight~height": 0.5,
        "height~income": 0.2,
        "height~age": -0.1,
    },
    "tolerance": 0,
}
INCOME = {"secret": "mean(income)", "between": [20_000, 200_000]}
AGE = {"secret": "mean(age)", "between": [30, 60]}
SPACING = {"weight": 1, "height": 1, "income": 1, "age": 1}
TRANSPORT = ("--mechanism", "transport")


def stated(**changes: Any) -> dict[str, Any]:
    """A policy under which the clamp is the best there is: no mean of the weights is stated, so no other form applies."""
    return policy(**{"protect": [INCOME], "assume": ASSUME, "resolution": SPACING} | changes)


def people(seed: int = 1, *, income: float = 60_000.0, weight: float = 150.0, rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=rows)
    numbers = {
        "weight": weight + 25 * (0.3 * common + 0.95 * rng.normal(size=rows)),
        "height": 100 + 10 * rng.normal(size=rows),
        "income": income + 30_000 * common,
        "age": 40 + 12 * rng.normal(size=rows),
    }
    return pa.table({name: np.rint(values).astype(np.int64) for name, values in numbers.items()})


def place(folder: Path, table: pa.Table | None = None, **changes: Any) -> str:
    write_table(folder, people() if table is None else table)
    return str(write_policy(folder, stated(**changes)))


# ------------------------------------------------------------------------------------------------------- plan and release


def test_auto_chooses_it_and_nothing_is_drawn_twice(tmp_path: Path) -> None:
    path = place(tmp_path)
    entries = Said("plan", path, "--json").json
    chosen = next(entry for entry in entries if entry.get("chosen"))
    assert (chosen["mechanism"], chosen["guarantee"]["kind"]) == ("transport", "proved")
    assert (chosen["parameters"]["form"], chosen["parameters"]["reads"]) == ("clamped", ["income"])
    assert chosen["certificate"]["evidence"]["kind"] == "transport"
    assert [row["off_by"] for row in chosen["model_error"]] == [0.01, 0.02, 0.05, 0.1]
    answer = Said("release", path, "--json").json["answers"][0]
    assert answer["interval"]["low"] < answer["value"] < answer["interval"]["high"]
    again = Said("release", path, "--json")
    assert again.code == 3 or again.json["answers"][0]["value"] == answer["value"]


def test_a_plan_says_what_is_read_and_how_fragile_it_is(tmp_path: Path) -> None:
    said = Said("plan", place(tmp_path), *TRANSPORT)
    words = " ".join(said.out.split())
    assert said.code == 0
    assert "the average of income is read too" in words
    assert "1%" in words


@pytest.mark.parametrize(("income", "beyond"), [(60_000.0, 0), (90_000.0, 1), (30_000.0, -1)])
def test_near_the_centre_the_answer_is_the_tables_own_and_far_from_it_is_not(
    tmp_path: Path, income: float, beyond: int
) -> None:
    table = people(3, income=income)
    off = float(np.mean(table["income"])) - income
    table = table.set_column(2, "income", pa.array(np.rint(np.array(table["income"]) - off).astype(np.int64)))
    said = Said("release", place(tmp_path, table), *TRANSPORT, "--json").json
    found = said["plan"][0]["parameters"]
    y = found["slopes"][0] * (float(np.mean(table["income"])) - 60_000)
    taken = y - min(max(y, -found["reach"]), found["reach"])
    assert np.sign(taken) == beyond
    # The noise is the mask, 1/800; 37 of its standard deviations are not exceeded.
    assert said["answers"][0]["value"] == pytest.approx(float(np.mean(table["weight"])) - taken, abs=37 / ROWS)


def test_several_averages_and_several_secrets(tmp_path: Path) -> None:
    path = place(tmp_path, protect=[INCOME, AGE], release=["SELECT avg(weight), sum(weight), avg(height), count(*) FROM data"])
    released = Said("release", path, *TRANSPORT, "--json").json
    values = [answer["value"] for answer in released["answers"]]
    assert values[1] == pytest.approx(values[0] * ROWS, rel=1e-12)
    assert values[3] == ROWS
    assert released["plan"][0]["parameters"]["reads"] == ["income", "age"]


def test_a_filter_is_refused(tmp_path: Path) -> None:
    said = Said("plan", place(tmp_path), "SELECT avg(weight) FROM data WHERE income > 5", *TRANSPORT)
    assert said.code != 0


def test_python_spells_the_same(tmp_path: Path) -> None:
    assumed = Gaussian(**{key: value for key, value in ASSUME.items() if key != "kind"})
    spelt = Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[Secret("mean(income)", between=(20_000, 200_000))],
        assume=assumed,
        resolution=SPACING,
    )
    with Session(people(), spelt, ledger=tmp_path / "x.ledger") as session:
        released = session.release("avg(weight)", "transport")
        problem = session.problem("avg(weight)")
    low, high = released.interval(0.95)
    assert low < released.value < high
    assert released.plan.certificate.evidence == gaussian_transport.plan(problem).certificate.evidence


# ----------------------------------------------------------------------------------------------------------- nothing leaks

POOR, RICH = people(1, income=25_000.0, weight=120.0), people(2, income=190_000.0, weight=190.0)


def holes(table: pa.Table, column: str, share: float) -> pa.Table:
    values: list[Any] = table.column(column).to_pylist()
    for row in np.random.default_rng(7).permutation(ROWS)[: round(share * ROWS)]:
        values[row] = None
    return table.set_column(table.column_names.index(column), column, pa.array(values, pa.int64()))


WORLDS: dict[str, World] = {
    "clamp": World(stated(), POOR, RICH, TRANSPORT, commands=(("check",), ("plan",), ("explain",))),
    "two secrets": World(stated(protect=[INCOME, AGE]), POOR, RICH, TRANSPORT),
    "two averages": World(stated(release=["SELECT avg(weight), avg(height) FROM data"]), POOR, RICH, TRANSPORT),
    "stairs": World(stated(protect=[{"secret": "mean(income)", "within": 3000}]), POOR, RICH, TRANSPORT),
    "combination": World(
        stated(protect=[{"secret": "mean(income - 2 * age)", "between": [20_000, 200_000]}]), POOR, RICH, TRANSPORT
    ),
    "itself": World(stated(release=["avg(income)"]), POOR, RICH, TRANSPORT),
    "csv": World(stated(data="students.csv", rows=ROWS), POOR, RICH, TRANSPORT),
    "missing": World(stated(missing={"income": 60_000}), holes(POOR, "income", 0.01), holes(RICH, "income", 0.5), TRANSPORT),
    "missing, announced": World(stated(), holes(POOR, "income", 0.01), holes(RICH, "weight", 0.5), TRANSPORT, answered=False),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app_module, "clock", lambda: NOON)
    return tmp_path


@pytest.mark.parametrize("name", list(WORLDS))
def test_nothing_but_the_value_differs(name: str, here: Path) -> None:
    assert differences(WORLDS[name], here) == []


def test_a_centre_from_the_data_would_be_seen(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: a plan that is centred where this table's mean is."""
    import pyarrow.parquet as pq

    real = gaussian_transport.plan

    def planted(problem: Any) -> Any:
        centre = float(np.mean(pq.read_table("students.parquet").column("income").to_numpy()))
        moved = [{**member.to_json(), "mean": {**member.mean, "income": centre}} for member in problem.theta]
        theta = tuple(type(member).from_json(told) for member, told in zip(problem.theta, moved, strict=True))
        return real(problem.model_copy(update={"theta": theta}))

    monkeypatch.setattr(gaussian_transport, "plan", planted)
    assert differences(WORLDS["clamp"], here) != []
