"""What the end-to-end tests share: a small school, its policy, and ways to run a command and to look at a directory."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from typer.testing import CliRunner

import attrpriv as package
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cli.app import app
from attrpriv.methods import table
from attrpriv.methods.base.evidence import Evidence
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import dump_strict
from attrpriv.problem.assumption import Assumption

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


def gaussians_of(policy: Policy) -> tuple[Gaussian, ...]:
    """The assumptions of a policy, all of them Gaussian."""
    found = tuple(member for member in policy.assume if isinstance(member, Gaussian))
    assert len(found) == len(policy.assume)
    return found


@contextmanager
def own_methods() -> Iterator[None]:
    """What is registered inside is forgotten afterwards: methods, and kinds of evidence and assumptions from outside."""
    kept: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (known, dict(known)) for known in (table._REGISTERED, Evidence.kinds, Assumption.kinds)
    ]
    yield
    for known, before in kept:
        for name in [name for name, one in known.items() if name not in before and not _ours(one)]:
            del known[name]


def _ours(one: Any) -> bool:
    return str(getattr(one, "__module__", "")).startswith("attrpriv.") and isinstance(one, type)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, in which a process elsewhere finds the package under test."""
    source = str(Path(package.__file__).resolve().parents[1])
    paths = [source, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **changes}


def attrpriv(*arguments: str | Path, folder: Path, first: str = "", **changes: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a user does: in its own process, into pipes; `first` is Python to run before."""
    code = f"import sys; sys.argv[0] = 'attrpriv'\nimport attrpriv.cli.app as app\n{first}\napp.main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment(**changes), capture_output=True, timeout=120, check=False)


class Said:
    """What one command, run in this process, printed; and its exit code."""

    def __init__(self, *arguments: str) -> None:
        done = CliRunner().invoke(app, list(arguments))
        self.out, self.err, self.code = done.stdout, done.stderr, done.exit_code
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on stderr."""
        assert self.err.startswith("attrpriv: ")
        assert self.err.endswith("\n")
        assert self.err[:-1].isprintable()
        return self.err[10:-1]
