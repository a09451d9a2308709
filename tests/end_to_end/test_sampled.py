"""A regression, a variance and a median by simulated laws: from the policy's opt-in to the ledger, told and checked again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.accounting.chain import Entry, canonical_json
from attrpriv.cli.app import app
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.policy.strict_yaml import dump_strict
from attrpriv.record import recheck

N = 1_000
SLOPE = "regr_slope(weight, height)"
POLICY: Mapping[str, Any] = {
    "attrpriv": 1,
    "data": "t.parquet",
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"secret": "mean(income)", "between": [55, 65]}],
    "assume": {
        "kind": "gaussian",
        "mean": {"income": 60, "weight": 150, "height": 68},
        "sd": {"weight": 25, "height": 4, "income": 30},
        "correlation": {"weight~income": 0.3, "height~income": 0.2, "weight~height": 0.5},
        "tolerance": 0,
    },
    "sampled": {"runs": 3000},
}


def place(folder: Path, **changes: Any) -> Path:
    rng = np.random.default_rng(2)
    income, height = rng.normal(60, 30, N), rng.normal(68, 4, N)
    weight = 150 + 3 * (height - 68) + rng.normal(0, 22, N)
    pq.write_table(pa.table({"income": income, "weight": weight, "height": height}), folder / "t.parquet")
    path = folder / "p.yaml"
    told = {key: value for key, value in {**POLICY, **changes}.items() if value is not None}
    path.write_text(dump_strict(told), encoding="utf-8")
    return path


def said(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "240"})
    return done.exit_code, " ".join(done.output.split())


SLOW = ["var_pop(weight)", "covar_pop(weight, height)", "regr_intercept(weight, height)"]


@pytest.mark.parametrize("query", [SLOPE, "median(weight)", *(pytest.param(text, marks=pytest.mark.slow) for text in SLOW)])
def test_a_release_is_near_the_exact_value_and_stands_alone(tmp_path: Path, query: str) -> None:
    frame = place(tmp_path).parent / "t.parquet"
    table = pq.read_table(frame).to_pandas()
    slope = float(np.cov(table["weight"], table["height"])[0, 1] / table["height"].var())
    exact = {
        SLOPE: slope,
        "var_pop(weight)": float(table["weight"].var(ddof=0)),
        "covar_pop(weight, height)": float(np.cov(table["weight"], table["height"], ddof=0)[0, 1]),
        "regr_intercept(weight, height)": float(table["weight"].mean() - slope * table["height"].mean()),
        "median(weight)": float(np.sort(table["weight"])[N // 2 - 1]),
    }[query]
    with ap.Session(policy=tmp_path / "p.yaml") as session:
        plan = session.plan(query)
        released = session.release(query)
        assert released.plan == plan
        assert plan.mechanism == "gaussian_approximation"
        assert abs(released.value - exact) < 7 * plan.noise.scale  # false alarm 3e-12
        low, high = released.interval(0.95)
        assert high - low == pytest.approx(2 * 1.96 * plan.noise.scale, rel=1e-3)
        assert plan.left == 0
        with pytest.raises(RefusedError):
            session.release("avg(weight)")
        assert session.release(query).value == released.value  # the recorded answer, again
        entries = session.recorded()
    assert recheck("t.ledger", entries).to_json()["planned_again"] == 1


def test_less_noise_than_the_simulation_asks_for_is_found_when_it_is_made_again(tmp_path: Path) -> None:
    """Whoever writes a record anew, with numbers that fit one another, cannot say that the simulation gave others."""
    wide = [{"secret": "mean(income)", "between": [20, 200]}]
    with ap.Session(policy=place(tmp_path, protect=wide)) as session:
        scale = session.release("regr_intercept(weight, height)").plan.noise.scale
        (entry,) = session.recorded()
    assert recheck("record", [entry]).planned_again == 1
    text = canonical_json({"details": entry.details, "plan": entry.plan})
    halved = json.loads(text.replace(json.dumps(scale), json.dumps(scale / 2)))
    for told in (halved["plan"][0]["certificate"], halved["details"].get("certificate", {})):
        for check in told.get("evidence", {}).get("checks", ()):
            check |= {"gap": check["gap"] / 4, "spread": check["spread"] / 8}
    forged = Entry(**{**vars(entry), **halved})
    with pytest.raises(CertificateError, match=r"columns\[0\]\.noise\.scale: must be .*, as the policy plans it"):
        recheck("record", [forged])


def test_without_the_opt_in_nothing_is_planned_and_the_line_to_add_is_named(tmp_path: Path) -> None:
    path = place(tmp_path, sampled=None)
    code, text = said("plan", path, SLOPE, "--mechanism", "gaussian_approximation")
    assert code == 3
    assert "sampled: {runs: 100000, confidence: 0.999999}" in text
    assert said("plan", path, SLOPE)[0] == 3


def test_commands_show_the_kind_and_its_confidence(tmp_path: Path) -> None:
    path = place(tmp_path, release=[SLOPE])
    for command in ("plan", "explain", "check", "release"):
        code, text = said(command, path)
        assert code == 0, text
        assert "sampled, confidence 0.999999" in text, command
        assert "fragile: epsilon 1 rests on rows without any skewness" in text
    code, text = said("check", path)
    assert "covered by simulation" in text or "recorded" in text


def test_json_has_the_kind_and_its_confidence(tmp_path: Path) -> None:
    path = place(tmp_path, release=[SLOPE])
    code, text = said("plan", path, "--json")
    assert code == 0
    chosen = next(entry for entry in json.loads(text) if entry.get("chosen"))
    assert (chosen["guarantee"]["kind"], chosen["guarantee"]["confidence"]) == ("sampled", 0.999999)
    assert chosen["certificate"]["evidence"]["runs"] == 3000
    assert [row["off_by"] for row in chosen["model_error"]] == [0.01, 0.02, 0.05, 0.1]


def test_a_policy_does_not_take_other_runs_once_something_is_released(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path)) as session:
        session.release(SLOPE)
    place(tmp_path, sampled={"runs": 4000})
    with ap.Session(policy=tmp_path / "p.yaml") as session, pytest.raises(RefusedError, match="sampled: must stay"):
        session.release("var_pop(weight)")
