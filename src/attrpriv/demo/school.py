"""The paper's school, end to end: make the students, compare five ways to publish their average weight, release it.

The generator draws rows from exactly the law that the policy assumes, with weights and incomes recorded as whole numbers. Its
seed is fixed so that everyone sees the same students; the noise of the release never has a seed.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from attrpriv.errors import UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.policy import Policy
from attrpriv.session.release import Release
from attrpriv.session.session import Session

_MEANS = (150.0, 60_000.0, 1050.0, 66.0)
_SDS = (25.0, 30_000.0, 200.0, 4.0)
_CORRELATIONS = ((1.0, 0.3, 0.1, 0.5), (0.3, 1.0, 0.4, 0.1), (0.1, 0.4, 1.0, 0.0), (0.5, 0.1, 0.0, 1.0))


@dataclass(frozen=True)
class DemoRow:
    """One way to publish the number."""

    label: str
    plan: Plan
    ours: bool = False


@dataclass(frozen=True)
class Demo:
    """What the demo shows."""

    title: str
    story: tuple[str, ...]
    rows: tuple[DemoRow, ...]
    release: Release
    closing: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        compared = [{"label": row.label, **row.plan.entries(chosen=row.ours)[0]} for row in self.rows]
        return {"schema_version": 1, "compared": compared, "release": self.release.to_json()}


def write_students(path: Path, n: int = 10_000, seed: int = 2009) -> None:
    """Write a table of students: weight (lb), income (of the family), sat, height (in), gender. All synthetic."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(seed)
    sds = np.array(_SDS)
    covariance = np.array(_CORRELATIONS) * np.outer(sds, sds)
    rows = np.rint(generator.multivariate_normal(np.array(_MEANS), covariance, size=n)).astype(np.int64)
    taller = generator.random(n) < 1 / (1 + np.exp(-(rows[:, 3] - 66.0) / 2))
    columns = {name: rows[:, k] for k, name in enumerate(("weight", "income", "sat", "height"))}
    pq.write_table(pa.table({**columns, "gender": np.where(taller, "M", "F")}), path)


def students_policy() -> str:
    """The text of the demo's policy file."""
    return resources.files("attrpriv.demo").joinpath("students.yaml").read_text(encoding="utf-8")


def run_demo(directory: Path | None = None) -> Demo:
    """Make the table and the policy, compare, and release once."""
    if directory is not None:
        return _run_in(_new_directory(directory), kept=True)
    with tempfile.TemporaryDirectory(prefix="attrpriv-demo-") as place:
        return _run_in(Path(place), kept=False)


def _new_directory(directory: Path) -> Path:
    made = False
    try:
        directory.mkdir(parents=True)
        made = True
    except OSError:
        pass
    if not made:
        raise UsageError(f"dir: must be a new directory that can be made. Got {str(directory)!r}.")
    return directory


def _run_in(place: Path, *, kept: bool) -> Demo:
    write_students(place / "students.parquet")
    (place / "students.yaml").write_text(students_policy(), encoding="utf-8")
    policy = Policy.load(place / "students.yaml")
    with Session(policy=policy) as session:
        rows = _compare(session)
        release = session.release()
    return Demo(
        title="A school of 10,000 students publishes their average weight and hides their families' mean income.",
        story=(
            "Weight and income are correlated, so an exact average would tell something about the mean income.",
            f"To hide: {policy.protect[0]}; at epsilon {policy.epsilon:g}, delta {policy.delta:g}.",
        ),
        rows=rows,
        release=release,
        closing=_closing(place, kept),
    )


def _compare(session: Session) -> tuple[DemoRow, ...]:
    problem = session.problem()
    whole = problem.secrets[0].model_copy(update={"within": None})
    classical = problem.model_copy(update={"calibration": "classical"})
    return (
        DemoRow("group differential privacy", plan(problem, "group_dp")),
        DemoRow(
            "the paper: classical calibration, whole range",
            plan(classical.model_copy(update={"secrets": (whole,)}), "gaussian"),
        ),
        DemoRow("the paper: classical calibration, same pairs as ours", plan(classical, "gaussian")),
        DemoRow("attrpriv: exact calibration", plan(problem, "gaussian")),
        DemoRow("attrpriv: transport, which reads the secret to hide it", plan(problem), ours=True),
    )


def _closing(place: Path, kept: bool) -> tuple[str, ...]:
    if not kept:
        return ("Keep the table and the policy to play with: attrpriv demo --dir school",)
    return (
        f"In {place.name}: students.parquet, students.yaml and students.ledger.",
        f"A second release is refused: attrpriv release {place.name}/students.yaml",
    )
