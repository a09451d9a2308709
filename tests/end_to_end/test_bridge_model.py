"""The example with a model of diffprivlib and a histogram of OpenDP runs, and its ledger holds both."""

from __future__ import annotations

from pathlib import Path

import pytest

import attrpriv as ap
from examples.bridge import model


def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("diffprivlib.models", reason="diffprivlib is not installed")
    model.main(["--ledger", str(tmp_path / "patients.ledger")])
    told = capsys.readouterr().out
    assert "left for counts: 0.250 of the budget" in told
    assert "['outside', 'outside', 'release']" in told


def test_what_the_libraries_spend_and_the_count_add_up_to_epsilon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without diffprivlib: the same ledger. A fourth for OpenDP, half for the model, a fourth for the count."""
    monkeypatch.setattr(model, "trained", lambda table, epsilon: 0.5)
    model.main(["--ledger", str(tmp_path / "patients.ledger")])
    assert "left for counts: 0.250 of the budget" in capsys.readouterr().out
    with ap.Session(model.patients(), model.hidden(), ledger=tmp_path / "patients.ledger") as session:
        assert session.left == pytest.approx(0, abs=1e-6)
        with pytest.raises(ap.errors.AttrprivError):
            session.record_outside(b=0.01, what="one more")
