"""A release is what its page restated, or nothing.

The form of a release carries what the page was made of; when it comes back, all of it is made again and compared. Between that
and the entry in the ledger the table is read, which may take minutes, so the session looks once more at the ledger before it
plans, and at the policy and the files before it records.

What must never change: what is another one in between is refused, and nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrpriv.accounting.hash_chain import Entry
from attrpriv.errors import UsageError
from attrpriv.queries.query import Query
from attrpriv.session.request import Request
from attrpriv.session.session import Session
from attrpriv.studio.draft import Draft
from attrpriv.studio.folder import digest_of
from attrpriv.studio.html import Html
from attrpriv.studio.plans import Planned

_CHANGED = (
    "release: must be the plan that this page showed. Got another: the {what} changed since. This form released {much}; what "
    "was released stands under Report and ledger. Read the plan below again."
)
_WORDS = {"policy": "policy", "head": "ledger", "files": "table, or a file that the policy names,", "plan": "plan"}
_NONE = "none"


def changed(name: str, *, begun: bool = False) -> UsageError:
    """What to say of something that is another one than the page showed; `begun`: of several steps one was recorded."""
    return UsageError(_CHANGED.format(what=_WORDS[name], much="a part of it" if begun else "nothing"))


def bound(planned: Planned, told: Html) -> dict[str, str]:
    """What a form of a release carries: what was planned on, and what the page said of it."""
    return {
        "policy": planned.policy.digest,
        "head": planned.head or _NONE,
        "files": planned.files,
        "plan": digest_of(told),
    }


def require_same(given: Mapping[str, str], now: Mapping[str, str]) -> None:
    """An error that says what is another one than the page showed."""
    for name, value in now.items():
        if given.get(name) != value:
            raise changed(name)


class RestatedSession(Session):
    """A session that releases on top of one entry of the ledger, and of the policy and files as they were, or not at all."""

    def __init__(self, planned: Planned, draft: Draft, seen: str) -> None:
        super().__init__(policy=planned.policy)
        self._planned, self._draft, self._seen = planned, draft, seen
        self._heads = {planned.head}

    def _look(self, queries: tuple[Query, ...]) -> Request:
        asked = super()._look(queries)
        if asked.head not in self._heads:
            raise self._changed("head")
        return asked

    def _time(self) -> str:
        """Asked for when all is drawn and nothing is recorded."""
        if self._draft.digest != self._seen:
            raise self._changed("policy")
        if self._draft.files != self._planned.files:
            raise self._changed("files")
        return super()._time()

    def _changed(self, name: str) -> UsageError:
        return changed(name, begun=len(self._heads) > 1)

    def _commit(self, *said: Any) -> Entry:
        """Of several steps each is on top of the one before."""
        entry = super()._commit(*said)
        self._heads.add(entry.digest)
        return entry
