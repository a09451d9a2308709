"""What the page says: from a session's public facts, section by section.

What must never change: nothing here opens the table for its rows; plans, ledgers and policies are all that is shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from attrpriv import __version__
from attrpriv.errors import AttrprivError, UsageError
from attrpriv.formatting import number, percent
from attrpriv.methods.base.belief import prior_near
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tells import Outlook, Tells
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.error_curve import error_curve
from attrpriv.methods.choice.ranking import Ranking
from attrpriv.pictures import subjects
from attrpriv.pictures.marks import Picture
from attrpriv.policy.models import Policy
from attrpriv.policy.sources import StatedNumber, stated_numbers
from attrpriv.report.page import MISSING, figure, heading, listed, page, paragraph, table, verbatim
from attrpriv.session.derived import computed_line
from attrpriv.session.session import Session
from attrpriv.session.split import Queries, Ranked

# Distances at which right guesses are told, in units of the promised one.
_TIMES = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
# Beyond so many rows a belief takes minutes where laws are enumerated.
_MOST_ENUMERATED = 2000
# Numbers and recorded answers that are listed; a page is to be read.
_MOST_LISTED = 60


@dataclass(frozen=True)
class Facts:
    """Everything the page is made of."""

    session: Session
    ranked: Ranked | None
    view: ViewPlan | None
    refusal: AttrprivError | None
    explained: Mapping[str, Sequence[str]]
    note: str | None = None
    """what the ledger means for what is asked"""

    @property
    def policy(self) -> Policy:
        return self.session.policy

    @property
    def chosen(self) -> tuple[tuple[Ranking, Plan], ...]:
        """The plans that would be carried out, each with what it was compared with."""
        rankings = () if self.ranked is None else self.ranked.rankings
        return tuple((one, one.chosen) for one in rankings if one.chosen is not None)

    @property
    def numbers(self) -> tuple[StatedNumber, ...]:
        return stated_numbers(self.policy)

    @property
    def missing(self) -> int:
        return sum(one.source is None for one in self.numbers)

    @property
    def warnings(self) -> tuple[str, ...]:
        plans = [line for _, plan in self.chosen for line in plan.warnings]
        return tuple(dict.fromkeys((*plans, *(() if self.view is None else self.view.warnings))))


def gather(session: Session, explained: Mapping[str, Sequence[str]], queries: Queries | None = None) -> Facts:
    """Plan what the policy releases, or its view; a refusal is a fact, too."""
    policy, ranked, view = session.policy, None, None
    try:
        if queries or policy.release:
            ranked = session.ranked(queries)
        else:
            view = session.view_plan()
    except AttrprivError as error:
        return Facts(session, None, None, error, explained)
    refused = None if ranked is None or ranked.refused is None else ranked.refused.error()
    note = None if ranked is None or refused is not None else _note(session, queries, ranked)
    return Facts(session, ranked, view, refused, explained, note)


def _note(session: Session, queries: Queries | None, ranked: Ranked) -> str | None:
    try:
        note = session.ledger_note(queries, ranked.plan)
    except AttrprivError:  # "Earlier releases" says why the ledger was not read
        return None
    return None if note is None else note[0].upper() + note[1:]


def report_html(facts: Facts, policy_text: str, policy_name: str) -> str:
    """The whole page."""
    title, subtitle = report_title(facts)
    foot = f"Made by attrpriv {__version__} from the policy and the ledger. No row of the table was read for this page."
    return page(title, subtitle, report_parts(facts, policy_text, policy_name), foot)


def report_title(facts: Facts) -> tuple[str, str]:
    """What the page is about, and what is hidden."""
    asked = ", ".join(facts.policy.release) or "a view"
    hidden = "; ".join(secret.text for secret in facts.policy.protect)
    return f"Release of {asked}", f"Hidden: {hidden}. For whoever must approve it."


def report_parts(facts: Facts, policy_text: str, policy_name: str) -> list[str]:
    """Its sections, one after the other."""
    sections = (_summary, _signatures, _outsider, _readers, _assumptions, _wrong, _still, _earlier)
    parts = [part for section in sections for part in section(facts)]
    return [*parts, *_policy(facts, policy_text), *_commands(policy_name)]


def _summary(facts: Facts) -> Iterator[str]:
    yield heading("Summary")
    if facts.refusal is not None:
        yield paragraph(f"Nothing can be released with the policy as it is: {facts.refusal}", "warn")
    else:
        yield paragraph("The release can be proved to keep the promise below, under the assumptions below.", "good")
    yield listed(facts.explained.get("What is hidden", ()))
    yield listed(_short(facts))
    yield "".join(paragraph(f"Warning: {line}", "warn") for line in facts.warnings)


def _short(facts: Facts) -> Iterator[str]:
    for _, plan in facts.chosen:
        for query in plan.queries:
            error = plan.error_of(query)
            off = (
                "its error is known once the view is read"
                if error.alpha95 is None
                else f"off by at most {number(error.alpha95)}"
            )
            yield f"{query.text}: {off}{'' if error.alpha95 is None else ', 95 times of 100'} ({plan.mechanism})."
    if facts.note is not None:
        yield facts.note
    for told in _told(facts):
        yield f"An outsider who must guess between two {told}"
    if facts.view is not None:
        yield f"A view of {facts.view.rows:,} of {facts.view.n:,} rows, to compute on, not to publish."
    numbers = len(facts.numbers)
    if numbers:
        yield f"The policy states {numbers:,} numbers; {facts.missing:,} of them name no source."


def _told(facts: Facts) -> Iterator[Tells]:
    for _, plan in facts.chosen:
        if plan.problem is not None and not plan.problem.public:
            yield plan.tells()
    if facts.view is not None:
        yield facts.view.tells()


def _signatures(facts: Facts) -> Iterator[str]:
    yield heading("Signatures")
    yield paragraph(f"For the policy with the digest {facts.policy.digest}.", "dim")
    rows = [(role, "", "", "") for role in ("Owner of the data", "Privacy", "Approved by")]
    yield table("To be signed once every section below is read", ("Role", "Name", "Date", "Signature"), rows, kind="sign")


def _outsider(facts: Facts) -> Iterator[str]:
    yield heading("What an outsider could learn")
    yield paragraph(
        "A fair coin chooses one of two values of the secret. How often would the best guess be right, from the exact answers "
        "and from what is released? A coin is right half of the time."
    )
    if not facts.chosen and facts.view is None:
        yield paragraph("Nothing would be released.")
    for place, (_, plan) in enumerate(facts.chosen):
        for k, secret in enumerate(() if plan.problem is None or plan.problem.public else plan.problem.secrets):
            yield from _of_secret(plan, secret.text, f"s{place}-{k}")
    if facts.view is not None:
        yield paragraph(str(facts.view.tells()))
        yield figure(subjects.trade_off(facts.view.tells()), "view-tells")


def _of_secret(plan: Plan, secret: str, name: str) -> Iterator[str]:
    yield heading(f"{secret}, by {', '.join(query.text for query in plan.queries)}", 3)
    promised = plan.tells(secret=secret)
    yield figure(subjects.trade_off(promised), f"{name}-tells")
    if promised.promised is None:
        yield paragraph(str(promised))
        return
    told = list(_at_distances(plan, promised))
    if any(one.after.how == "bound" and one.after.right > one.before.right for one in told):
        yield paragraph('"At most" is what the proof guarantees. It can stand above what the exact answers reveal.', "dim")
    yield table("Right guesses", ("Two values", "exact answers", "this release", "promise"), [_row(one) for one in told])
    known = [one for one in told if one.after.how != "unknown"]
    if len(known) > 1:
        yield figure(subjects.fading(known), f"{name}-fading")
    if is_quick(plan):
        yield figure(subjects.believed(plan.belief(prior_near(plan, secret), secret=secret)), f"{name}-belief")


def is_quick(plan: Plan) -> bool:
    return plan.certificate.evidence.told_by.searched or plan.n <= _MOST_ENUMERATED


def _at_distances(plan: Plan, promised: Tells) -> Iterator[Tells]:
    """Round ones around the promised distance, those that two values of the range can have alone."""
    scale, unit = Outlook.of(plan, promised.secret).scale, promised.promised or 1.0
    for distance in sorted({scale.nearest(float(f"{unit * times:.6g}")) for times in _TIMES} - {0.0}):
        told = plan.tells(distance, secret=promised.secret)
        if told.after.how != "unknown" or distance <= unit:
            yield told


def _row(told: Tells) -> tuple[str, ...]:
    tests = [(one.how, percent(one.right)) for one in (told.before, told.after)]
    shown = ["not known" if how == "unknown" else f"at most {right}" if how == "bound" else right for how, right in tests]
    return (f"{told.distance or 0:,.10g} apart", *shown, "inside" if told.inside else "beyond")


def _readers(facts: Facts) -> Iterator[str]:
    yield heading("What readers get")
    rows = [_answer(plan, place) for _, plan in facts.chosen for place in range(len(plan.queries))]
    if rows:
        header = ("Released", "mechanism", "noise", "expected error", "95 times of 100 within")
        yield table("Answers and their errors, known before any row is read", header, rows, numbers=(3, 4))
    yield paragraph(facts.note or "", "warn")
    yield listed(computed_line(one) for one in (() if facts.ranked is None else facts.ranked.computed))
    for place, (ranking, plan) in enumerate(facts.chosen):
        for kind, made in enumerate((_mechanisms(ranking), _epsilon(ranking))):
            yield "" if made is None else figure(made, f"r{place}-{kind}")
        yield "" if plan.view is None else figure(subjects.kept(plan.view), f"r{place}-view")
    if facts.view is not None:
        yield figure(subjects.kept(facts.view), "view-kept")
    viewed = facts.view is not None or any(plan.view is not None for _, plan in facts.chosen)
    of_view = facts.explained.get("The view", ()) if viewed or not facts.chosen else ()  # a view that is not drawn is no answer
    yield listed((*of_view, *facts.explained.get("What to change", ())))


def _answer(plan: Plan, place: int) -> tuple[str, ...]:
    query = plan.queries[place]
    noise, error = plan.noise_of(query), plan.error_of(query)
    kind = noise.kind if noise.kind in ("none", "kernel") else f"{noise.kind}, scale {number(noise.scale)}"
    errors = ["known once read" if one is None else number(one) for one in (error.rmse, error.alpha95)]
    return query.text, plan.mechanism, kind, errors[0], errors[1] if error.alpha95 is None else f"±{errors[1]}"


def _mechanisms(ranking: Ranking) -> Picture | None:
    try:
        return subjects.mechanisms(ranking)
    except UsageError:  # no error is known before a row is read
        return None


def _epsilon(ranking: Ranking) -> Picture | None:
    try:
        return subjects.against_epsilon(error_curve(ranking))
    except UsageError:
        return None


def _assumptions(facts: Facts) -> Iterator[str]:
    yield heading("The assumptions, to be ticked")
    yield paragraph("The promise holds where these do. They are stated by the owner and were not tested on the table.")
    told = [line for _, plan in facts.chosen for line in plan.certificate.assumes]
    told += [] if facts.view is None else facts.view.certificate.assumes
    yield listed(dict.fromkeys(told), "checks")
    yield heading("From whom it is hidden", 3)
    yield listed(facts.explained.get("From whom", ()))
    if not facts.numbers:
        return
    first = sorted(facts.numbers, key=lambda one: one.source is not None)[:_MOST_LISTED]
    rows = [(one.place, one.value, one.source or MISSING) for one in facts.numbers if one in first]
    more = len(facts.numbers) - len(rows)
    yield heading("Where each number comes from", 3)
    yield table("Stated by the policy, with the source that it names", ("Number", "value", "source"), rows)
    yield paragraph(f"And {more:,} more with a source." if more else "", "dim")
    if facts.missing:
        yield paragraph(f"{facts.missing:,} of {len(facts.numbers):,} numbers name no source: add them under source.", "warn")


def _wrong(facts: Facts) -> Iterator[str]:
    yield heading("What if a number is wrong?")
    if not facts.chosen and facts.view is None:
        yield paragraph("Nothing would be released.")
    for _, plan in facts.chosen:
        if not plan.model_error:
            yield paragraph(f"{plan.mechanism}: what would really hold is not computed for this plan.")
            continue
        rows = [
            (
                f"slopes or probabilities off by {row.off_by:.0%}",
                "no epsilon holds" if row.epsilon is None else number(row.epsilon, 3),
            )
            for row in plan.model_error
        ]
        caption = f"{plan.mechanism}: the epsilon that really holds (promised: {plan.epsilon:g})"
        yield table(caption, ("Off by", "epsilon"), rows, numbers=(1,))
    if facts.view is not None:
        yield paragraph("A view rests on no law of the rows, but on the ranges and the reference that the policy states.")


def _still(facts: Facts) -> Iterator[str]:
    yield heading("Who could still learn what")
    yield listed(facts.explained.get("Who could still learn what", ()))


def _earlier(facts: Facts) -> Iterator[str]:
    yield heading("Earlier releases")
    try:
        record = facts.session.ledger
    except AttrprivError as error:
        yield paragraph(f"The ledger was not read: {error}")
        return
    if not record.entries:
        yield paragraph("Nothing has been released of this table, as far as its ledger knows.")
        return
    rows = record.rows()
    yield table("As they were recorded", ("Entry", "what", "value", "time"), rows[-_MOST_LISTED:], numbers=(2,))
    yield listed((*record.budget, f"head digest {record.head}"))
    left = [one for one in record.left() if math.isfinite(one[1])]
    yield figure(subjects.budget(left), "budget") if left else ""


def _policy(facts: Facts, text: str) -> Iterator[str]:
    yield heading("The policy")
    yield paragraph(f"Digest {facts.policy.digest}: of all that the promise depends on.", "dim")
    yield verbatim(text)


def _commands(name: str) -> Iterator[str]:
    yield heading("Commands")
    told = {
        "check": "is it complete and provable?",
        "plan": "the mechanisms side by side",
        "explain": "each line in words",
        "release": "answer, and record it",
        "ledger --verify": "is the record whole?",
    }
    yield table(
        "To see for yourself, and to release",
        ("Command", "what it does"),
        [
            (f"attrpriv {command.partition(' ')[0]} {name} {command.partition(' ')[2]}".rstrip(), does)
            for command, does in told.items()
        ],
    )
