"""What `attrpriv check` finds: public facts about a policy, no row read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.cli.guard import refusals_of
from attrpriv.engines.tables import open_table
from attrpriv.errors import DataError, RefusedError, UsageError
from attrpriv.methods.base.accuracy import is_warning
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_coverage import Coverage
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.ranking import advice
from attrpriv.methods.choice.warnings import weak_lines
from attrpriv.policy import Policy
from attrpriv.problem.places import is_remote, is_url
from attrpriv.queries.derived import parts_of
from attrpriv.session.derived import plans_of
from attrpriv.session.named_columns import padded, require_columns, require_listed
from attrpriv.session.session import Session
from attrpriv.session.split import read_questions

# Of each entry of a plan.
_KEPT = ("query", "mechanism", "noise", "error", "guarantee", "derived", "parts")


@dataclass(frozen=True)
class Check:
    """A policy that can be read, with what it can and cannot prove."""

    policy: Policy
    plan: Plan | None
    refusal: RefusedError | UsageError | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()  # those of the notes that must not be missed
    view: ViewPlan | None = None

    @property
    def coverage(self) -> Coverage | None:
        """What a reference view shows, where there is one."""
        of_plan = None if self.plan is None else next((one.view for one in plans_of(self.plan) if one.view is not None), None)
        shown = self.view or of_plan
        return None if shown is None else shown.coverage

    def to_json(self) -> dict[str, Any]:
        queries = [] if self.plan is None else self.plan.entries(chosen=True)
        return {
            "schema_version": 1,
            "ok": self.refusal is None,
            "policy_digest": self.policy.digest,
            "protect": [str(secret) for secret in self.policy.protect],
            "queries": [{key: row[key] for key in _KEPT if key in row} for row in queries],
            "refused": None if self.refusal is None else str(self.refusal),
            **refusals_of(self.refusal),
            "notes": list(self.notes),
            **({} if self.coverage is None else {"view": self.coverage.to_json()}),
        }


def missing_table(policy: Policy) -> str | None:
    """One line where the table is not there and the policy's own number of rows is planned for."""
    place = policy.data_path()
    if policy.rows is None or place is None or is_remote(place) or _is_pattern(place) or Path(place).exists():
        return None
    return (
        f"{Path(place).name} is not there: this is for the {policy.rows:,} rows that the policy declares. "
        "Names and types of columns were not checked."
    )


def look_at_schema(policy: Policy, queries: Sequence[str] | None) -> str | None:
    """Compare names and types with those of a table in PostgreSQL, or of a pattern's files; a line where nothing was compared.

    With `rows` declared a plan needs no table, and so opens none; whoever checks a policy wants it compared all the same.
    """
    place = policy.data_path()
    if place is None or policy.rows is None or not (is_remote(place) or _is_pattern(place)):
        return None
    if is_remote(place) and not is_url(place):
        return "Spark was not asked: names and types of columns were not checked."
    try:
        source = open_table(place)
    except (DataError, UsageError) as error:
        return f"{error} Names and types of columns were not checked."
    require_columns(parts_of(read_questions(queries, policy.queries())), policy, source.columns)
    return None


def _is_pattern(place: str | Path) -> bool:
    return bool(set("*?[") & set(str(place)))


def _of_promise(policy: Policy) -> tuple[str, ...]:
    """What is weak about the promise, whatever is asked; an error where it hides nothing."""
    with Session(policy=policy) as session:
        try:
            problem = session.problem("count(*)")
        except DataError as error:  # without a table nobody knows how many rows there are
            return (f"{error} What is hidden was not checked.",)
    return weak_lines(problem, problem.epsilon, problem.delta)


def _of_view(policy: Policy) -> Check:
    """A policy that hides everything about columns is complete without a query: its view is there to be worked on."""
    with Session(policy=policy) as session:
        try:
            view = session.view_plan()
        except (RefusedError, UsageError) as refused:
            return Check(policy, None, refused, ())
    extra = [line for line in (missing_table(policy),) if line]
    return Check(policy, None, None, (*view.notes, *extra), view.warnings, view)


def check_policy(path: Path, queries: Sequence[str] | None) -> Check:
    """Read the policy, compare it with the table's schema, and plan its queries together."""
    policy = Policy.load(path)
    require_listed((), policy)
    if not queries and not policy.release and policy.whole_columns:
        return _of_view(policy)
    if not queries and not policy.release:
        weak = _of_promise(policy)
        told = ("no query is named: add release to the policy, or give a query.", *weak)
        return Check(policy, None, None, told, tuple(line for line in weak if is_warning(line)))
    unseen = look_at_schema(policy, queries)
    with Session(policy=policy) as session:
        try:
            ranked = session.ranked(queries)
        except RefusedError as refused:  # the ledger leaves nothing for it, or no part of a computation can be released
            return Check(policy, None, refused, ())
        plan = ranked.plan
        held = session.ledger_note(queries, plan)
    if plan is None or ranked.refused is not None:
        return Check(policy, None, None if ranked.refused is None else ranked.refused.error(), ())
    advised = dict.fromkeys(line for line in map(advice, ranked.rankings) if line)
    spaces = padded(policy, parts_of(read_questions(queries, policy.queries())))
    warned = (*plan.warnings, *advised)
    extra = [line for line in (held, spaces, unseen, missing_table(policy)) if line]
    return Check(policy, plan, None, (*plan.remarks, *warned, *extra), warned)
