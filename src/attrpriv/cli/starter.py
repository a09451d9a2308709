"""A starter policy for a table: its column names and types, with the decisions left to the owner. No statistic is read."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.cli.decisions import Decisions, Left, first_left, public_records
from attrpriv.cli.proposal import OPEN, Kind, Proposal, kind_of, one_column, only_averages, only_counts, propose
from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import AttrprivError, PolicyError, UsageError
from attrpriv.policy.strict_yaml import dump_strict, load_strict
from attrpriv.problem.places import has_password, is_remote, is_url, ledger_beside, usable
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.query import quoted


@dataclass(frozen=True)
class Starter:
    """What was written, and where."""

    path: Path
    text: str
    sniffed: bool
    open: bool = False
    """Whether no column's name says that it is sensitive, so that which one to hide is a decision too."""
    fitted: Path | None = None
    """The assumption that was fitted on public records, if any."""
    fit: str | None = None
    """The command that fits it once all is decided, where that is still to be done."""

    @property
    def left(self) -> Left | None:
        """The first decision that is left to the owner."""
        return first_left(self.text)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "path": str(self.path),
            "policy": self.text,
            "types_by_sample": self.sniffed,
            "left": None if self.left is None else self.left.to_json(),
            "fitted": None if self.fitted is None else str(self.fitted),
        }


def write_starter(
    data: str,
    out: Path | None,
    force: bool,
    template: str | None = None,
    secret: str | None = None,
    releases: Sequence[str] = (),
    decisions: Decisions | None = None,
) -> Starter:
    """Write the starter policy beside the table, or where told; for a table in a database or a cluster, here.

    Decisions are written into it. Where public records are named and nothing is left open, an assumption is fitted on them.
    """
    name = _template(template, secret, releases)
    if is_url(data) and has_password(data):
        raise UsageError("data: a URL must be well-formed and hold no password. Use PGPASSWORD, PGPASSFILE or a service.")
    source = open_table(data if is_remote(data) else Path(data))
    path = place_for(data, out, force)
    proposal = propose(source.columns, _TEMPLATES[name].kind, name == "counts", secret, releases)
    decisions = decisions or Decisions()
    text = decisions.fill(starter_text(source, data, path, name, proposal), path, proposal.secret)
    if decisions.public is not None:
        read = _of_records(proposal, decisions.fits(text))
        public_records(decisions.public, None if is_remote(data) else Path(data), read)
    sniffed = source.rows is None and not is_remote(data)
    with _written(path, text):
        fitted = _fitted(path, text, decisions, force)
    return Starter(path, text, sniffed, OPEN in proposal.hidden, fitted, _fit_left(path, text, decisions))


def _of_records(proposal: Proposal, fitted: bool) -> list[str]:
    """The columns that public records must have: what is hidden, and where they are fitted what is published of which."""
    events = [column for event in proposal.events if OPEN not in event for column in columns_of(parse_condition(event))]
    read = (*proposal.hidden, *proposal.averaged, *events) if fitted else proposal.hidden
    return [column for column in dict.fromkeys(read) if column != OPEN]


@contextmanager
def _written(path: Path, text: str) -> Iterator[None]:
    """The policy is there; what was there before is again, where something goes wrong."""
    before = path.read_bytes() if path.is_file() else None
    failed = False
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        failed = True
    if failed:
        raise UsageError(f"out: must be a place that can be written. Got {str(path)!r}.")
    try:
        yield
    except AttrprivError:
        path.unlink() if before is None else path.write_bytes(before)
        raise


def place_for(data: str, out: Path | None, force: bool) -> Path:
    """Where the policy is written; an error where something is there already."""
    path = usable("out", ledger_beside(data).with_suffix(".yaml") if out is None else out)
    if path.exists() and not force:
        raise UsageError(f"out: {path.name} exists already. Use --force to overwrite it, or --out to write elsewhere.")
    return path


def _fitted(path: Path, text: str, decisions: Decisions, force: bool) -> Path | None:
    """Fit the assumption to which the policy refers, if it refers to one and nothing is left to decide."""
    if decisions.public is None or not decisions.fits(text) or first_left(text) is not None:
        return None
    from attrpriv.cli.fit import fit_policy

    return fit_policy(path, decisions.public, decisions.assumption(path), None, force=force).out


def _fit_left(path: Path, text: str, decisions: Decisions) -> str | None:
    """The command that fits the assumption once nothing is left to decide; None where there is none to fit, or it is done."""
    if decisions.public is None or not decisions.fits(text) or first_left(text) is None:
        return None
    return shlex.join(
        ["attrpriv", "fit", str(path), "--public", str(decisions.public), "--out", str(decisions.assumption(path))]
    )


def _template(name: str | None, secret: str | None, releases: Sequence[str]) -> str:
    """The template that was named, or the one for this secret and these queries."""
    if name is not None and name not in _TEMPLATES:
        raise UsageError(f"template: must be one of {', '.join(_TEMPLATES)}. Got {name!r}.")
    if secret is None:
        return name or "school"
    kind = kind_of(secret)
    fitting = [one for one, template in _TEMPLATES.items() if template.kind == kind]
    if name is not None and name not in fitting:
        raise UsageError(f"template: must be {' or '.join(fitting)} for {secret}. Got {name!r}.")
    if name is not None or kind != "share":
        return name or fitting[0]
    if not one_column(secret):
        return "hospital"
    return "counts" if only_counts(releases) else "groups" if only_averages(releases) else "hospital"


def starter_text(source: Source, data: str, path: Path, template: str, proposal: Proposal) -> str:
    """The policy's text. Every number in it is to be decided by the owner."""
    return starter_head(source, data, path) + _TEMPLATES[template].text.format(**_blocks(proposal))


def starter_head(source: Source, data: str, path: Path) -> str:
    """What every starter policy begins with: the columns and their types, the table, its rows and the budget."""
    place = _beside(data, path)
    sampled = source.rows is None and not is_remote(data)
    comments = "\n".join(f"#   {_hint(name)}: {kind}" for name, kind in source.columns.items())
    how = "guessed from a sample of rows" if sampled else "from its schema"
    text = "\n" + _AS_WRITTEN if sampled and "text" in source.columns.values() else ""
    rows = "rows: TODO                     # the number of rows; it becomes public\n" if source.rows is None else ""
    return _HEAD.format(data=_scalar(place), comments=comments + text, how=how, rows=rows)


def _blocks(proposal: Proposal) -> dict[str, str]:
    """What stands in the open places of a template."""
    first = "TODO-first" if proposal.category is None else _scalar(proposal.category)
    averaged = [_scalar(column) for column in proposal.averaged or (OPEN,)]
    pairs = [_scalar(f"{a}~{b}") for a, b in itertools.combinations((*(proposal.averaged or (OPEN,)), *proposal.hidden), 2)]
    hidden = [_scalar(column) for column in proposal.hidden]
    listed = "".join(f"\n      {column}: TODO" for column in averaged)
    return {
        "secret": _scalar(proposal.secret),
        "asks": "     # write one of its values instead of TODO" if OPEN in proposal.secret else "",
        "hidden": hidden[0],
        "means": "".join(f"\n    {column}: TODO" for column in hidden),
        "sds": "".join(f"\n    {column}: TODO" for column in (*averaged, *hidden)),
        "pairs": "".join(f"\n    {pair}: TODO" for pair in pairs),
        "by_category": f"\n    {first}:{listed}\n    TODO-second:{listed}",
        "given": "".join(
            f"\n    {_scalar(event)}:\n      {first}: TODO\n      TODO-second: TODO" for event in proposal.events or (OPEN,)
        ),
        "first": first,
        "release": "".join(f"\n  - {_scalar(text)}" for text in proposal.releases),
    }


def _hint(name: str) -> str:
    """A column as secrets and queries name it; its key beside it where that is another text."""
    sql, key = quoted(name), _scalar(name)
    if not sql.isprintable():
        return key
    return sql if _as_key(sql) == name else f"{sql}, as a key {key}"


def _as_key(text: str) -> object:
    """What a policy's reader takes a key for; None where it could not read it."""
    try:
        return load_strict(text, where="hint")
    except PolicyError:
        return None


def _beside(data: str, path: Path) -> str:
    """The table as the policy at this path names it."""
    if is_remote(data):
        return data
    same_place = Path(data).resolve().parent == path.resolve().parent
    return Path(data).name if same_place else str(Path(data).resolve())


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
_AS_WRITTEN = (
    "# Text is compared as it is written: 'yes' is neither ' yes' nor 'Yes'. Look for spaces around the values of a CSV file."
)


@dataclass(frozen=True)
class _Template:
    """A policy for one kind of secret."""

    kind: Kind
    text: str


_SCHOOL = """\
delta: 1e-6
protect:
  - secret: {secret}     # what must stay hidden
    between: [TODO, TODO]      # all values in this range must be indistinguishable ...
    within: TODO               # ... or only those at most this far apart (remove the line for all)
assume:                        # what an adversary may know; from other sources, never from this table
  kind: gaussian
  mean:{means}
  sd:{sds}
  correlation:{pairs}
  tolerance:                   # how far the truth may be from these numbers
    mean: TODO                 # in standard deviations
    sd: TODO                   # relative
    slope: TODO                # relative
release:{release}
"""

_HOSPITAL = """\
protect:
  - secret: {secret}{asks}
    between: [TODO, TODO]      # shares such as 25%, 40%; a share outside is an announced failure
identifiers: []                # columns that name persons, such as a patient number; a view leaves them out
release:                       # answered from the secret-free view; see also `attrpriv view`{release}
"""

_SURVEY = """\
protect:
  - secret: {secret}
    between:                   # a range of shares for each value of the column
      TODO-first: [TODO, TODO]
      TODO-second: [TODO, TODO]
      other: [TODO, TODO]      # every value not named above
identifiers: []                # columns that name persons; a view leaves them out
release:                       # answered from the secret-free view; see also `attrpriv view`{release}
"""

_COLUMNS = """\
delta: 1e-6
protect:
  - secret: {secret}      # everything about these columns, together
reference:
  file: TODO                   # public records with these columns, never made from this table; or, instead of file:
  # age: {{law: uniform, low: 17, high: 90}}, or age: {{values: [17, 18], shares: [0.4, 0.6]}}
  least_density: TODO          # each value is at least so many times as common here as in public, such as 0.8
identifiers: []                # columns that name persons or number rows; a view leaves them out
release:                       # answered from the secret-free view; see also `attrpriv view`{release}
"""

_COUNTS = """\
delta: 1e-6
protect:
  - secret: {secret}{asks}
    between: [TODO, TODO]      # shares such as 25%, 40%: all in this range must be indistinguishable ...
    within: TODO               # ... or only those at most this far apart, such as 2% (remove the line for all)
assume:                        # what an adversary may know; from other sources, never from this table
  kind: counts
  sensitive: {hidden}
  given:                       # how likely the counted event is in each category: a number, or an interval [low, high]{given}
  prior:
    {first}: TODO           # how common the category is, for the expected error
release:                       # the same condition as under given{release}
"""

_GROUPS = """\
delta: 1e-6
protect:
  - secret: {secret}{asks}
    between: [TODO, TODO]      # shares such as 25%, 40%: all in this range must be indistinguishable ...
    within: TODO               # ... or only those at most this far apart, such as 2% (remove the line for all)
assume:                        # what an adversary may know; from other sources, never from this table
  kind: groups
  sensitive: {hidden}
  mean:                        # in each category{by_category}
  sd:{by_category}
  tolerance:                   # how far the truth may be from these numbers
    mean: TODO                 # in standard deviations of the category
    sd: TODO                   # relative
release:{release}
"""

_TEMPLATES: Mapping[str, _Template] = {
    "school": _Template("mean", _SCHOOL),
    "hospital": _Template("share", _HOSPITAL),
    "survey": _Template("distribution", _SURVEY),
    "columns": _Template("columns", _COLUMNS),
    "counts": _Template("share", _COUNTS),
    "groups": _Template("share", _GROUPS),
}
