"""The school: the same students for everyone, drawn from the law its policy assumes, and an honest comparison."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.demo import run_demo, write_students
from attrpriv.demo.school import students_policy
from attrpriv.errors import UsageError
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import load_strict
from tests.end_to_end.material import gaussians_of

ROOT = Path(__file__).resolve().parents[3]


def test_everyone_sees_the_same_students(tmp_path: Path) -> None:
    write_students(tmp_path / "a.parquet")
    write_students(tmp_path / "b.parquet")
    one, other = pq.read_table(tmp_path / "a.parquet"), pq.read_table(tmp_path / "b.parquet")
    assert one.equals(other)
    assert one.num_rows == 10_000
    kinds = {name: one.schema.field(name).type for name in one.column_names}
    assert kinds == {**dict.fromkeys(["weight", "income", "sat", "height"], pa.int64()), "gender": pa.string()}
    assert set(one.column("gender").to_pylist()) == {"F", "M"}


def test_another_seed_and_size(tmp_path: Path) -> None:
    write_students(tmp_path / "a.parquet", n=50, seed=1)
    write_students(tmp_path / "b.parquet", n=50, seed=2)
    one, other = pq.read_table(tmp_path / "a.parquet"), pq.read_table(tmp_path / "b.parquet")
    assert one.num_rows == other.num_rows == 50
    assert not one.equals(other)


def test_the_students_follow_the_law_that_the_policy_assumes(tmp_path: Path) -> None:
    """To within five standard errors of 200,000 rows; whole numbers add 1/12 to a variance, which is less."""
    n = 200_000
    write_students(tmp_path / "a.parquet", n=n, seed=4)
    table = pq.read_table(tmp_path / "a.parquet")
    (gaussian,) = gaussians_of(Policy.checked(load_strict(students_policy())))
    values = {name: table.column(name).to_numpy().astype(float) for name in gaussian.columns}
    for name, column in values.items():
        assert column.std() == pytest.approx(gaussian.sd_of(name), rel=5 / np.sqrt(2 * n))
        if name in gaussian.mean:
            assert abs(column.mean() - gaussian.mean[name]) < 5 * gaussian.sd_of(name) / np.sqrt(n)
    found = np.corrcoef(values["weight"], values["income"])[0, 1]
    assert abs(found - gaussian.correlation_of("weight", "income")) < 5 / np.sqrt(n)


def test_the_policy_is_the_issue_s() -> None:
    policy = Policy.checked(load_strict(students_policy()))
    assert (policy.rows, policy.epsilon) == (10_000, 1.0)
    assert policy.protect[0].within == 1000
    tolerance = gaussians_of(policy)[0].tolerance
    assert (tolerance.mean, tolerance.sd, tolerance.slope) == (0.01, 0.02, 0.05)


def test_the_example_shows_the_same_policy() -> None:
    example = ROOT / "examples" / "students" / "students.yaml"
    if not example.exists():
        pytest.skip("the examples are not part of an installation")
    assert load_strict(example.read_text(encoding="utf-8")) == load_strict(students_policy())


def test_the_demo_compares_and_releases(tmp_path: Path) -> None:
    shown = run_demo(tmp_path / "school")
    errors = {row.label: row.plan.error.rmse for row in shown.rows}
    ours = [row for row in shown.rows if row.ours]
    assert len(ours) == 1
    assert ours[0].plan.to_json() == shown.release.plan.to_json()
    best = ours[0].plan.error.rmse
    assert best is not None
    assert all(error is not None and error > best for label, error in errors.items() if label != ours[0].label)
    assert {row.plan.mechanism for row in shown.rows} == {"group_dp", "gaussian", "transport"}
    assert len(shown.rows) == len(errors) >= 3
    assert sorted(path.name for path in (tmp_path / "school").iterdir()) == [
        "students.ledger",
        "students.parquet",
        "students.yaml",
    ]
    document = json.loads(json.dumps(shown.to_json(), allow_nan=False))
    assert [row["label"] for row in document["compared"]] == [row.label for row in shown.rows]
    assert document["release"]["answers"][0]["value"] == shown.release.value


def test_the_noise_has_no_seed_and_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    values = {run_demo().release.value for _ in range(2)}
    assert len(values) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_existing_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "school").mkdir()
    for place in (tmp_path / "school", tmp_path / "file" / "below"):
        (tmp_path / "file").touch()
        with pytest.raises(UsageError, match=r"^dir: must be a new directory that can be made\. Got "):
            run_demo(place)
    assert list((tmp_path / "school").iterdir()) == []
