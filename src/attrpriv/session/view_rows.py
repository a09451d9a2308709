"""A view bound to its table: drawn once and recorded, or taken up again from the ledger.

What must never change: the secret state is in the ledger before a single row is handed out, and a ledger that holds a view
never draws another. What is recorded with it must be what is asked for: other cells or ranges, another `row_id` or another
table would be another view. A column that it leaves out (`identifiers`) stays out; more may be left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.accounting.hash_chain import Entry
from attrpriv.accounting.ledger import Ledger
from attrpriv.engines.tables import Source
from attrpriv.engines.view import Cells, Drawn, draw, require_same_table, view_table
from attrpriv.engines.view_answers import Viewed, check_queries
from attrpriv.engines.view_file import write_view
from attrpriv.engines.view_values import Group
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.view.plan import public_shares
from attrpriv.policy import Policy
from attrpriv.policy.models import digest_of
from attrpriv.queries.query import Query
from attrpriv.session.release import Answer
from attrpriv.session.view_estimates import NO_ANSWER, NO_HITS, estimates

__all__ = ["NO_ANSWER", "NO_HITS", "ViewRows", "require_answerable"]


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
        _require_certified(plan)
        cells = _cells(plan, policy)
        public = _public(plan, policy, cells)
        first = ledger.first()
        if first is None:
            drawn = draw(source, cells, plan.n, policy.row_id)
            ledger.commit(
                kind="view",
                time=time(),
                policy_digest=plan.policy_digest,
                plan=public,
                answers=[],
                details={"certificate": plan.certificate.to_json(), "table": table},
                state=drawn.to_json(),
            )
            return cls(plan, policy, source, cells, drawn)
        ledger.refuse("answer")
        _require_same_view(first, public, policy)
        drawn = _recorded(ledger)
        if known is None or (known.source, known.drawn) != (source, drawn):
            require_same_table(source, cells, drawn, policy.row_id)
        return cls(plan, policy, source, cells, drawn)

    def table(self) -> Any:
        """The view as a lazy Ibis table."""
        return view_table(self.source, self.cells, self.drawn, self.policy.row_id, self.policy.identifiers)

    def write(self, out: Path, *, low_memory: bool) -> None:
        write_view(self.source, self.table(), out, self.plan.rows, low_memory=low_memory)

    def answers(self, queries: Sequence[Query]) -> tuple[Answer, ...]:
        """Each query from the view, scaled to the public composition."""
        require_answerable(self.source, self.policy, queries)
        shares = public_shares(self.plan, self.policy.composition)
        return tuple(self._answer(query, shares) for query in queries)

    def _answer(self, query: Query, shares: Mapping[str, float]) -> Answer:
        groups = groups_of(self.policy, query, self.source.columns)
        view = Viewed(self.source, self.cells, self.drawn, self.policy.row_id, self.policy.missing, self.policy.bounds, groups)
        return Answer(query, estimates(view, query, self.plan, shares))


def groups_of(policy: Policy, query: Query, types: Mapping[str, str]) -> tuple[Group, ...] | None:
    """The public groups of a query; None where it has none."""
    if query.group_by is None:
        return None
    return tuple(Group(name, condition) for name, condition in policy.groups(query.group_by, types).items())


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
    shown = [name for name in dropped or () if name not in policy.identifiers]
    if shown:
        raise RefusedError(
            f"view: the ledger holds a view without {', '.join(shown)}, and what was left out must stay out. Name it under "
            "identifiers again."
        )


def _recorded(ledger: Ledger) -> Drawn:
    with contextlib.suppress(KeyError, TypeError):
        return Drawn.from_json(ledger.view_state())
    raise RefusedError("view: the ledger's secret state must be as attrpriv wrote it. Got another. Restore it from a backup.")


def require_answerable(source: Source, policy: Policy, queries: Sequence[Query]) -> None:
    """Raise DataError, from the schema alone, where a query reads what the view does not have."""
    check_queries(source, queries, [*policy.identifiers, *(() if policy.row_id is None else (policy.row_id,))])
    for query in queries:
        groups_of(policy, query, source.columns)


def _require_certified(plan: ViewPlan) -> None:
    """The certificate must hold, and the rows kept must be the ones it counted on."""
    plan.certificate.verify()
    if plan.certificate.evidence.view_of() != (plan.n, plan.cells):
        raise CertificateError("view: must keep what its certificate counted on. Nothing was drawn.")


def _cells(plan: ViewPlan, policy: Policy) -> Cells:
    conditions = {cell.name: cell.condition for cell in plan.secret.cells(plan.n, policy.bins)}
    return Cells(
        conditions=tuple(conditions[cell.name] for cell in plan.cells),
        keep=tuple(cell.keep for cell in plan.cells),
        low=tuple(cell.low for cell in plan.cells),
        high=tuple(cell.high for cell in plan.cells),
    )


def _public(plan: ViewPlan, policy: Policy, cells: Cells) -> dict[str, Any]:
    """What identifies a view: its cells, how many rows of each are kept, what tells rows apart, and what is left out."""
    kept = {key: value for key, value in plan.to_json().items() if key in ("schema_version", "secret", "n", "cells")}
    conditions = [None if condition is None else str(condition) for condition in cells.conditions]
    left_out = sorted(set(policy.identifiers))
    return {**kept, "conditions": conditions, "row_id": policy.row_id, "identifiers": left_out}
