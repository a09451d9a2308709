"""What the end-to-end tests share: a small school, its policy, and ways to run a command and to look at a directory."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from attrpriv.policy.strict_yaml import dump_strict

ROWS = 400
NOON = datetime(2024, 5, 6, 12, 0, 0, tzinfo=UTC)

POLICY: Mapping[str, Any] = {
    "attrpriv": 1,
    "data": "students.parquet",
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"secret": "mean(income)", "between": [20_000, 200_000], "within": 1000}],
    "assume": {
        "kind": "gaussian",
        "mean": {"income": 60_000},
        "sd": {"weight": 25, "income": 30_000},
        "correlation": {"weight~income": 0.3},
        "tolerance": {"mean": 0.01, "sd": 0.02, "slope": 0.05},
    },
    "resolution": {"weight": 1, "income": 1},
    "release": ["avg(weight)"],
}


def policy(*drop: str, **changes: Any) -> dict[str, Any]:
    """The school's policy with some of its keys changed or dropped."""
    made = {**copy.deepcopy(dict(POLICY)), **changes}
    return {key: value for key, value in made.items() if key not in drop}


def assume(*drop: str, **changes: Any) -> dict[str, Any]:
    """The policy's assumption with some of its keys changed or dropped."""
    made = {**copy.deepcopy(POLICY["assume"]), **changes}
    return {key: value for key, value in made.items() if key not in drop}


def write_policy(folder: Path, text: Mapping[str, Any] | str | None = None, name: str = "students.yaml") -> Path:
    """Write a policy file and return its path."""
    path = folder / name
    path.write_text(text if isinstance(text, str) else dump_strict(dict(text or POLICY)), encoding="utf-8")
    return path


def students(rows: int = ROWS, seed: int = 1, *, weight: float = 150.0, income: float = 60_000.0) -> pa.Table:
    """Students whose weights and family incomes are whole numbers around these means."""
    generator = np.random.default_rng(seed)
    common = generator.normal(size=rows)
    own = generator.normal(size=rows)
    heavy = np.rint(weight + 25 * (0.3 * common + 0.95 * own)).astype(np.int64)
    rich = np.rint(income + 30_000 * common).astype(np.int64)
    gender = np.where(generator.random(rows) < 0.5, "F", "M")
    return pa.table({"weight": heavy, "income": rich, "gender": gender})


def write_table(folder: Path, table: pa.Table | None = None, name: str = "students.parquet") -> Path:
    """Write a table as Parquet or CSV, by the ending of its name."""
    path = folder / name
    made = students() if table is None else table
    if name.endswith(".csv"):
        pyarrow.csv.write_csv(made, path, pyarrow.csv.WriteOptions(quoting_style="needed"))
    else:
        pq.write_table(made, path)
    return path


def school(folder: Path, **changes: Any) -> Path:
    """A table and its policy in a folder; the path of the policy."""
    write_table(folder)
    return write_policy(folder, policy(**changes))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def attrpriv(*arguments: str | Path, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does: in its own process, into pipes."""
    code = "import sys; sys.argv[0] = 'attrpriv'; from attrpriv.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
