"""Why the public records behind a fitted assumption are no normal rows (`assumptions.shape` has the verdicts)."""

from __future__ import annotations

from attrpriv.assumptions.shape import faults
from attrpriv.problem.problem import Problem


def row_faults(problem: Problem) -> tuple[str, ...]:
    """Why the records behind a fitted assumption are no normal rows, for what this problem reads and hides."""
    hidden = tuple(dict.fromkeys(column for secret in problem.secrets for column in secret.columns))
    records = [member.fit_record() for member in problem.theta if member.normal_rows]
    shapes = [record.shape for record in records if record is not None and record.shape is not None]
    return tuple(dict.fromkeys(line for shape in shapes for line in faults(shape, problem.read_columns, hidden)))
