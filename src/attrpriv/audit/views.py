"""What is done to a table before a model is trained on it: nothing, a function of the caller's, or the view of a policy.

A view is drawn by a twin of the engine in NumPy: the same cells, which the engine tells once for all records; the same ranks
and places, from the same stream; and so the same rows in the same order as the library's own draw under that key. Before
anything is attacked, one table is drawn by both and compared (`spot_check`). A key here comes from the audit's seed.

What must never change: of a policy only its rules are used. Its table and its ledger are not opened.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from attrpriv.audit.tables import Floats, Statistic, Whole
from attrpriv.engines.tables import Source, open_table
from attrpriv.engines.view.draw import Cells, announced, check_schema, checked, columns_left, draw, view_table
from attrpriv.engines.view.in_order import Ranks, row_cells
from attrpriv.errors import CertificateError, DataError, RefusedError, UsageError
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.policy import Policy
from attrpriv.problem.composition import parse_composition
from attrpriv.problem.places import identities, is_remote
from attrpriv.queries.arithmetic import parse_linear
from attrpriv.queries.query import Query
from attrpriv.session.session import Session
from attrpriv.session.table_reads import public_cells
from attrpriv.session.view_persons import planned_parts
from attrpriv.session.view_rows import cells_of, require_certified

ALL_ROWS = "all rows"
VIEW = "view"
NOT_THE_SAME = "audit: its draw of views must choose the rows that the library chooses. Got others. Please report this."
NOT_COVERED = "This view does not hide this secret: rows that it takes for alike, of one cell, differ in it. Use finer cells."


class Defence(Protocol):
    """What a model is trained on, made of the records in a table."""

    @property
    def promise(self) -> str:
        """What is proved of it, in words; nothing where nothing is."""

    @property
    def every_table(self) -> bool:
        """Whether that is proved for every table, not only for tables of these records."""

    @property
    def caution(self) -> str:
        """What is not proved although one might think so."""

    def table(self, frame: Any, rows: Whole, seed: int) -> Any: ...


@dataclass(frozen=True)
class AllRows:
    """The table as it is."""

    promise: str = ""
    every_table: bool = False
    caution: str = ""

    def table(self, frame: Any, rows: Whole, seed: int) -> Any:
        return taken(frame, rows)


@dataclass(frozen=True)
class Made:
    """What a function of the caller's makes of the table."""

    function: Callable[..., Any]
    promise: str = ""
    every_table: bool = False
    caution: str = ""

    def table(self, frame: Any, rows: Whole, seed: int) -> Any:
        return called(self.function, taken(frame, rows), seed)


@dataclass(frozen=True)
class View:
    """The view of a policy."""

    cell: Whole
    """of each record"""
    cells: Cells
    columns: tuple[str, ...]
    promise: str
    every_table: bool
    caution: str

    def table(self, frame: Any, rows: Whole, seed: int) -> Any:
        return taken(frame, rows[self.kept(rows, key_of(seed))])[list(self.columns)]

    def kept(self, rows: Whole, key: str) -> Whole:
        """Positions in the table of the rows that the view has, in its order; DataError where it cannot be drawn."""
        cell = self.cell[rows]
        counts = checked(self.cells, len(rows), Counter(cell.tolist()))
        if not isinstance(counts, list):
            raise announced(self.cells, len(rows), counts)
        rank, first, second = Ranks(key, len(rows)).whole()
        by_cell = np.lexsort((rank, cell))
        within = np.arange(len(rows)) - np.searchsorted(cell[by_cell], cell[by_cell])
        kept = by_cell[within < np.array(self.cells.keep)[cell[by_cell]]]
        return np.asarray(kept[np.lexsort((second[kept], first[kept]))])


def key_of(seed: int) -> str:
    return hashlib.sha256(f"audit view {seed}".encode()).hexdigest()


def taken(frame: Any, rows: Whole) -> Any:
    """These records as a table of its own, which does not know their numbers."""
    return frame.iloc[rows].reset_index(drop=True)


def called(function: Callable[..., Any], table: Any, seed: int) -> Any:
    """The function of a table and a seed, or of a table alone."""
    try:
        inspect.signature(function).bind(table, seed)
    except TypeError:
        return function(table)
    except ValueError:  # a built-in function does not say what it takes
        pass
    return function(table, seed)


def defences_of(given: object, source: Source, secret: Statistic, n: int) -> dict[str, Defence]:
    """All rows, and what the caller wants to compare with them, by name."""
    named = given if isinstance(given, Mapping) else {} if given is None else {VIEW: given}
    if ALL_ROWS in named:
        raise UsageError(f"defences: {ALL_ROWS!r} is what they are compared with. Give them other names.")
    return {ALL_ROWS: AllRows(), **{str(name): _defence(str(name), one, source, secret, n) for name, one in named.items()}}


def _defence(name: str, given: object, source: Source, secret: Statistic, n: int) -> Defence:
    policy = given.policy if isinstance(given, Session) else given
    if isinstance(policy, Policy):
        return view_of(policy, source, secret, n)
    if callable(policy):
        return Made(policy)
    raise UsageError(f"defences: {name} must be a policy, a session or a function of a table. Got a {type(given).__name__}.")


def policies_in(given: object) -> list[Policy]:
    """The policies among what the caller gave."""
    listed = list(given.values()) if isinstance(given, Mapping) else [given]
    found = [one.policy if isinstance(one, Session) else one for one in listed]
    return [one for one in found if isinstance(one, Policy)]


def view_of(policy: Policy, source: Source, secret: Statistic, n: int) -> View:
    """The view that this policy draws of tables of n such records; a refusal where it draws none."""
    plan = _plan(policy, source, n)
    planned_parts(plan, None)  # rows that may not be handed out are no defence of a model
    require_certified(plan)
    cells = cells_of(plan, policy)
    if cells.in_order is not None:
        raise RefusedError(
            "defences: a view with a number sorted into intervals is not drawn here. Give a function that draws it, with a "
            "session and a ledger of its own for each table."
        )
    check_schema(source, cells, None)
    cell = row_cells(source, cells)
    columns = columns_left(source, policy.row_id, policy.left_out)
    if decided(cell, cells, secret.scores):
        return View(cell, cells, columns, plan.guarantee.statement, is_certified(secret.text, plan, policy), caution="")
    return View(cell, cells, columns, promise="", every_table=False, caution=NOT_COVERED)


def _plan(policy: Policy, source: Source, n: int) -> ViewPlan:
    types = source.columns
    return plan_view_of(policy.problem((Query("count"),), n, types, public_cells(policy, n, types, policy.data_path())))


def decided(cell: Whole, cells: Cells, scores: Floats) -> bool:
    """Whether the cell of a record that may be kept tells its score."""
    for k, keep in enumerate(cells.keep):
        inside = scores[cell == k]
        if keep and len(inside) and inside.min() != inside.max():
            return False
    return True


def is_certified(secret: str, plan: ViewPlan, policy: Policy) -> bool:
    """Whether the certificate is about this property of a table, in every table; else it takes the records to say so.

    A population's share is no property of a table. Nor is a table's covered where no event of the table is (rarest_event 1).
    """
    hidden, asked = plan.secret, parse_composition(secret)
    if hidden.parameter is not None:
        return False
    if hidden.whole_columns:
        reads = [column for column, _ in parse_linear(secret).coefficients] if asked is None else asked.reads
        of_tables = policy.reference is not None and policy.reference.rarest_event < 1
        return of_tables and {*reads} <= {*hidden.whole_columns}
    same = hidden.composition is not None and asked is not None and asked.condition == hidden.composition.condition
    return same and asked is not None and asked.condition is not None


def spot_check(view: View, frame: Any, rows: Whole, seed: int) -> None:
    """Draw one table's view by the library too; CertificateError where it is not the same, row by row."""
    key, table = key_of(seed), taken(frame, rows)
    source = open_table(table)
    drawn = draw(source, view.cells, len(rows), None, key)
    left_out = [name for name in source.columns if name not in view.columns]
    theirs = source.engine.to_pyarrow(view_table(source, view.cells, drawn, None, left_out)).to_pylist()
    ours = open_table(view.table(frame, rows, seed))
    if theirs != ours.engine.to_pyarrow(ours.table).to_pylist():
        raise CertificateError(NOT_THE_SAME)


def require_other_records(records: object, policies: list[Policy], *, way_out: str = "") -> None:
    """The records must not be the table that a policy protects."""
    for policy in policies:
        path = policy.data_path()
        if path is None or not isinstance(records, str | Path) or is_remote(path):
            continue
        if identities(path) & identities(records):
            raise DataError(
                f"records: must be public, and this is the table that the policy protects. Give other records{way_out}."
            )
