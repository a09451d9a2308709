"""`attrpriv audit`: words, JSON, exit codes; no row of the table is read, and none is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from attrpriv.audit.release import run as audit_run
from attrpriv.cli.app import app
from tests.end_to_end.material import policy, write_policy

SMALL: dict[str, Any] = {"draws": 300, "tables": 300, "released": 150, "recorded": 300}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer draws: what the command shows is tried here, and what an audit finds elsewhere."""
    real: Any = audit_run.audit_release
    monkeypatch.setattr("attrpriv.cli.audit.audit_release", lambda *given, **named: real(*given, **named, **SMALL))


def audit(folder: Path, *more: str) -> Any:
    path = write_policy(folder, policy(rows=400))  # the table itself is not there
    return CliRunner().invoke(app, ["audit", str(path), "--pair", "60000:61000", "--mechanism", "gaussian", *more])


def test_it_says_what_was_tried_and_what_was_not_seen(tmp_path: Path) -> None:
    result = audit(tmp_path)
    assert result.exit_code == 0
    for words in ("as released", "promised at most", "nothing", "What it would not have seen", "No row of the table"):
        assert words in result.stdout


def test_json_is_one_document(tmp_path: Path) -> None:
    told = json.loads(audit(tmp_path, "--json").stdout)
    assert [one["experiment"] for one in told["tried"]] == ["noise", "before the noise", "as released"]
    assert all(not one["broken"] for one in told["tried"])


def test_a_broken_promise_ends_with_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attrpriv.methods.base import evidence

    monkeypatch.setattr(evidence.Evidence, "noised", lambda self, columns, averages, hidden=None: list(averages))
    result = audit(tmp_path)
    assert result.exit_code == 1
    assert "broken" in result.stdout


def test_a_pair_that_is_none_is_bad_usage(tmp_path: Path) -> None:
    result = audit(tmp_path, "--pair", "36")
    assert result.exit_code == 2
    assert "pair: must be two values" in result.stderr
