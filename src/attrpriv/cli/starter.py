"""A starter policy for a table: its column names and types, with the decisions left to the owner. No statistic is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import DataError, UsageError
from attrpriv.framework.places import has_password, is_remote, is_url, ledger_beside
from attrpriv.policy.strict_yaml import dump_strict
from attrpriv.queries.query import quoted

_NUMBERS = ("integer", "boolean", "decimal", "float")


@dataclass(frozen=True)
class Starter:
    """What was written, and where."""

    path: Path
    text: str
    sniffed: bool

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": 1, "path": str(self.path), "policy": self.text, "types_by_sample": self.sniffed}


def write_starter(data: str, out: Path | None, force: bool, template: str = "school") -> Starter:
    """Write the starter policy beside the table, or where told; for a table in a database or a cluster, here."""
    if template not in _TEMPLATES:
        raise UsageError(f"template: must be one of {', '.join(_TEMPLATES)}. Got {template!r}.")
    if is_url(data) and has_password(data):
        raise UsageError("data: a URL must be well-formed and hold no password. Use PGPASSWORD, PGPASSFILE or a service.")
    source = open_table(data if is_remote(data) else Path(data))
    path = ledger_beside(data).with_suffix(".yaml") if out is None else out
    if path.exists() and not force:
        raise UsageError(f"out: {path.name} exists already. Use --force to overwrite it, or --out to write elsewhere.")
    text = starter_text(source, data, path, template)
    failed = False
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        failed = True
    if failed:
        raise UsageError(f"out: must be a place that can be written. Got {str(path)!r}.")
    return Starter(path, text, sniffed=source.rows is None and not is_remote(data))


def starter_text(source: Source, data: str, path: Path, template: str = "school") -> str:
    """The policy's text. Columns are named as an example; every number in it is to be decided by the owner."""
    hidden, published = _TEMPLATES[template].choose(source.columns)
    place = _beside(data, path)
    comments = "\n".join(f"#   {_scalar(name)}: {kind}" for name, kind in source.columns.items())
    how = "from its schema" if source.rows is not None or is_remote(data) else "guessed from a sample of rows"
    rows = "rows: TODO                     # the number of rows; it becomes public\n" if source.rows is None else ""
    head = _HEAD.format(data=_scalar(place), comments=comments, how=how, rows=rows)
    body = _TEMPLATES[template].text.format(
        mean=_scalar(f"mean({quoted(hidden)})"),
        share=_scalar(f"share({quoted(hidden)} = 'TODO')"),
        distribution=_scalar(f"distribution({quoted(hidden)})"),
        first=_scalar(published),
        second=_scalar(hidden),
        pair=_scalar(f"{published}~{hidden}"),
        query=_scalar(f"avg({quoted(published)})"),
        event=_scalar(f"{quoted(published)} > TODO"),
        count=_scalar(f"count(*) filter (where {quoted(published)} > TODO)"),
    )
    return head + body


def _beside(data: str, path: Path) -> str:
    """The table as the policy at this path names it."""
    if is_remote(data):
        return data
    same_place = Path(data).resolve().parent == path.resolve().parent
    return Path(data).name if same_place else str(Path(data).resolve())


def _two_numbers(columns: Mapping[str, str]) -> tuple[str, str]:
    numeric = [name for name, kind in columns.items() if kind in _NUMBERS]
    if len(numeric) < 2:
        raise DataError(f"data: this template needs two numeric columns, one to hide and one to publish. Got {len(numeric)}.")
    return numeric[-1], numeric[0]


def _category_and_number(columns: Mapping[str, str]) -> tuple[str, str]:
    words = [name for name, kind in columns.items() if kind in ("text", "boolean")]
    numeric = [name for name, kind in columns.items() if kind in ("integer", "decimal", "float")]
    if not words or not numeric:
        raise DataError("data: this template needs a text or boolean column to hide and a numeric one to publish. Got none.")
    return words[0], numeric[0]


def _scalar(text: str) -> str:
    return dump_strict([text]).strip().removeprefix("- ")


_HEAD = """\
# A starter policy. Each TODO is a decision of yours: replace the word, then run `attrpriv check`.
# Columns of the table ({how}):
{comments}
attrpriv: 1
data: {data}
{rows}epsilon: 1.0
"""


@dataclass(frozen=True)
class _Template:
    """A policy for one kind of secret, and how to choose the two columns it names."""

    choose: Callable[[Mapping[str, str]], tuple[str, str]]
    text: str


_SCHOOL = """\
delta: 1e-6
protect:
  - secret: {mean}     # what must stay hidden
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

_HOSPITAL = """\
protect:
  - secret: {share}     # write one of its values instead of TODO
    between: [TODO, TODO]      # shares such as 25%, 40%; a share outside is an announced failure
identifiers: []                # columns that name persons, such as a patient number; a view leaves them out
release:                       # answered from the secret-free view; see also `attrpriv view`
  - {query}
"""

_SURVEY = """\
protect:
  - secret: {distribution}
    between:                   # a range of shares for each value of the column
      TODO-first: [TODO, TODO]
      TODO-second: [TODO, TODO]
      other: [TODO, TODO]      # every value not named above
identifiers: []                # columns that name persons; a view leaves them out
release:                       # answered from the secret-free view; see also `attrpriv view`
  - {query}
"""

_COUNTS = """\
delta: 1e-6
protect:
  - secret: {share}     # write one of its values instead of TODO
    between: [TODO, TODO]      # shares such as 25%, 40%: all in this range must look alike ...
    within: TODO               # ... or only those at most this far apart, such as 2% (remove the line for all)
assume:                        # what an adversary may know; from other sources, never from this table
  kind: counts
  sensitive: {second}
  given:                       # how likely the counted event is in each category: a number, or an interval [low, high]
    {event}:
      TODO-first: TODO
      TODO-second: TODO
  prior:
    TODO-first: TODO           # how common the category is, for the expected error
release:                       # the same condition as under given
  - {count}
"""

_GROUPS = """\
delta: 1e-6
protect:
  - secret: {share}     # write one of its values instead of TODO
    between: [TODO, TODO]      # shares such as 25%, 40%: all in this range must look alike ...
    within: TODO               # ... or only those at most this far apart, such as 2% (remove the line for all)
assume:                        # what an adversary may know; from other sources, never from this table
  kind: groups
  sensitive: {second}
  mean:                        # in each category
    TODO-first:
      {first}: TODO
    TODO-second:
      {first}: TODO
  sd:
    TODO-first:
      {first}: TODO
    TODO-second:
      {first}: TODO
  tolerance:                   # how far the truth may be from these numbers
    mean: TODO                 # in standard deviations of the category
    sd: TODO                   # relative
release:
  - {query}
"""

_TEMPLATES: Mapping[str, _Template] = {
    "school": _Template(_two_numbers, _SCHOOL),
    "hospital": _Template(_category_and_number, _HOSPITAL),
    "survey": _Template(_category_and_number, _SURVEY),
    "counts": _Template(_category_and_number, _COUNTS),
    "groups": _Template(_category_and_number, _GROUPS),
}
