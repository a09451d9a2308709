"""A policy in English: what is hidden, from whom, who could still learn what, and what to change. No row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.errors import AttrprivError
from attrpriv.formatting import number, some
from attrpriv.methods.base.accuracy import is_warning
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_coverage import FIRST
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.ranking import advice
from attrpriv.policy import Policy
from attrpriv.problem.secret import Secret
from attrpriv.session.derived import computed_line
from attrpriv.session.session import Session


@dataclass(frozen=True)
class Explanation:
    """Headings, each with its sentences."""

    sections: dict[str, tuple[str, ...]]

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": 1, "sections": {name: list(lines) for name, lines in self.sections.items()}}


def explain_policy(path: Path, queries: Sequence[str] | None) -> Explanation:
    """Explain a policy, and how its queries would be answered."""
    policy = Policy.load(path)
    sections = {"What is hidden": tuple(_hidden(policy, secret) for secret in policy.protect)}
    sections["From whom"] = _adversary(policy)
    compositions = [secret for secret in policy.protect if secret.composition is not None]
    with Session(policy=policy) as session:
        if compositions:
            sections["The view"] = _view(session)
        if queries or policy.release:
            sections["How it is answered"], sections["What to change"] = _answered(session, queries)
            said = {line for line in sections["How it is answered"] if is_warning(line)}
            sections["The view"] = tuple(line for line in sections.get("The view", ()) if line not in said)
            # What the section on the view says is not said again.
            told = {*sections["The view"]}
            sections["How it is answered"] = tuple(line for line in sections["How it is answered"] if line not in told)
    sections["Who could still learn what"] = _not_hidden(policy, bool(compositions))
    return Explanation({name: lines for name, lines in sections.items() if lines})


def _hidden(policy: Policy, secret: Secret) -> str:
    # Not "odds change by e^epsilon but with probability delta": that is another promise, which does not follow from this one.
    factor = f"e^{policy.epsilon:g} (about {number(math.exp(policy.epsilon), 3)})"
    times = f"at most {factor} times as likely for one of two such values as for the other"
    strength = f"whatever an answer may show is {times}"
    failing = f", plus a chance of {policy.delta:g}" if policy.delta else ""
    if policy.reference is not None and policy.reference.sorted:
        return f"{secret} (of this table): {strength}{failing}; a view is drawn for this promise."
    if secret.whole_columns:
        columns = " and ".join(secret.whole_columns)
        return (
            f"everything about {columns} of this table, and how they go together: whatever these columns contain, the view "
            f"looks the same{f', but for a chance of {policy.delta:g}' if policy.delta else ''}."
        )
    if secret.composition is not None:
        owner = "of the population behind the table" if secret.parameter else "of this table"
        if not policy.assume:
            return f"{secret.text} {owner}: every composition in the stated range looks the same in the view."
        return f"{secret} ({owner}): {strength}{failing}; in a view, nothing of it shows."
    if secret.entries is not None:
        return f"each entry of {secret.entries}, whatever its neighbours tell: {strength.replace('values', 'states')}{failing}."
    name = secret.text if secret.attribute is None else f"the parameter of {secret.text} in the population behind the table"
    where = f" between {secret.ends[0]:,g} and {secret.ends[1]:,g}" if secret.ends else ""
    near = "" if secret.within is None else f" that are at most {secret.within:,g} apart"
    pairs = f"any two values of {name}{where}{near}"
    return f"{pairs} are indistinguishable: {strength}{failing}."


def _adversary(policy: Policy) -> tuple[str, ...]:
    lines = [line for assumed in policy.assume for line in assumed.explained()]
    if policy.known_rows:
        lines.append(
            f"They may know up to {policy.known_rows:.4g} of the rows: whole rows, or their entries of the query and the "
            "sensitive columns; not other combinations of entries."
        )
    else:
        lines.append("They know no single row of the table.")
    return tuple(lines)


def _view(session: Session) -> tuple[str, ...]:
    try:
        plan: ViewPlan = session.view_plan()
    except AttrprivError as error:
        return (f"No view can be drawn: {error}",)
    if plan.coverage is not None:
        return _reference_view(plan)
    kept = "; ".join(f"{cell.keep:,} rows of {cell.name}" for cell in plan.cells)
    told = "nothing about the composition" if not plan.certificate.epsilon else "no more than the promise allows"
    return (
        f"It keeps {kept}: numbers fixed by the policy, not by the table.",
        f"Any number of queries on it, and any model trained on it, reveal {told}.",
        *plan.notes,
    )


def _reference_view(plan: ViewPlan) -> tuple[str, ...]:
    columns = " and ".join(plan.secret.whole_columns)
    kept = some([f"{cell.keep:,} rows of {cell.name}" for cell in plan.cells], FIRST)
    rows = () if plan.coverage is None else plan.coverage.table()[1:]
    outlook = [f"{name}: {rows} rows ({kept} of the table)" for name, rows, kept, _ in rows]
    return (
        f"It keeps {kept}: numbers fixed by the reference, not by the table.",
        f"Any number of queries on it, and any model trained on it, reveal nothing about {columns}.",
        *plan.notes,
        f"What it would keep: {'; '.join(outlook)}.",
    )


def _answered(session: Session, queries: Sequence[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    ranked = session.ranked(queries)
    if ranked.refused is not None:
        refused = ranked.refused.error()
        return (str(refused),), tuple(one.line for one in refused.causes)
    lines: list[str] = []
    for plan in (ranking.chosen for ranking in ranked.rankings if ranking.chosen is not None):
        said = [line for line in (*plan.remarks, *plan.warnings) if line not in lines]
        lines += [*(_answer_line(plan, k) for k in range(len(plan.queries))), *said]
    lines += map(computed_line, ranked.computed)
    told = dict.fromkeys(line for ranking in ranked.rankings if (line := advice(ranking)) is not None)
    return tuple(lines), tuple(line[0].upper() + line[1:] for line in told)


def _answer_line(plan: Plan, k: int) -> str:
    query = plan.queries[k]
    noise, error = plan.noise_of(query), plan.error_of(query)
    if plan.view is not None:
        return f"{query.text} is computed from the view; no noise is added."
    if query.whole_table:
        return f"{query.text} is public."
    off = f"expect to be off by {error.rmse:.4g}"
    if noise.kind in ("none", "kernel"):
        how = "is released as it is" if noise.kind == "none" else "is moved as little as possible"
        return f"{query.text} {how} ({plan.mechanism}); {off}."
    return f"{query.text} gets {noise.kind} noise of scale {noise.scale:.4g} ({plan.mechanism}); {off}."


def _not_hidden(policy: Policy, view: bool) -> tuple[str, ...]:
    lines = ["Single persons are not protected: an answer may reveal something about one row."]
    if any(secret.entries is not None for secret in policy.protect):
        lines = ["Each entry is hidden on its own: a stretch of several entries is not, and other columns of its row are not."]
    if policy.whole_columns:
        columns = " and ".join(policy.whole_columns)
        lines += [
            f"Somebody who recognises some persons in the view can estimate the table's {columns} from how many of them are "
            "in it.",
            f"Other columns are not hidden, nor what rows with a given {columns} look like.",
        ]
    elif view:
        lines += [
            "Somebody who recognises some persons in the view can estimate the composition from how many of them are in it.",
            "Means of numeric columns are not hidden by a view, only how rows fall into cells.",
        ]
    if len(policy.protect) > 1:
        lines.append("Each secret is hidden on its own; a relation between two secrets is not.")
    if policy.assume:
        lines.append("Somebody who knows the law of the rows better than the tolerance says can learn more than promised.")
        lines.append("Properties of columns that are not named under protect are not hidden at all.")
    lines.append("Somebody who learns the same statistic elsewhere, or another release about this table, learns more.")
    return tuple(lines)
