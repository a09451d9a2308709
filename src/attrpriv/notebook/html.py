"""Policies, plans, releases, ledgers and audits as HTML, for notebooks.

What must never change: nothing is shown that the text output does not show; every name and sentence is escaped, so that a
column called `<script>` is a name; nothing is loaded from anywhere. Colours are the page's own, so light and dark themes work.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attrpriv.formatting import number, printable, some

if TYPE_CHECKING:
    from attrpriv.audit.release.result import ReleaseAudit
    from attrpriv.audit.result import ModelAudit
    from attrpriv.methods.base.plan import Plan
    from attrpriv.methods.base.view_plan import ViewPlan
    from attrpriv.methods.choice.ranking import Ranking
    from attrpriv.policy.models import Policy
    from attrpriv.problem.refusal import Refusal
    from attrpriv.queries.query import Query
    from attrpriv.session.ledger_record import LedgerRecord
    from attrpriv.session.release import Release

_LINE = "1px solid rgba(128, 128, 128, 0.4)"
_CELL = f"padding: 0.25em 0.8em 0.25em 0; border-bottom: {_LINE}; background: none; color: inherit; vertical-align: top"
# Notebooks typeset what stands between dollar signs; in a name it is part of the name.
_OPEN = '<div class="attrpriv tex2jax_ignore mathjax_ignore" style="font-family: inherit; color: inherit; max-width: 60em">'


def policy_facts(policy: Policy) -> dict[str, str]:
    """What is hidden, from whom and at what budget. Places of the data and the ledger are left out."""
    facts = {
        "hides": "; ".join(map(str, policy.protect)),
        "budget": f"epsilon {policy.epsilon:g}, delta {policy.delta:g}",
        "single rows": "" if policy.individuals == "none" else f"differential privacy, epsilon {policy.individuals.epsilon:g}",
        "from": "; or ".join(map(str, policy.assume)) or "everyone: nothing is assumed",
        "rows": "" if policy.rows is None else f"{policy.rows:,}",
        "known rows": "" if policy.known_rows == 0 else f"a share of {policy.known_rows:g}",
        "ranges": some([f"{name} {low:g} to {high:g}" for name, (low, high) in policy.ranges.items()]),
        "bounds": some([f"{name} {low:g} to {high:g}" for name, (low, high) in policy.bounds.items()]),
        "resolution": some([f"{name} {step:g}" for name, step in policy.resolution.items()]),
        "missing": some([f"{name} {value:g}" for name, value in policy.missing.items()]),
        "identifiers": some(list(policy.identifiers)),
        "releases": some(list(policy.release)),
        "digest": policy.digest,
    }
    return {name: printable(value) for name, value in facts.items() if value}


def policy_html(policy: Policy) -> str:
    """The same as a table."""
    return _page("Policy", [_table("ll", (), list(policy_facts(policy).items()))])


def plan_html(plan: Plan) -> str:
    """Noise, expected errors and what is promised."""
    return parts_plan_html((plan,), ())


def parts_plan_html(plans: Sequence[Plan], lines: Sequence[str]) -> str:
    """The same of plans that are carried out one after the other, with lines on what is computed from their answers."""
    plan = plans[-1]
    head = f"Plan: {plan.mechanism}, epsilon {plan.epsilon:g}, delta {plan.delta:g}, n = {plan.n:,}"
    parts = [part for one in plans for part in (_plan_table(one), _promise(one), _outlook(one.view))]
    return _page(head, [*parts, _lines(lines), "<div>Nothing has been read or released.</div>"])


def ranking_html(ranking: Ranking) -> str:
    """Mechanisms side by side, the chosen one first said; what was refused is folded away."""
    chosen = ranking.chosen
    rows = [
        (f"{plan.mechanism}{', chosen' if plan is chosen else ''}", *_planned(plan, query))
        for plan in ranking.plans
        for query in plan.queries
        if not query.whole_table
    ]
    head = "Nothing can be released" if chosen is None else f"Chosen: {chosen.mechanism}"
    header = ("mechanism", "query", "noise", "expected error", "within 95% of the time")
    causes = () if chosen is not None else tuple(one.line for one in ranking.error().causes)
    told = [_table("llrrr", header, rows) if rows else "", _lines(causes), _folded(ranking)]
    return _page(f"{head}, epsilon {ranking.problem.epsilon:g}, n = {ranking.problem.n:,}", told)


def _folded(ranking: Ranking) -> str:
    reasons = [f"{', '.join(names)}: {reason}" for reason, names in ranking.reasons.items()]
    reasons += [f"for other assumptions: {ranking.others}"] if ranking.elsewhere else []
    if not reasons:
        return ""
    return f"<details><summary>refused: {len(ranking.refused):,} mechanisms</summary>{_listed(reasons)}</details>"


def view_html(view: ViewPlan) -> str:
    """What a view keeps, what it hides, and of a reference view what it shows of the public."""
    reference = view.coverage is not None
    header = ("cell", "kept", "of the public" if reference else "of a number between")
    cells = [
        (c.name, f"{c.keep:,}", f"{c.share or 0:.2%}" if reference else f"{c.low:,} and {c.high:,}") for c in view.first_cells
    ]
    cells += [(f"and {view.more_cells:,} more", "", "")] if view.more_cells else []
    said = f"<div><b>{_safe(view.guarantee.kind)}</b> {_safe(view.guarantee.statement)}.</div>"
    warnings = "".join(f"<div><b>warning</b> {_safe(line)}</div>" for line in view.warnings)
    notes = [note for note in view.notes if note not in view.warnings]
    told = [_table("lrr", header, cells), said, _listed((*view.certificate.assumes, *notes)), warnings, _outlook(view)]
    last = (
        "Nothing has been read or drawn."
        if view.written is None
        else f"Written to {view.written}. Real records: not to publish."
    )
    return _page(f"View: {view.rows:,} of {view.n:,} rows", [*told, f"<div>{_safe(last)}</div>"])


def _outlook(view: ViewPlan | None) -> str:
    """How the rows of a reference view change with its least density, and with fewer hidden columns."""
    if view is None or view.coverage is None:
        return ""
    header, *rows = view.coverage.table()
    return _table("lrrr", header, rows)


def _plan_table(plan: Plan) -> str:
    rows = [_planned(plan, query) for query in plan.queries]
    return _table("lrrr", ("query", "noise", "expected error", "within 95% of the time"), rows)


def _planned(plan: Plan, query: Query) -> tuple[str, ...]:
    noise, error = plan.noise_of(query), plan.error_of(query)
    kind = noise.kind if noise.kind in ("none", "kernel") else f"{noise.kind} {number(noise.scale)}"
    if error.rmse is None or error.alpha95 is None:
        return query.text, kind, "known once read", "known once read"
    return query.text, kind, number(error.rmse), f"±{number(error.alpha95)}"


def release_html(release: Release) -> str:
    """The answers, what they hide and where they are recorded."""
    rows = [*release.rows(), *release.guess_rows()]
    table = _table("lrrl", ("released", "value", f"95% interval for {release.interval_for}", "mechanism"), rows)
    return _page("Release", [table, _promise(release.plan), _lines(release.whereabouts)])


def refusal_html(refusal: Refusal) -> str:
    """Why a query is not answered, and one way out."""
    facts = {"cause": refusal.cause.words, "what helps": refusal.way_out}
    refused = f"{refusal.method}: {refusal.reason}" if refusal.method else refusal.reason
    title = f"Refused: {refusal.query}" if refusal.query else "Refused"
    return _page(title, [_table("ll", (), list(facts.items())), _lines([refused])])


def ledger_html(record: LedgerRecord) -> str:
    """What was released, as it was recorded."""
    if not record.entries:
        return _page("Ledger", ["<div>nothing has been released.</div>"])
    table = _table("llrl", ("entry", "what", "value", "time"), record.rows())
    return _page("Ledger", [table, _lines((*record.budget, f"head digest {record.head}"))])


def audit_html(audit: ModelAudit) -> str:
    """How often each attack was right, what that means, and what would not have been seen."""
    header = ("model", "trained on", "attack", "right", "interval", "epsilon at least", "rows that tell as much")
    rows = [
        (
            one.model,
            one.trained_on,
            f"{one.attack}, chosen" if one.chosen else one.attack,
            f"{one.right:,} of {one.targets:,}",
            f"{one.low:.1%} to {one.high:.1%}",
            f"{one.epsilon:.2f} (at most {one.epsilon_cap:.2f} can show)",
            f"{one.rows:,}",
        )
        for one in audit.results
    ]
    warning = f"<div><b>warning</b> {_safe(audit.warning)}</div>" if audit.warning else ""
    low, high = (f"{value:g}" for value in audit.values)
    blind = "<div>What it would not have seen:</div>" + _listed(audit.would_not_show)
    told = [warning, _table("lllrrrr", header, rows), _lines(audit.shows), blind]
    return _page(f"Audit: {audit.secret}, {low} or {high}, {audit.table_rows:,} rows", told)


def tried_html(audit: ReleaseAudit) -> str:
    """What each experiment on a release showed, beside what is promised, and what would not have been seen."""
    header = ("experiment", "on", "draws", "right at least", "promised at most", "seen from", "found")
    shares = [["" if x is None else f"{x:.1%}" for x in (one.right, one.allowed, one.seen)] for one in audit.tried]
    rows = [
        (one.experiment, one.on, f"{one.draws:,}", *share, "broken" if one.broken else "nothing")
        for one, share in zip(audit.tried, shares, strict=True)
    ]
    blind = "<div>What it would not have seen:</div>" + _listed(audit.would_not_show)
    told = [
        _lines([audit.summary]),
        _table("llrrrrl", header, rows),
        _lines(f"{one.experiment}: {one.told}" for one in audit.tried),
        blind,
    ]
    return _page(f"Audit of {', '.join(audit.queries)}", told)


def _promise(plan: Plan) -> str:
    said = f"<div><b>{_safe(plan.guarantee.kind)}</b> {_safe(plan.guarantee.statement)}.</div>"
    warnings = "".join(f"<div><b>warning</b> {_safe(line)}</div>" for line in plan.warnings)
    return said + _listed((*plan.certificate.assumes, *plan.remarks)) + warnings


def _page(title: str, parts: Sequence[str]) -> str:
    heading = f'<div style="font-weight: bold; margin: 0.3em 0">{_safe(title)}</div>'
    return "\n".join([_OPEN, heading, *(part for part in parts if part), "</div>"])


def _table(sides: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose columns go to these sides, l or r."""
    lines = ['<table style="border-collapse: collapse; background: none; margin: 0.3em 0">']
    if header:
        lines.append(f"<thead>{_row('th', sides, header)}</thead>")
    lines += ["<tbody>", *(_row("td", sides, row) for row in rows), "</tbody></table>"]
    return "\n".join(lines)


def _row(tag: str, sides: str, cells: Sequence[str]) -> str:
    style = {"l": f"{_CELL}; text-align: left", "r": f"{_CELL}; text-align: right"}
    made = (f'<{tag} style="{style[side]}">{_safe(cell)}</{tag}>' for side, cell in zip(sides, cells, strict=True))
    return f'<tr style="background: none">{"".join(made)}</tr>'


def _listed(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_safe(line)}</li>" for line in lines)
    return f'<ul style="margin: 0.3em 0">{items}</ul>' if items else ""


def _lines(lines: Iterable[str]) -> str:
    return "".join(f'<div style="overflow-wrap: anywhere">{_safe(line)}</div>' for line in lines)


def _safe(text: str) -> str:
    return html.escape(printable(text), quote=True)
