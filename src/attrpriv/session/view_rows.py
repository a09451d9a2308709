"""A view bound to its table: drawn once and recorded, or taken up again from the ledger.

What must never change: the secret state is in the ledger before a single row is handed out, and a ledger that holds a view
never draws another. What is recorded with it must be what is asked for: other cells or ranges, another `row_id` or another
table would be another view. A column that it leaves out (`identifiers`) stays out; more may be left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from attrpriv.accounting.hash_chain import Entry
from attrpriv.accounting.ledger import Ledger
from attrpriv.engines.tables import Source
from attrpriv.engines.view.answers import Viewed, check_queries
from attrpriv.engines.view.draw import Cells, Drawn, TooFewRowsError, view_table
from attrpriv.engines.view.fetched import drawn_rows, same_rows
from attrpriv.engines.view.file import ViewFile, check_out, limit_memory, part_files, write_views
from attrpriv.engines.view.parts import part_tables
from attrpriv.engines.view.values import Group
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.view.plan import public_shares
from attrpriv.methods.view.split import ViewSplit
from attrpriv.policy import Policy
from attrpriv.policy.models import digest_of
from attrpriv.queries.query import Query
from attrpriv.session.release import Answer
from attrpriv.session.stand_ins import sorted_column, stand_ins
from attrpriv.session.table_reads import opened_table
from attrpriv.session.view_estimates import estimates
from attrpriv.session.view_persons import recorded_test, tested

_FAILED = "failed"
FAILED_BEFORE = (
    "view: the ledger records that the view could not be drawn: too few rows, or numbers too far off. Another reference "
    "needs a new ledger, and is outside the promise: this failure itself says something about the table."
)


@dataclass(frozen=True)
class ViewRows:
    """The rows of a recorded view, not yet read."""

    plan: ViewPlan
    policy: Policy
    source: Source
    """Where the rows are read: the table itself, or what was fetched of one that another engine has."""
    cells: Cells
    drawn: Drawn
    origin: Source
    """The table that they are of."""

    @classmethod
    def recorded_or_drawn(
        cls,
        plan: ViewPlan,
        policy: Policy,
        source: Source,
        ledger: Ledger,
        time: Callable[[], str],
        table: str | None = None,
        known: ViewRows | None = None,
    ) -> ViewRows:
        """The rows of the recorded view, or of a new one of the table that is called so.

        `known`: rows whose table was compared with the view before.
        """
        require_certified(plan)
        cells = cells_of(plan, policy)
        public = _public(plan, policy, cells)
        first = ledger.first()
        details = {"certificate": plan.certificate.to_json(), "table": table}
        if first is None:
            record = partial(ledger.commit, kind="view", policy_digest=plan.policy_digest, answers=[], details=details)
            found = _drawn_or_failed(source, tested(plan, cells), plan.n, policy.row_id)
            # One call for both outcomes: where the ledger cannot be written, neither shows.
            failed = isinstance(found, TooFewRowsError)
            state = {} if isinstance(found, TooFewRowsError) else found[0].to_json()
            record(time=time(), plan={**public, _FAILED: True} if failed else public, state=state)
            if isinstance(found, TooFewRowsError):
                raise found
            drawn, here = found
            return cls(plan, policy, here, cells, drawn, source)
        ledger.refuse("answer")
        if _FAILED in first.plan:
            raise RefusedError(FAILED_BEFORE)
        _require_same_view(first, public, policy)
        drawn = _recorded(ledger)
        if known is not None and (known.origin, known.drawn) == (source, drawn):
            here = known.source
        else:
            here = same_rows(source, cells, drawn, policy.row_id)
        return cls(plan, policy, here, cells, drawn, source)

    def table(self, split: ViewSplit | None = None) -> Any:
        """The view as a lazy Ibis table; its parts by name, the same ones each time."""
        chosen = self.source, self.cells, self.drawn, self.policy.row_id, self.policy.left_out
        if split is None:
            return view_table(*chosen)
        return dict(zip(split.names, part_tables(*chosen, split.numbers), strict=True))

    def write(self, out: Path, split: ViewSplit | None = None, *, low_memory: bool) -> None:
        if self.source is not self.origin:
            limit_memory(self.source, low_memory=low_memory)
        tables = [self.table()] if split is None else self.table(split).values()
        rows = [self.plan.rows] if split is None else split.rows.values()
        files = [ViewFile(*one) for one in zip(tables, files_of(out, split), rows, strict=True)]
        write_views(self.source, files, low_memory=low_memory)

    def answers(self, queries: Sequence[Query]) -> tuple[Answer, ...]:
        """Each query from the view, scaled to the public composition."""
        require_answerable(self.source, self.policy, queries, self.plan)
        shares = public_shares(self.plan, self.policy.composition)
        return tuple(self._answer(query, shares) for query in queries)

    def _answer(self, query: Query, shares: Mapping[str, float]) -> Answer:
        groups = groups_of(self.policy, query, self.source.columns, self.plan)
        view = Viewed(self.source, self.cells, self.drawn, self.policy.row_id, self.policy.missing, self.policy.bounds, groups)
        return Answer(query, estimates(view, query, self.plan, shares))


def _drawn_or_failed(source: Source, cells: Cells, n: int, row_id: str | None) -> tuple[Drawn, Source] | TooFewRowsError:
    try:
        return drawn_rows(source, cells, n, row_id)
    except TooFewRowsError as failed:
        return failed.with_traceback(None)


def files_of(out: Path, split: ViewSplit | None) -> tuple[Path, ...]:
    """The files that a view is written to: one, or one for each part."""
    return (out,) if split is None else tuple(part_files(out, split.names).values())


def groups_of(policy: Policy, query: Query, types: Mapping[str, str], plan: ViewPlan) -> tuple[Group, ...] | None:
    """The public groups of a query; None where it has none.

    Of a hidden column, which the view has as the public has it, the public values are the groups where none are declared.
    """
    column = query.group_by
    if column is None:
        return None
    if column in plan.secret.whole_columns and column not in policy.categories and column not in policy.bins:
        return stand_ins(plan, column)
    return tuple(Group(name, condition) for name, condition in policy.groups(column, types).items())


def _require_same_view(first: Entry, public: Mapping[str, Any], policy: Policy) -> None:
    asked, told = dict(public), dict(first.plan)
    asked.pop("identifiers")
    dropped = told.pop("identifiers", None)
    if told != asked:
        raise RefusedError("view: the ledger holds a view drawn for other ranges, cells or row_id. Keep to that policy.")
    if dropped is None and first.policy_digest not in (policy.digest, digest_of({**policy.stated, "identifiers": []})):
        raise RefusedError(
            "view: the ledger holds a view of attrpriv 0.1.0, which does not record the identifiers that it leaves out. Keep "
            "to the very policy that it was drawn for, or to that policy with identifiers where it had none."
        )
    shown = [name for name in dropped or () if name not in policy.left_out]
    if shown:
        raise RefusedError(
            f"view: the ledger holds a view without {', '.join(shown)}, and what was left out must stay out. Name it under "
            "identifiers again."
        )


def _recorded(ledger: Ledger) -> Drawn:
    with contextlib.suppress(KeyError, TypeError):
        return Drawn.from_json(ledger.view_state())
    raise RefusedError("view: the ledger's secret state must be as attrpriv wrote it. Got another. Restore it from a backup.")


def require_answerable(source: Source, policy: Policy, queries: Sequence[Query], plan: ViewPlan) -> None:
    """Raise DataError, from the schema alone, where a query reads what the view does not have."""
    check_queries(source, queries, [*policy.left_out, *(() if policy.row_id is None else (policy.row_id,))])
    for query in queries:
        groups_of(policy, query, source.columns, plan)


def require_certified(plan: ViewPlan) -> None:
    """The certificate must hold, and the rows kept must be the ones it counted on."""
    plan.certificate.verify()
    evidence = plan.certificate.evidence
    if evidence.view_of() != (plan.n, plan.cells) or evidence.whole_columns() != plan.secret.whole_columns:
        raise CertificateError("view: must keep what its certificate counted on. Nothing was drawn.")


def cells_of(plan: ViewPlan, policy: Policy) -> Cells:
    """How the engine tells the cells of a plan, and how many rows of each it keeps."""
    if plan.secret.whole_columns:
        return _value_cells(plan)
    conditions = {cell.name: cell.condition for cell in plan.secret.cells(plan.n, policy.bins)}
    return Cells(
        conditions=tuple(conditions[cell.name] for cell in plan.cells),
        keep=tuple(cell.keep for cell in plan.cells),
        low=tuple(cell.low for cell in plan.cells),
        high=tuple(cell.high for cell in plan.cells),
    )


def _value_cells(plan: ViewPlan) -> Cells:
    """One cell for each public value, and a last one for all others, of which no row is kept."""
    return Cells(
        conditions=(),
        keep=(*(cell.keep for cell in plan.cells), 0),
        low=(*(cell.low for cell in plan.cells), 0),
        high=(*(plan.n for _ in plan.cells), plan.n),
        columns=plan.secret.whole_columns,
        values=tuple(cell.values or () for cell in plan.cells),
        in_order=sorted_column(plan),
    )


def _public(plan: ViewPlan, policy: Policy, cells: Cells) -> dict[str, Any]:
    """What identifies a view: its cells, how many rows of each are kept, what tells rows apart, and what is left out."""
    kept = {key: value for key, value in plan.to_json().items() if key in ("schema_version", "secret", "n", "cells")}
    conditions = [None if condition is None else str(condition) for condition in cells.conditions]
    left_out, moved = sorted(policy.left_out), plan.certificate.evidence.sorted_by()
    in_order = {} if moved is None else {"sorted": moved.to_json()}
    told = {"conditions": conditions, "row_id": policy.row_id, "identifiers": left_out}
    return {**kept, **in_order, **told, **recorded_test(plan)}


def write_rows(
    plan: ViewPlan,
    policy: Policy,
    data: object,
    ledger: Ledger,
    time: Callable[[], str],
    named: str | None,
    out: Path,
    parts: ViewSplit | None,
    *,
    force: bool,
    low_memory: bool,
) -> None:
    """A new Parquet file of the view, or one for each part of it."""
    for file in files_of(out, parts):
        check_out(file, data, force=force)
    source = opened_table(data)  # an engine for this file alone: what it spills goes when it does
    limit_memory(source, low_memory=low_memory)
    rows = ViewRows.recorded_or_drawn(plan, policy, source, ledger, time, named)
    rows.write(out, parts, low_memory=low_memory)
