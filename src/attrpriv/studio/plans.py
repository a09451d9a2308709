"""What is planned for a policy, kept until the policy, its ledger or a file that it reads is another one. Reads no row.

Planning may take seconds, and a page is looked at often. What must never change: what is shown belongs to the policy, the
ledger and the files of this moment, as `key_of` tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attrpriv.errors import AttrprivError
from attrpriv.methods.choice.ranking import advice
from attrpriv.policy import Policy
from attrpriv.policy.models import digest_of
from attrpriv.session.session import Session
from attrpriv.studio.draft import Draft

if TYPE_CHECKING:
    from attrpriv.methods.base.view_plan import ViewPlan
    from attrpriv.report.content import Facts
    from attrpriv.session.ledger_record import LedgerRecord
    from attrpriv.session.split import Ranked

_MOST = 20
_VIEW_HELD = "the ledger holds a view of this table: the same rows are written again."


@dataclass(frozen=True)
class Planned:
    """How a policy would be carried out: noise, or a view, or an error that says why not."""

    policy: Policy
    ranked: Ranked | None
    view: ViewPlan | None
    refusal: AttrprivError | None
    head: str | None
    """The digest of the ledger's last entry."""
    files: str
    """What tells the files that were planned on from others of their names, or from what they are later."""
    held: str | None = None
    """What the ledger means for it, where there is something to say: answers that it holds are repeated."""
    advice: tuple[str, ...] = ()
    """Where nothing beats what the assumption says already: what would."""


@dataclass
class Plans:
    """The plans of the policies that were looked at."""

    _known: dict[Any, Any] = field(default_factory=dict)

    def of(self, draft: Draft) -> Planned:
        """The plan of a policy that is complete; raises what is wrong with one that is not."""
        policy = draft.policy()
        with Session(policy=policy) as session:
            key = ("plan", *key_of(session, draft))
            if key not in self._known:
                self._keep(key, _planned(session, key[-1]))
        found: Planned = self._known[key]
        return found

    def facts(self, draft: Draft) -> Facts:
        """What the report says."""
        from attrpriv.cli.explain import explain_policy
        from attrpriv.report.content import gather

        session = Session(policy=draft.policy())
        key = ("facts", *key_of(session, draft))
        if key not in self._known:
            self._keep(key, gather(session, explain_policy(draft.path, None).sections))
        found: Facts = self._known[key]
        return found

    def _keep(self, key: Any, value: Any) -> None:
        self._known = {**dict(list(self._known.items())[-_MOST:]), key: value}


def key_of(session: Session, draft: Draft) -> tuple[Any, ...]:
    """What a plan depends on."""
    policy = session.policy
    return policy.origin, digest_of(policy.to_json()), record_of(session).head, draft.files


def record_of(session: Session) -> LedgerRecord:
    """What was released, as the ledger has it."""
    return session.ledger


def _planned(session: Session, files: str) -> Planned:
    policy, head = session.policy, record_of(session).head
    try:
        if policy.release:
            ranked = session.ranked()
            refused = None if ranked.refused is None else ranked.refused.error()
            if ranked.plan is None:
                return Planned(policy, ranked, None, refused, head, files)
            advised = tuple(line for one in ranked.rankings if (line := advice(one)) is not None)
            return Planned(policy, ranked, None, refused, head, files, session.ledger_note(plan=ranked.plan), advised)
        drawn = any(one.kind == "view" and "failed" not in one.plan for one in record_of(session).entries)
        return Planned(policy, None, session.view_plan(), None, head, files, _VIEW_HELD if drawn else None)
    except AttrprivError as error:
        return Planned(policy, None, None, error, head, files)
