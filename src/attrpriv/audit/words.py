"""An audit in words: what was asked, what was found, what would not have been seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrpriv.audit.result import Attacked, ModelAudit


def question(audit: ModelAudit) -> str:
    low, high = (f"{value:g}" for value in audit.values)
    return (
        f"Does a model reveal whether {audit.secret} of its {audit.table_rows:,} rows was {low} or {high}? "
        f"{audit.targets:,} models of fresh tables were attacked, by somebody who had learned from {audit.shadows:,} others."
    )


def shows(audit: ModelAudit) -> tuple[str, ...]:
    """A paragraph for each kind of model, and what holds for all of them."""
    together = f"Intervals and bounds hold all at once, with {audit.confidence:.0%} confidence."
    return (*(_found(audit, one) for one in audit.chosen), together)


def _found(audit: ModelAudit, one: Attacked) -> str:
    guesses = f"{one.right:,} of {one.targets:,} right, {one.share:.1%} ({one.low:.1%} to {one.high:.1%})"
    if one.leaks:
        told = f"{one.name}: yes, its {one.attack} give it away. {guesses}. {_as_much(audit, one)} {_epsilon(audit, one)}"
    else:
        told = (
            f"{one.name}: no attack that was tried, with {audit.shadows:,} shadows, beat a coin: {guesses}. A leak by which "
            f"guesses are right less than {audit.least_seen:.1%} of the time may not have been seen."
        )
    return " ".join(part for part in (told, _other_leaks(audit, one), _proved(audit, one), one.caution) if part)


def _other_leaks(audit: ModelAudit, one: Attacked) -> str:
    """An attack in the background that found more than the chosen one is not kept back."""
    others = [r for r in audit.results if (r.model, r.trained_on) == (one.model, one.trained_on) and r.leaks and not r.chosen]
    if one.leaks or not others:
        return ""
    return f"But its {others[0].attack} give it away: {others[0].right:,} of {others[0].targets:,} right."


def _as_much(audit: ModelAudit, one: Attacked) -> str:
    if one.rows_low >= audit.table_rows:
        return f"That is as much as the values of all {audit.table_rows:,} rows reveal."
    span = f"{one.rows_low:,} to {one.rows_high:,}"
    return f"That is as much as the values of {one.rows:,} of the rows reveal ({span})."


def _epsilon(audit: ModelAudit, one: Attacked) -> str:
    cap = f"so many targets can show {one.epsilon_cap:.2f} at most"
    return f"With delta {audit.delta:g}, epsilon is at least {one.epsilon:.2f}; {cap}."


def _proved(audit: ModelAudit, one: Attacked) -> str:
    if not one.promise:
        return ""
    leaking = any(r.leaks for r in audit.results if (r.model, r.trained_on) == (one.model, one.trained_on))
    if not leaking and one.every_table:
        return f"That is proved: {one.promise}. The experiment checks the code."
    if not leaking:
        return (
            f"In these records, the cell of a row that is kept tells what it adds to {audit.secret}. So this holds for tables "
            f"of such records: {one.promise}. It is a check on the records, and no proof for other tables."
        )
    return (
        f"This is proved not to be: {one.promise}. Once in {1 / (1 - audit.confidence):,.0f} audits it happens by chance. "
        "Repeat it with another seed, and report it if it happens again (SECURITY.md)."
    )


def would_not_show(audit: ModelAudit) -> tuple[str, ...]:
    low, high = (f"{value:g}" for value in audit.values)
    made_of = "the owner's table" if audit.source == "own" else "these records"
    return (
        *audit.notes,
        "A cleverer attack. These are linear in what they see; one with more shadows, or that looks elsewhere, may find more.",
        f"Other secrets, values other than {low} and {high}, and tables unlike {made_of}.",
        "The model that is trained already. It is the recipe that was attacked: the training function on tables like these.",
        "Whether somebody was in the table, or what one row says. That is another question, and needs another audit.",
    )
