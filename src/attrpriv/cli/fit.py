"""`attrpriv fit`: an assumption file from public records, for a policy. The private table is never fitted.

What must never change: the private table is opened only to tell whether the public one is the same, and nothing that is written
or printed depends on its rows. The file that is written is read back before it is left in place.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.fit import Fit, Interval, fit_examined
from attrpriv.assumptions.fit_counts import CountFit
from attrpriv.assumptions.fit_groups import GroupFit, fit_examined_groups
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.shape import Tried
from attrpriv.cli.against import show_tried
from attrpriv.cli.decisions import public_records
from attrpriv.cli.fit_counts import asks_for_counts, fit_counts, padded_lines, require_among
from attrpriv.cli.shape import require_picture, save_picture, shape_json, shape_lines, show_shape
from attrpriv.engines.moments import SAME_TABLE, GroupMoments, Moments, PublicTable, require_other_table
from attrpriv.engines.tables import open_table
from attrpriv.errors import DataError, PolicyError, UsageError
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import dump_strict, load_strict
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.places import is_pattern
from attrpriv.session.fit_trials import on_record, try_fitted


@dataclass(frozen=True)
class Fitted:
    """What was written, where, and how a policy refers to it."""

    out: Path
    reference: str
    text: str
    fit: Fit | GroupFit | CountFit
    notes: tuple[str, ...]
    tried: tuple[Tried, ...] = ()

    @property
    def assumption(self) -> Gaussian | Groups | Counts:
        return _assumption(self.fit)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "out": str(self.out),
            "assume": {"file": self.reference},
            "assumption": self.assumption.to_json(),
            "intervals": [interval.to_json() for interval in self.fit.intervals],
            "shape": shape_json(_assumption(self.fit)),
            "tried": [one.to_json() for one in self.tried],
            "notes": list(self.notes),
        }


def fit_policy(
    path: Path, public: Path, out: Path, confidence: float | None, *, force: bool = False, plot: Path | None = None
) -> Fitted:
    """Fit the columns that the policy protects and releases on public records, and write the assumption.

    A mean or a sum needs a Gaussian one; where only shares and counts of one column are protected, it is one of counts
    if nothing but counts is released, else of groups.
    """
    policy = Policy.load(path, assume=False)
    queries = _queries(policy)
    sensitive, category = _linear_columns(policy), _category_column(policy)
    level = _confidence(policy, confidence)
    _check_out(out, force, kept=[path, public, policy.data_path()])
    if plot is not None:
        if not sensitive and asks_for_counts(policy):
            raise UsageError("plot: shows the shape of numeric columns, and counts rest on none. Leave --plot out.")
        require_picture(plot)
        _check_out(plot, force, kept=[path, public, policy.data_path(), out], name="plot")
    _refuse_private_path(policy, public)
    if not is_pattern(public):
        public_records(public, None, (*(sensitive or (category,)), *queries))
    fit: Fit | GroupFit | CountFit
    if sensitive:
        fit = _fit_linear(policy, public, sensitive, queries, level)
    elif asks_for_counts(policy):
        fit = fit_counts(policy, public, category, level)
    else:
        fit = _fit_groups(policy, public, category, queries, level)
    fit, tried, untried = _with_trials(policy, public, fit)
    reference = Path(os.path.relpath(out.resolve(), path.resolve().parent)).as_posix()
    text = assumption_text(fit, public.name, reference)
    _write(out, text)
    if plot is not None and not isinstance(fit, CountFit):
        save_picture(fit, plot)
    return Fitted(out, reference, text, fit, fit.notes + _notes(policy, fit) + untried, tried)


def _with_trials(
    policy: Policy, public: Path, fit: Fit | GroupFit | CountFit
) -> tuple[Fit | GroupFit | CountFit, tuple[Tried, ...], tuple[str, ...]]:
    """The fit, with what became of the plans that were tried on its own rows; and what to say where none was."""
    if isinstance(fit, CountFit):
        return fit, (), ()
    assumption = fit.gaussian if isinstance(fit, Fit) else fit.groups
    tried, why = try_fitted(policy, assumption, public)
    if assumption.fitted is None or on_record(tried) is None:
        return fit, tried, () if why is None else (why,)
    record = {"fitted": assumption.fitted.model_copy(update={"tried": on_record(tried)})}
    if isinstance(fit, Fit):
        return replace(fit, gaussian=fit.gaussian.model_copy(update=record)), tried, ()
    return replace(fit, groups=fit.groups.model_copy(update=record)), tried, ()


def _fit_linear(policy: Policy, public: Path, sensitive: tuple[str, ...], queries: tuple[str, ...], level: float) -> Fit:
    table = PublicTable(public)
    moments = table.moments(tuple(dict.fromkeys((*queries, *sensitive))))
    _refuse_private_content(policy, moments)
    return fit_examined(table, moments, sensitive=sensitive, queries=queries, confidence=level)


def _fit_groups(policy: Policy, public: Path, category: str, queries: tuple[str, ...], level: float) -> GroupFit:
    table = PublicTable(public)
    moments = table.group_moments(category, queries)
    _refuse_private_content(policy, moments)
    require_among(policy, category, moments.categories)
    return fit_examined_groups(table, moments, confidence=level)


def _assumption(fit: Fit | GroupFit | CountFit) -> Gaussian | Groups | Counts:
    return fit.counts if isinstance(fit, CountFit) else fit.gaussian if isinstance(fit, Fit) else fit.groups


def _linear_columns(policy: Policy) -> tuple[str, ...]:
    """The columns whose mean or sum is protected."""
    named = [secret.text for secret in policy.protect if secret.attribute is not None]
    if named:
        raise PolicyError(
            f"protect: {named[0]} is a parameter of the population, and one table of public records is one population. "
            "State how populations vary under assume."
        )
    linear = [secret for secret in policy.protect if secret.composition is None]
    shares = [secret for secret in policy.protect if secret.composition is not None]
    if linear and shares:
        raise PolicyError(
            f"protect: no assumption covers a mean or a sum together with a share or a count. Got {linear[0].text} and "
            f"{shares[0].text}. Cut the number into bins and protect one distribution of both columns, by a view."
        )
    return tuple(dict.fromkeys(c for secret in linear for c in secret.columns))


def _category_column(policy: Policy) -> str:
    """The one column of which shares or counts are protected; "" where a mean or a sum is."""
    if _linear_columns(policy):
        return ""
    columns = tuple(dict.fromkeys(column for secret in policy.protect for column in secret.columns))
    if len(columns) != 1 or columns[0] in policy.bins:
        raise PolicyError(
            "protect: must name a mean or a sum, or shares and counts of one column of categories. "
            f"Got {'bins of ' if len(columns) == 1 else ''}{', '.join(columns)}."
        )
    if columns[0] in _queries(policy):
        raise PolicyError(f"release: must name other columns than {columns[0]}, whose categories are protected.")
    return columns[0]


def _queries(policy: Policy) -> tuple[str, ...]:
    """The columns that the policy releases."""
    queries = [column for query in policy.queries() for column in query.columns]
    if not queries and not asks_for_counts(policy):
        raise PolicyError("release: must name the averages or sums to publish, so that their columns are fitted. Got none.")
    return tuple(dict.fromkeys(queries))


def _confidence(policy: Policy, asked: float | None) -> float:
    """1 - delta/2, or what was asked for."""
    if asked is None and policy.delta == 0:
        raise PolicyError("delta: must be above 0, because a fitted assumption may miss the truth. Got 0.")
    least = 1 - policy.delta / 2
    level = least if asked is None else asked
    if asked is None and level >= 1:
        raise PolicyError(f"delta: must be at least 1e-15 for an assumption to be fitted. Got {policy.delta:g}.")
    if not math.isfinite(level) or not 0.5 <= level < 1:
        raise UsageError(f"confidence: must be at least 0.5 and below 1. Got {level!r}.")
    if level < least and not policy.accept_fit_risk:
        raise UsageError(
            f"confidence: must be at least 1 - delta/2 = {least!r}, so that the risk of a miss is at most half of delta. Got "
            f"{level!r}. Leave it out, or set accept_fit_risk: true in the policy to promise delta + {1 - level:.4g} instead."
        )
    return level


# ------------------------------------------------------------------------------------------------------ the private table


def _refuse_private_path(policy: Policy, public: Path) -> None:
    private = policy.data_path()
    if private is not None and _same_file(private, public):
        raise DataError(SAME_TABLE)


def _same_file(first: str | Path, second: str | Path) -> bool:
    """One file, under whatever name: a link is followed, and a hard link is the same file."""
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):
        return False


def _refuse_private_content(policy: Policy, moments: Moments | GroupMoments) -> None:
    private = policy.data_path()
    if private is not None and os.path.exists(private):
        require_other_table(open_table(private), moments.rows, moments.columns, moments.digest)


# --------------------------------------------------------------------------------------------------------------- the file


def assumption_text(fit: Fit | GroupFit | CountFit, source: str, reference: str) -> str:
    """Comments that say what the numbers are, then the assumption itself."""
    assumption = _assumption(fit)
    record = assumption.fitted
    assert record is not None  # a fit has its record
    content = {"attrpriv": 1, "kind": assumption.kind, **_content(assumption), "fitted": record.to_json()}
    lines = [
        f"An assumption that `attrpriv fit` made from public records: {_scalar(source)}, {record.rows} rows.",
        "In a policy:",
        "  assume:",
        f"    file: {_scalar(reference)}",
        f"With probability {record.confidence!r} or more, all of these hold at once, and the box below contains them:",
        *(f"  {line}" for line in map(_described, fit.intervals)),
        "provided the public rows are independent, drawn from the population of the private table, and independent of that",
        "table: assumed, not tested. Rows so rare that the records may hold none must not matter, which no records show.",
        "The confidence belongs to these very numbers: do not change one.",
        *(_one_line(line) for line in shape_lines(assumption)),
        *map(_one_line, fit.notes),
    ]
    return "".join(f"# {line}\n" for line in lines) + dump_strict(content)


def _content(assumption: Assumption) -> dict[str, Any]:
    """What it states, without what it leaves out."""
    return {
        key: _stated(value)
        for key, value in assumption.to_json().items()
        if key not in ("kind", "fitted") and value is not None
    }


def _stated(value: Any) -> Any:
    return {key: _stated(one) for key, one in value.items() if one is not None} if isinstance(value, dict) else value


def _of(interval: Interval) -> str:
    """What an interval is about; a mean or sd is of a category, a slope or a residual sd is on another column."""
    if interval.on is None:
        return interval.of
    return f"{interval.of} {'on' if interval.kind in ('slope', 'residual sd') else 'in'} {interval.on}"


def _described(interval: Interval) -> str:
    name = _of(replace(interval, of=_scalar(interval.of), on=interval.on and _scalar(interval.on)))
    return f"{interval.kind} of {name}: {interval.estimate:.6g}, from {interval.low:.6g} to {interval.high:.6g}"


def _scalar(text: str) -> str:
    """A name on one line, without any character that the reader of the file would refuse."""
    return dump_strict([text]).strip().removeprefix("- ")


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _check_out(out: Path, force: bool, kept: list[str | Path | None], name: str = "out") -> None:
    if any(other is not None and (out == other or _same_file(out, other)) for other in kept):
        raise UsageError(f"{name}: must be a file of its own. Got {out.name}, which is the policy or one of the tables.")
    if os.path.lexists(out) and not force:
        raise UsageError(f"{name}: {out.name} exists already. Use --force to overwrite it, or --{name} to write elsewhere.")


def _write(out: Path, text: str) -> None:
    load_strict(text, where=out.name)
    failed = False
    try:
        out.write_text(text, encoding="utf-8")
    except OSError:
        failed = True
    if failed:
        raise UsageError(f"out: must be a place that can be written. Got {str(out)!r}.")


def _notes(policy: Policy, fit: Fit | GroupFit | CountFit) -> tuple[str, ...]:
    assumption = _assumption(fit)
    tolerance = assumption.tolerance
    what = "interval" if tolerance is None else "tolerance"
    notes = [f"four times as many public rows would about halve every {what}.", *padded_lines(assumption)]
    off = getattr(tolerance, "mean", None)
    if policy.rows is not None and off is not None:
        errors = off * math.sqrt(policy.rows)
        notes.append(f"the mean tolerance of {off:g} sd is {errors:.3g} standard errors at n = {policy.rows}.")
    filled = [column for column in _assumption(fit).columns if column in policy.missing]
    notes += [
        f"{column}: the policy fills missing entries, so the public column must be filled in the same way." for column in filled
    ]
    return tuple(notes)


# ------------------------------------------------------------------------------------------------------------- for people


def show(written: Fitted) -> None:
    """The intervals, the box, and what to put into the policy."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from attrpriv.cli.guard import console
    from attrpriv.formatting import number

    record, stated = written.assumption.fitted, written.assumption
    assert record is not None  # a fit has its record
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in ("from public records", "estimate", "at least", "at most"):
        table.add_column(column, justify="right" if table.columns else "left", overflow="fold")
    for interval in written.fit.intervals:
        ends = (number(x) for x in (interval.estimate, interval.low, interval.high))
        table.add_row(escape(f"{interval.kind} of {_of(interval)}"), *ends)
    shown = console()
    shown.print(table)
    box_ = "" if stated.tolerance is None else f"{stated.tolerance}; "
    shown.print(f"\n{box_}from {record.rows:,} rows, confidence {record.confidence!r}")
    show_shape(shown, written.assumption)
    if any(one.verdict != "any rows" for one in written.tried):
        show_tried(written.tried, "plans for what the policy lists, tried on these rows")
    for note in (
        *written.notes,
        "that the public rows are independent and of the table's population is assumed, not tested.",
    ):
        shown.print(f"[dim]-[/dim] {escape(note)}")
    shown.print(f"wrote {escape(written.out.name)}. In the policy: assume: {{file: {escape(_scalar(written.reference))}}}")
