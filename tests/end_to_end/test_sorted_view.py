"""From a policy to a model: a view in which a number with all values different shows public values near its own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.accounting import hash_chain as chain
from attrpriv.cli.app import app
from attrpriv.engines.view.sorted_rows import TOO_FAR
from attrpriv.errors import CertificateError, DataError, RefusedError
from attrpriv.policy.strict_yaml import dump_strict
from attrpriv.session.record import recheck

N = 6000
POLICY: dict[str, Any] = {
    "attrpriv": 1,
    "data": "people.parquet",
    "epsilon": 1.0,
    "delta": 1e-5,
    "protect": [{"secret": "columns(income, sex)"}],
    "reference": {
        "file": "census.parquet",
        "least_density": 1.0,
        "failure": 1e-9,
        "sorted": {"income": {"low": 0, "high": 100, "width": 4}},
    },
    "assume": {"kind": "channel", "information": {"explained": 0.01}, "shift": 0.02},
}


def rows(seed: int, n: int = N, steep: float = 0.0) -> pa.Table:
    """An income that is spread evenly, a column that goes along with it a little, and a label."""
    g = np.random.default_rng(seed)
    income = 100 * g.random(n) ** (1 + steep)
    sex = np.where(g.random(n) < 0.5, "F", "M")
    x = 0.003 * income + g.normal(size=n) + (sex == "F")
    return pa.table({"income": income, "sex": sex, "x": x, "label": (x + g.normal(size=n) > 0.5).astype(np.int64)})


def written(folder: Path, table: pa.Table | None = None, records: pa.Table | None = None, **changes: Any) -> Path:
    pq.write_table(rows(1) if table is None else table, folder / "people.parquet")
    pq.write_table(rows(2, 12_000) if records is None else records, folder / "census.parquet")
    (folder / "policy.yaml").write_text(dump_strict(POLICY | changes), encoding="utf-8")
    return folder / "policy.yaml"


def session(path: Path) -> ap.Session:
    return ap.Session(policy=ap.Policy.load(path))


def test_from_a_policy_to_a_model(tmp_path: Path) -> None:
    with session(written(tmp_path)) as opened:
        plan = opened.view(tmp_path / "view.parquet")
        answer = opened.release("avg(income), avg(x)")
        entries = opened.recorded()
    view = pq.read_table(tmp_path / "view.parquet")
    assert view.column_names == ["income", "sex", "x", "label"]
    assert view.num_rows == plan.rows > 1500
    own = set(rows(1)["income"].to_pylist())
    assert not own & set(view["income"].to_pylist())
    assert answer.answers[0].values[0].value == pytest.approx(50, abs=0.5)
    assert recheck("record", entries).releases == 0
    x, label = view["x"].to_numpy(), view["label"].to_numpy()
    slope = np.polyfit(view["income"].to_numpy(), x, 1)[0]
    assert slope == pytest.approx(0.003, abs=0.003)  # how the rest goes with the number is kept
    cut = np.mean([x[label == 1].mean(), x[label == 0].mean()])
    held = rows(3)
    right = np.mean((held["x"].to_numpy() > cut) == held["label"].to_numpy())
    assert right > 0.7


def test_the_command_line_says_how_much_it_covers(tmp_path: Path) -> None:
    path = written(tmp_path, release=["avg(x)"])
    for command in ("plan", "explain"):
        told = CliRunner().invoke(app, [command, str(path)])
        text = " ".join(told.stdout.split())
        assert told.exit_code == 0, told.stderr
        assert "the promise holds up to information" in text
        assert "mu " in text
        assert "nothing of it shows" not in text
        assert "reveal nothing about" not in text


FOUND = {**POLICY["reference"], "sorted": {"income": {"ends": "found", "breaks": [30]}}}
TELLING_LITTLE = {"kind": "channel", "information": {"explained": 0.0002}}


def telling_nothing(seed: int, n: int = N) -> pa.Table:
    """Rows of which no other column goes along with the number."""
    table, g = rows(seed, n), np.random.default_rng(seed + 100)
    made = {"income": table["income"], "sex": table["sex"], "x": g.normal(size=n), "label": g.integers(0, 2, n)}
    return pa.table(made)


def test_ends_are_found_on_public_records_alone(tmp_path: Path) -> None:
    """Another table of as many rows has the same ends; they are told, drawn with, recorded, and found again."""
    plans = []
    for name, seed in (("a", 1), ("b", 7)):
        (tmp_path / name).mkdir()
        path = written(
            tmp_path / name, telling_nothing(seed), telling_nothing(2, 12_000), reference=FOUND, assume=TELLING_LITTLE
        )
        with session(path) as opened:
            plans.append(opened.view(tmp_path / name / "view.parquet"))
            opened.release("avg(x)")
            assert recheck("record", opened.recorded()).releases == 0
        assert any("public records, which are not among the" in note for note in plans[-1].notes)
    assert plans[0].certificate.evidence == plans[1].certificate.evidence
    evidence = plans[0].certificate.evidence.to_json()
    assert 30.0 in evidence["edges"]
    assert evidence["chosen_by"] + evidence["counts"]["records"] == 12_000
    assert pq.read_table(tmp_path / "a" / "view.parquet").num_rows == plans[0].rows > 100


def test_the_table_is_not_its_own_reference_where_ends_are_found(tmp_path: Path) -> None:
    path = written(tmp_path, telling_nothing(1), telling_nothing(1), reference=FOUND, assume=TELLING_LITTLE)
    with session(path) as opened, pytest.raises(DataError, match="must be of other records"):
        opened.view(tmp_path / "view.parquet")


def test_ends_are_not_found_without_a_channel(tmp_path: Path) -> None:
    kept = {key: value for key, value in POLICY.items() if key != "assume"}
    path = written(tmp_path, reference=FOUND)
    path.write_text(dump_strict(kept | {"reference": FOUND}), encoding="utf-8")
    with session(path) as opened, pytest.raises(ap.AttrprivError, match="needs to know what rows may tell"):
        opened.view_plan()


def test_nothing_is_left_of_the_column_where_nothing_is_shown(tmp_path: Path) -> None:
    with session(written(tmp_path, reference={**POLICY["reference"], "show": "nothing"})) as opened:
        opened.view(tmp_path / "view.parquet")
        with pytest.raises(ap.AttrprivError, match="show: nothing"):
            opened.release("avg(income)")
    assert pq.read_table(tmp_path / "view.parquet").column_names == ["x", "label"]


def test_groups_of_the_number_need_bins(tmp_path: Path) -> None:
    asked = "select income, avg(x) from data group by income"
    with session(written(tmp_path)) as opened, pytest.raises(ap.AttrprivError):
        opened.release(asked)
    (tmp_path / "other").mkdir()
    with session(written(tmp_path / "other", bins={"income": [0, 50, 100]})) as opened:
        assert len(opened.release(asked).answers[0].values) == 2


def test_rows_that_moved_too_far_are_recorded_and_not_tried_again(tmp_path: Path) -> None:
    """A table whose rows lie at the ends of intervals, which the stated shift excludes."""
    table = rows(1)
    place = np.floor(table["income"].to_numpy() / 4) * 4
    path = written(tmp_path, table.set_column(0, "income", pa.array(place + 0.001)))
    with session(path) as opened:
        with pytest.raises(DataError) as caught:
            opened.view(tmp_path / "view.parquet")
        assert str(caught.value) == TOO_FAR
        assert [entry.kind for entry in opened.recorded()] == ["view"]
        assert opened.recorded()[0].plan["failed"] is True
    with session(path) as opened, pytest.raises(RefusedError, match="could not be drawn"):
        opened.view(tmp_path / "view.parquet")
    assert not (tmp_path / "view.parquet").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tax": lambda t: 0.3 * t["income"].to_numpy()}, "tax nearly tells income"),
        ({"step": lambda t: np.random.default_rng(5).normal(size=len(t)) + 3.0 * (t["income"].to_numpy() >= 50)}, "income 50"),
    ],
)
def test_public_records_refuse(more: dict[str, Callable[[pa.Table], Any]], message: str, tmp_path: Path) -> None:
    tables = []
    for table in (rows(1), rows(2, 40_000)):
        made = table
        for name, values in more.items():
            made = made.append_column(name, pa.array(values(table)))
        tables.append(made)
    with session(written(tmp_path, *tables)) as opened, pytest.raises(RefusedError, match=message):
        opened.view_plan()
    left_out = written(tmp_path, *tables, identifiers=list(more))
    with session(left_out) as opened:
        assert opened.view_plan().rows


def test_a_column_that_is_not_hidden_cannot_be_sorted(tmp_path: Path) -> None:
    path = written(tmp_path, protect=[{"secret": "columns(sex)"}])
    with session(path) as opened, pytest.raises(ap.PolicyError, match="must be one of the hidden columns"):
        opened.view_plan()


# What is recorded.


@cache
def drawn(folder: Path) -> Any:
    with session(written(folder)) as opened:
        opened.view(folder / "view.parquet")
        return opened.recorded()[0]


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return drawn(tmp_path_factory.mktemp("drawn"))


def proved(told: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = told["details"]["certificate"]["evidence"]
    return found


FORGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "rows that may move further": lambda told: told["plan"]["sorted"].update(most=1e9),
    "rows whose distance is not looked at": lambda told: told["plan"]["sorted"].update(most=None),
    "another number": lambda told: told["plan"]["sorted"].update(column="x"),
    "other ends": lambda told: told["plan"]["sorted"].update(edges=[0.0, 100.0]),
    "other ends in the proof": lambda told: proved(told).update(edges=[edge / 2 for edge in proved(told)["edges"]]),
    "nothing sorted": lambda told: told["plan"].pop("sorted"),
    "less information": lambda told: proved(told).update(information=proved(told)["information"] * 1e3),
    "a cell less": lambda told: told["plan"]["cells"].pop(),
    "a cell less in the proof": lambda told: proved(told)["counts"]["cells"].pop(),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_record_is_found(name: str, entry: Any) -> None:
    told = copy.deepcopy(entry.to_json())
    FORGED[name](told)
    said = {key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers", "details")}
    with pytest.raises(CertificateError, match=r"^record: entry 1: "):
        recheck("record", [chain.next_entry(chain.contents(**said), told["account"], None)])


def test_nothing_about_the_distance_is_recorded(entry: Any) -> None:
    assert set(entry.plan["sorted"]) == {"column", "edges", "most", "order", "slope"}
    evidence = proved(entry.to_json())
    assert entry.plan["sorted"]["most"] == evidence["displacement"]
