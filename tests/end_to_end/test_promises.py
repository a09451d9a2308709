"""Promises that hide nothing, or little, as a user meets them: refused or warned of by every command, in JSON and in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.errors import PolicyError
from tests.end_to_end.material import Said, contents, policy, school, write_policy

DELTA = "weak promise: delta 0.01 is above 1/n, 0.0025: in up to one of 100 tables anything may show. Take one far below 1/n."
RANGE = "weak promise: mean(income): the assumption gives its range"
# The mean is assumed to be 60,000, and its standard error is 1,500: 30 of them lie between.
FAR = [{"secret": "mean(income)", "between": [105_000, 120_000]}]


def texts(value: Any) -> Iterator[str]:
    """Every text in a JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


@pytest.mark.parametrize(("changes", "said"), [({"delta": 0.01}, DELTA), ({"protect": FAR}, RANGE)])
def test_a_weak_promise_is_seen_wherever_a_plan_is(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = str(school(tmp_path, **changes))
    for command in ("check", "plan", "explain", "release"):
        shown = Said(command, path)
        assert shown.code == 0
        assert said in " ".join(shown.out.split())
        told = Said(command, path, "--json")  # a release is told again
        assert any(text.startswith(said) for text in texts(told.json))
    with ap.Session(policy=path) as session:
        released = session.release()
        assert any(line.startswith(said) for line in released.plan.warnings)
        assert f"<b>warning</b> {said[:20]}" in released._repr_html_()
    assert said not in Said("plan", str(school(tmp_path, ledger="other.ledger"))).out


NARROW = [{"secret": "share(gender = 'F')", "between": [0.332, 0.334]}]


def wards(folder: Path, **changes: Any) -> Path:
    """300 rows, of which 100 are of women: the only composition between 33.2% and 33.4%."""
    pq.write_table(pa.table({"gender": ["F"] * 100 + ["M"] * 200, "weight": range(300)}), folder / "students.parquet")
    return write_policy(folder, policy("assume", "delta", "resolution", protect=NARROW, **changes))


def test_a_view_that_would_be_the_table_is_refused_by_every_command(tmp_path: Path) -> None:
    path = str(wards(tmp_path))
    before = contents(tmp_path)
    for command in (["check"], ["plan"], ["explain"], ["release"], ["view", "--out", str(tmp_path / "rows.parquet")]):
        said = Said(command[0], path, *command[1:])
        assert said.code == 2
        assert said.complaint.startswith("protect: share(gender = 'F'): its range holds a single count of 300 rows, 100;")
        assert said.complaint.endswith("there is nothing to hide. Widen it.")
    with ap.Session(policy=path) as session:
        for use in (session.view, session.view_plan, session.plan, session.release):
            with pytest.raises(PolicyError, match="there is nothing to hide"):
                use()
    assert contents(tmp_path) == before


def test_check_looks_at_the_promise_where_no_query_is_named(tmp_path: Path) -> None:
    path = str(wards(tmp_path, release=[]))
    assert "there is nothing to hide" in Said("check", path).complaint
    assert DELTA in Said("check", str(school(tmp_path, release=[], delta=0.01))).out
    strong = Said("check", str(school(tmp_path, release=[])))
    assert strong.code == 0
    assert "weak promise" not in strong.out
    (tmp_path / "students.parquet").unlink()
    unseen = Said("check", str(write_policy(tmp_path, policy(release=[]))))
    assert unseen.code == 0
    assert "What is hidden was not checked." in unseen.out


def test_a_view_of_a_population_says_that_delta_is_large(tmp_path: Path) -> None:
    wards(tmp_path)
    hidden = [{"parameter": "share(gender = 'F')", "between": [0.2, 0.4]}]
    path = str(write_policy(tmp_path, policy("assume", "resolution", protect=hidden, delta=0.01)))
    out = ["--out", str(tmp_path / "rows.parquet"), "--force"]
    assert "warning weak promise: delta 0.01 is above 1/n" in Said("view", path, *out).out
    assert any(text.startswith("weak promise: delta") for text in texts(Said("view", path, *out, "--json").json))
    assert "weak promise: delta 0.01 is above 1/n" in Said("explain", path).out


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"protect": [{"secret": "mean(income)", "within": 0.002}]}, "within: no two values of mean(income) are this close"),
        ({"delta": 0.5}, "delta: must be below 0.5"),
        ({"delta": 0.99}, "delta: must be below 0.5"),
    ],
)
def test_what_hides_nothing_is_refused_by_every_command(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = str(school(tmp_path, **changes))
    for command in ("check", "plan", "explain", "release"):
        found = Said(command, path)
        assert found.code == 2
        assert said in found.complaint
    assert not (tmp_path / "students.ledger").exists()
