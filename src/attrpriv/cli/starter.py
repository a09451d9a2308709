"""A starter policy for a table: its column names and types, with the decisions left to the owner. No statistic is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import DataError, UsageError

_NUMBERS = ("integer", "boolean", "decimal", "float")


@dataclass(frozen=True)
class Starter:
    """What was written, and where."""

    path: Path
    text: str
    sniffed: bool

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": 1, "path": str(self.path), "policy": self.text, "types_by_sample": self.sniffed}


def write_starter(data: Path, out: Path | None, force: bool) -> Starter:
    """Write the starter policy beside the table, or where told."""
    source = open_table(data)
    path = data.with_suffix(".yaml") if out is None else out
    if path.exists() and not force:
        raise UsageError(f"out: {path.name} exists already. Use --force to overwrite it, or --out to write elsewhere.")
    text = starter_text(source, data, path)
    failed = False
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        failed = True
    if failed:
        raise UsageError(f"out: must be a place that can be written. Got {str(path)!r}.")
    return Starter(path, text, sniffed=source.rows is None)


def starter_text(source: Source, data: Path, path: Path) -> str:
    """The policy's text. Two numeric columns are named as an example; every number in it is to be decided by the owner."""
    numeric = [name for name, kind in source.columns.items() if kind in _NUMBERS]
    if len(numeric) < 2:
        raise DataError(f"data: a policy needs two numeric columns, one to hide and one to publish. Got {len(numeric)}.")
    hidden, published = numeric[-1], numeric[0]
    same_place = data.resolve().parent == path.resolve().parent
    place = data.name if same_place else str(data.resolve())
    comments = "\n".join(f"#   {_scalar(name)}: {kind}" for name, kind in source.columns.items())
    how = "guessed from a sample of rows" if source.rows is None else "from the file's schema"
    rows = "rows: TODO                     # the number of rows; it becomes public\n" if source.rows is None else ""
    return _TEMPLATE.format(
        data=_scalar(place), comments=comments, how=how, rows=rows, hidden=_scalar(f"mean({_quoted(hidden)})"),
        first=_scalar(published), second=_scalar(hidden), pair=_scalar(f"{published}~{hidden}"),
        query=_scalar(f"avg({_quoted(published)})"),
    )  # fmt: skip


def _quoted(column: str) -> str:
    from attrpriv.queries.query import quoted

    return quoted(column)


def _scalar(text: str) -> str:
    from attrpriv.policy.strict_yaml import dump_strict

    return dump_strict([text]).strip().removeprefix("- ")


_TEMPLATE = """\
# A starter policy. Each TODO is a decision of yours: replace the word by a number, then run `attrpriv check`.
# Columns of the table ({how}):
{comments}
attrpriv: 1
data: {data}
{rows}epsilon: 1.0
delta: 1e-6
protect:
  - secret: {hidden}     # what must stay hidden
    between: [TODO, TODO]      # all values in this range must look alike ...
    within: TODO               # ... or only those at most this far apart (remove the line for all)
assume:                        # what an adversary may know; from other sources, never from this table
  kind: gaussian
  mean:
    {second}: TODO
  sd:
    {first}: TODO
    {second}: TODO
  correlation:
    {pair}: TODO
  tolerance:                   # how far the truth may be from these numbers
    mean: TODO                 # in standard deviations
    sd: TODO                   # relative
    slope: TODO                # relative
release:
  - {query}
"""
