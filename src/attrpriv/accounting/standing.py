"""Where a table stands: what its last certificate covers, which policy is in force. And the rule for what may come next.

Every release with noise has a joint certificate: a proof for everything released so far. So a ledger keeps its promise if each
certificate holds, promises no more than the policy, and continues the one before (`Certificate.follows`). Nothing is added up
here: guarantees of single releases do not add up.

| field of an account | |
|---|---|
| joint | the entry whose certificate covers all that was released with noise |
| policy | the entry that states the policy in force (`stated` is there) |
| n, table | the table that the ledger belongs to |
| individuals | row-level epsilons, which do add up |

What must never change: an entry is decided on by what the ledger holds at that moment, inside the write transaction, and the
same function decides again, from the record alone, in `attrpriv ledger --recheck`. What no rule covers is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from attrpriv.accounting.hash_chain import SPENDS, Entry, History, Kind
from attrpriv.errors import CertificateError, PolicyError, RefusedError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.policy.change import require_tighter
from attrpriv.policy.models import Policy, digest_of


class StaleError(RefusedError):
    """Another process released something since this plan was made: plan again."""


@dataclass(frozen=True)
class Standing:
    """What the next release has to know."""

    joint: int | None = None
    policy: int | None = None
    n: int | None = None
    table: str | None = None
    individuals: float = 0.0
    view: bool = False
    undrawn: bool = False
    """Whether that view could not be drawn, so that nothing is ever answered from it."""

    @classmethod
    def of(cls, history: History) -> Standing:
        head = history.head
        if head is None:
            return cls()
        if head.kind in ("view", "answer"):
            return cls(view=True, undrawn=is_undrawn(head))
        if not isinstance(head.account, Mapping):
            raise CertificateError(f"entry {head.number} must have its account. Got none.")
        return cls(**{key: value for key, value in head.account.items() if key != "stated"})

    def to_json(self) -> dict[str, Any]:
        kept = {"joint": self.joint, "policy": self.policy, "n": self.n, "table": self.table}
        return {**kept, "individuals": self.individuals}


def require_same_table(name: str, standing: Standing, table: str | None, n: int) -> None:
    """A ledger belongs to one table: its name and its number of rows stay, as far as they are known."""
    for key, was, now in (("table", standing.table, table), ("rows", standing.n, n)):
        if None not in (was, now) and was != now:
            raise RefusedError(
                f"{name}: belongs to one table, and its {key} must stay as it was ({was}). Got {now}. What was released is not "
                "about another table, nor about one that changed; another table needs a ledger of its own."
            )


@dataclass(frozen=True)
class LedgerState:
    """A standing with what it points to. `stated` is the policy in force, as JSON: None where nothing was released."""

    standing: Standing
    certificate: Certificate | None = None
    stated: Mapping[str, Any] | None = None
    policy_digest: str | None = None

    @classmethod
    def of(cls, history: History) -> LedgerState:
        standing = Standing.of(history)
        joint = None if standing.joint is None else history.entry(standing.joint)
        holder = None if standing.policy is None else history.entry(standing.policy)
        return cls(
            standing,
            None if joint is None else certificate_of(joint),
            None if holder is None else stated_by(holder),
            None if holder is None else holder.policy_digest,
        )

    def left(self, epsilon: float, delta: float) -> float:
        """The share of the budget of the policy in force that nobody has used; of this one where none is."""
        if self.stated is not None:
            epsilon, delta = self.stated["epsilon"], self.stated["delta"]
        if self.standing.view:
            return 0.0
        if self.certificate is None:
            return 1.0
        # A fitted assumption's risk may come on top of the policy's delta.
        return self.certificate.left(epsilon, max(delta, self.certificate.delta))


def certificate_of(entry: Entry) -> Certificate:
    try:
        return Certificate.from_json(entry.plan[0]["certificate"])
    except PolicyError as error:
        reason = str(error)
    raise RefusedError(
        f"entry {entry.number} rests on a proof that this version does not know. {reason} attrpriv ledger shows what it holds; "
        "nothing more can be released on top of it."
    )


def stated_by(entry: Entry) -> Mapping[str, Any]:
    """The policy that an entry states; its digest is that of the entry."""
    stated = entry.account.get("stated") if isinstance(entry.account, Mapping) else None
    if not isinstance(stated, Mapping) or digest_of(stated) != entry.policy_digest:
        raise CertificateError("must state the policy of its digest. Got something else.")
    return stated


@dataclass(frozen=True)
class Candidate:
    """What is to be recorded next: a release, or its failure, with its certificate and the policy it was planned under."""

    kind: Kind
    policy_digest: str
    stated: Mapping[str, Any] | None
    table: str | None
    n: int
    certificate: Certificate
    planned_on: int | None = None
    queries: tuple[str, ...] = ()

    @classmethod
    def of(cls, entry: Entry, history: History) -> Candidate:
        """The candidate that this entry was, for deciding again."""
        told = entry.account if isinstance(entry.account, Mapping) else {}
        on = Standing.of(history).joint
        return cls(
            entry.kind,
            entry.policy_digest,
            told.get("stated"),
            told.get("table"),
            entry.plan[0]["n"],
            certificate_of(entry),
            on,
        )

    def rule(self, name: str) -> Accountant:
        """Decides on this candidate in the ledger of this (printable) name; gives its account."""
        return lambda history: self._decide(name, history)

    def _decide(self, name: str, history: History) -> dict[str, Any] | None:
        known = LedgerState.of(history)
        if known.standing.view:
            raise mixed(name, "a view", "a release with noise")
        if any(history.answering(query) is not None for query in self.queries):
            raise StaleError(f"{name}: one of these was answered since this was planned. Try again.")
        require_same_table(name, known.standing, self.table, self.n)
        after = self._joined(name, history, known, self._under_policy(name, history, known))
        account = after.to_json()
        return account if self.policy_digest == known.policy_digest else {**account, "stated": dict(self.stated or {})}

    @property
    def _reads(self) -> bool:
        return self.certificate.evidence.reads_rows

    def _under_policy(self, name: str, history: History, known: LedgerState) -> Standing:
        """The standing under this candidate's policy. One that differs is stated here, and must be tighter.

        It comes with a certificate for everything so far under it: a policy is never in force without that. A public constant
        has none: its policy is stated, so that its value can be checked, and the one in force stays.
        """
        here = replace(known.standing, n=known.standing.n or self.n, table=known.standing.table or self.table)
        if self.policy_digest == known.policy_digest:
            return here
        if digest_of(self.stated or {}) != self.policy_digest:
            raise CertificateError("must state the policy of its digest. Got another.")
        if len(history) and not self._reads:
            return here
        if known.certificate is not None and known.stated is not None:
            require_tighter(name, Policy.from_json(known.stated), Policy.from_json(self.stated or {}))
        return replace(here, policy=len(history) + 1)

    def _joined(self, name: str, history: History, known: LedgerState, after: Standing) -> Standing:
        """The standing after a release whose certificate continues everything so far."""
        certificate = self.certificate
        if not self._reads:
            return after
        policy = known.stated if after.policy == known.standing.policy else self.stated
        _require_promised(certificate, policy or {})
        if self.planned_on != known.standing.joint:
            raise StaleError(f"{name}: something was released since this was planned. Try again.")
        if not certificate.follows(known.certificate):
            raise RefusedError(
                f"{name}: no rule covers this release together with the earlier ones, which may tell more together than alone."
            )
        rows = _rows_of(certificate)
        single = (policy or {}).get("individuals", "none")
        kept = certificate.individuals is not None and after.individuals + rows <= _epsilon(single) * SOLVED_UP
        if single != "none" and not kept:
            raise RefusedError(f"{name}: individuals: single persons were promised more than is left for this release.")
        return replace(after, joint=len(history) + 1, individuals=after.individuals + rows)


def _rows_of(certificate: Certificate) -> float:
    """The row-level epsilon that a release spends."""
    return 0.0 if certificate.individuals is None else certificate.individuals.epsilon or 0.0


def _epsilon(individuals: Any) -> float:
    return float(individuals["epsilon"]) if isinstance(individuals, Mapping) else 0.0


def _require_promised(certificate: Certificate, policy: Mapping[str, Any]) -> None:
    """No more than the policy's budget; a fitted assumption's risk may come on top where the policy accepts it."""
    small = certificate.delta <= policy["delta"] or policy["accept_fit_risk"]
    if not (certificate.epsilon <= policy["epsilon"] and small):
        raise CertificateError("must promise what the policy asks for. Got less.")


def spent(name: str, known: LedgerState) -> RefusedError:
    """Nothing is left, or no rule leads on from what was released."""
    evidence = None if known.certificate is None else known.certificate.evidence
    held, goes_on = ("", False) if evidence is None else (evidence.words, evidence.goes_on)
    why = "all of it is used by what it holds" if goes_on else f"no rule leads on from {held}"
    return RefusedError(
        f"{name}: must have something left of the table's budget. Got none: {why}. Guarantees for single releases do not add "
        "up: answers that are harmless alone can reveal the secret together. Recorded answers are repeated at no cost; next "
        "time, ask for everything together, or list it under release so that each gets its share."
    )


def decide_again(name: str, entry: Entry, history: History) -> Any:
    """The account that this entry must have had."""
    if entry.kind in ("view", "answer"):
        return require_view(name, entry.kind, history)
    return Candidate.of(entry, history).rule(name)(history)


# ----------------------------------------------------------------------------------------------------------------------------
# The rule for views: one view and its answers, and nothing else; and, without a joint proof, one release call alone.
#
# What must never change: guarantees for single releases do not add up. Two answers that are harmless alone can reveal the
# secret together, so what no rule covers is refused. A release whose weights failed spends the ledger as any other: that it
# failed is what it told.
#
# A rule is an `Accountant`: given what the ledger holds, it raises `RefusedError`, or returns what the new entry keeps for it
# as its `account` (here nothing). It is asked inside the write transaction, so no other process can come between.


Accountant = Callable[[History], Any]
# What tells of the table itself, and not of a view.
_OF_THE_TABLE = (*SPENDS, "outside")


# In the record of a view: the noisy test before it, where single persons are protected. Such a view is answered from once.
PERSONS = "persons"


def protects_persons(entry: Entry | None) -> bool:
    """Whether this is a view behind a promise to single persons."""
    return entry is not None and entry.kind == "view" and PERSONS in entry.plan


def one_release_or_one_view(name: str, kind: Kind) -> Accountant:
    """The rule for a new entry of this kind in the ledger of this (printable) name."""

    def decide(history: History) -> None:
        first = history.first
        if first is None:
            if kind == "answer":
                raise RefusedError(f"{name}: holds no view to answer from. Draw it first.")
            return
        if first.kind in _OF_THE_TABLE:
            raise _spent(name) if kind in _OF_THE_TABLE else mixed(name, "a release with noise", "a view of the same table")
        if kind in _OF_THE_TABLE:
            raise mixed(name, "a view", "a release with noise")
        if is_undrawn(first):
            raise undrawn(name)
        if kind == "view":
            raise RefusedError(f"{name}: holds the view of this table, which is never drawn again. Use the recorded one.")
        if kind == "answer" and protects_persons(first) and len(history) > 1:
            raise RefusedError(
                f"{name}: all of the epsilon for single persons is used by what it holds. Got other queries. Recorded answers "
                "are repeated at no cost; next time, ask for everything in one call."
            )

    return decide


def is_undrawn(entry: Entry) -> bool:
    """Whether an entry records that a view could not be drawn."""
    return entry.kind == "view" and "failed" in entry.plan


def undrawn(name: str) -> RefusedError:
    return RefusedError(
        f"{name}: holds a view that could not be drawn, and nothing is answered from it. Another reference needs a new ledger, "
        "and is outside the promise: this failure itself says something about the table."
    )


def _spent(name: str) -> RefusedError:
    return RefusedError(
        f"{name}: allows one release call, of any number of queries together. Got a second one. Guarantees for "
        "single releases do not add up: two answers that are harmless alone can reveal the secret together. A second one "
        "needs a proof for both together, as a session makes it."
    )


def mixed(name: str, held: str, wanted: str) -> RefusedError:
    return RefusedError(
        f"{name}: holds {held}, and must not be mixed with {wanted}: together they can reveal what each one hides."
    )


def require_view(name: str, kind: Kind, history: History) -> None:
    """The same for a view or an answer from it, which keep no account."""
    one_release_or_one_view(name, kind)(history)
