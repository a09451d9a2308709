"""A view bound to its table: drawn once and recorded, or taken up again from the ledger.

What must never change: the secret state is in the ledger before a single row is handed out, and a ledger that holds a view
never draws another. The plan recorded with it must be the plan asked for: another range would be another view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.accounting.ledger import Ledger
from attrpriv.engines.tables import Source
from attrpriv.engines.view import Cells, Drawn, draw, view_table, write_view
from attrpriv.engines.view_answers import CellSums, view_sums
from attrpriv.errors import RefusedError
from attrpriv.mechanisms.plan import Spread
from attrpriv.mechanisms.subsample import standard_error
from attrpriv.mechanisms.view import ViewPlan, public_shares
from attrpriv.policy import Policy
from attrpriv.queries.query import Query
from attrpriv.release import Answer, Value


@dataclass(frozen=True)
class ViewRows:
    """The rows of a recorded view, not yet read."""

    plan: ViewPlan
    policy: Policy
    source: Source
    cells: Cells
    drawn: Drawn

    @classmethod
    def recorded_or_drawn(
        cls, plan: ViewPlan, policy: Policy, source: Source, ledger: Ledger, time: Callable[[], str]
    ) -> ViewRows:
        cells = _cells(plan, policy)
        entries = ledger.entries()
        if not entries:
            drawn = draw(source, cells, plan.n, policy.row_id)
            public = _public(plan)
            ledger.commit(
                kind="view", time=time(), policy_digest=plan.policy_digest, plan=public, answers=[], state=drawn.to_json()
            )
            return cls(plan, policy, source, cells, drawn)
        ledger.refuse("answer")
        if entries[0].plan != _public(plan):
            raise RefusedError("view: the ledger holds a view drawn for other ranges or cells. Keep to that policy.")
        return cls(plan, policy, source, cells, Drawn.from_json(ledger.view_state() or {}))

    def table(self, identifiers: Sequence[str]) -> Any:
        """The view as a lazy Ibis table."""
        return view_table(self.source, self.cells, self.drawn, self.policy.row_id, identifiers)

    def write(self, table: Any, out: Path, *, force: bool, low_memory: bool) -> None:
        write_view(self.source, table, out, self.plan.rows, force=force, low_memory=low_memory)

    def answers(self, queries: Sequence[Query]) -> tuple[Answer, ...]:
        """Each query from the view, scaled to the public composition."""
        shares = public_shares(self.plan, self.policy.composition)
        return tuple(self._answer(query, shares) for query in queries)

    def _answer(self, query: Query, shares: Mapping[str, float]) -> Answer:
        sums = view_sums(
            self.source, self.cells, self.drawn, self.policy.row_id, query, self.policy.missing, self.policy.bounds
        )
        values = []
        for group, cells in sums.groups.items():
            value, error = _estimate(query, self.plan, cells, shares)
            name = None if query.group_by is None else "(missing)" if group is None else group
            values.append(Value(value, Spread("gaussian" if error else "none", error), name))
        return Answer(query, tuple(values))


def _cells(plan: ViewPlan, policy: Policy) -> Cells:
    conditions = {cell.name: cell.condition for cell in plan.secret.cells(plan.n, policy.bins)}
    return Cells(
        conditions=tuple(conditions[cell.name] for cell in plan.cells),
        keep=tuple(cell.keep for cell in plan.cells),
        low=tuple(cell.low for cell in plan.cells),
        high=tuple(cell.high for cell in plan.cells),
    )


def _public(plan: ViewPlan) -> dict[str, Any]:
    """What identifies a view: the composition, the cells and how many rows of each are kept."""
    return {key: value for key, value in plan.to_json().items() if key in ("schema_version", "secret", "n", "cells")}


def _estimate(query: Query, plan: ViewPlan, sums: Sequence[CellSums], shares: Mapping[str, float]) -> tuple[float, float]:
    """The value at the public composition, and its standard error (of a ratio: by linearisation)."""
    mean = sum(shares[cell.name] * s.total / cell.keep for cell, s in zip(plan.cells, sums, strict=True))
    hits = sum(shares[cell.name] * s.hits / cell.keep for cell, s in zip(plan.cells, sums, strict=True))
    ratio = query.kind == "avg" and not query.plain
    if ratio and hits == 0:
        return 0.0, 0.0
    centre = mean / hits if ratio else 0.0
    sds = [_sd(s, cell.keep, centre) for cell, s in zip(plan.cells, sums, strict=True)]
    error = standard_error(plan.cells, shares, sds)
    if ratio:
        return centre, error / hits
    factor = plan.n if query.kind in ("sum", "count") else 1
    return mean * factor, error * factor


def _sd(sums: CellSums, keep: int, centre: float) -> float:
    """The standard deviation, over a cell's kept rows, of y - centre * i."""
    if keep < 2:
        return 0.0
    total = sums.total - centre * sums.hits
    squares = sums.squares - 2 * centre * sums.total + centre**2 * sums.hits
    return float(max(0.0, (squares - total**2 / keep) / (keep - 1)) ** 0.5)
