"""`attrpriv view --split train=80%,test=20%`: the parts as they are written, and what was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from attrpriv.engines.view.file import part_files
from attrpriv.errors import UsageError
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.view.split import split_view


@dataclass(frozen=True)
class WrittenView:
    """What was written: one file, or one for each part, each with its number of rows."""

    plan: ViewPlan
    out: Path
    files: Mapping[str, tuple[Path, int]]

    def to_json(self) -> dict[str, Any]:
        told = {"schema_version": 1, "out": str(self.out), "rows": self.plan.rows, "plan": self.plan.to_json()}
        parts = {name: {"out": str(file), "rows": rows} for name, (file, rows) in self.files.items()}
        return {**told, "parts": parts} if parts else told

    def __str__(self) -> str:
        if not self.files:
            return f"wrote {self.plan.rows:,} of {self.plan.n:,} rows to {self.out.name}."
        parts = ", ".join(f"{rows:,} to {file.name}" for file, rows in self.files.values())
        return f"wrote {self.plan.rows:,} of {self.plan.n:,} rows, no row twice: {parts}."


def read_parts(text: str) -> dict[str, Fraction]:
    """The parts and their shares; UsageError where the text is not of this form."""
    found: dict[str, Fraction] = {}
    for part in text.split(","):
        name, _, share = (piece.strip() for piece in part.partition("="))
        if name in found:
            raise UsageError(f"split: must name each part once. Got {name!r} twice.")
        found[name] = _share(share)
    return found


def _share(text: str) -> Fraction:
    number, hundred = (text[:-1], 100) if text.endswith("%") else (text, 1)
    try:
        return Fraction(number.strip()) / hundred
    except (ValueError, ZeroDivisionError):
        pass
    raise UsageError(f"split: must be parts with their shares, as in train=80%,test=20%. Got {text!r} for a share.")


def written_view(plan: ViewPlan, out: Path, shares: Mapping[str, Fraction] | None) -> WrittenView:
    if shares is None:
        return WrittenView(plan, out, {})
    split = split_view(plan, shares)
    files = part_files(out, split.names)
    return WrittenView(plan, out, {name: (files[name], rows) for name, rows in split.rows.items()})
