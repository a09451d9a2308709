"""The rule for views: one view and its answers, and nothing else; and, without a joint proof, one release call alone.

What must never change: guarantees for single releases do not add up. Two answers that are harmless alone can reveal the secret
together, so what no rule covers is refused. A release whose weights failed spends the ledger as any other: that it failed is
what it told.

A rule is an `Accountant`: given what the ledger holds, it raises `RefusedError`, or returns what the new entry keeps for it as
its `account` (here nothing). It is asked inside the write transaction, so no other process can come between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrpriv.accounting.hash_chain import SPENDS, Kind
from attrpriv.accounting.history import History
from attrpriv.errors import RefusedError

Accountant = Callable[[History], Any]


def one_release_or_one_view(name: str, kind: Kind) -> Accountant:
    """The rule for a new entry of this kind in the ledger of this (printable) name."""

    def decide(history: History) -> None:
        first = history.first
        if first is None:
            if kind == "answer":
                raise RefusedError(f"{name}: holds no view to answer from. Draw it first.")
            return
        if first.kind in SPENDS:
            raise _spent(name) if kind in SPENDS else mixed(name, "a release with noise", "a view of the same table")
        if kind in SPENDS:
            raise mixed(name, "a view", "a release with noise")
        if kind == "view":
            raise RefusedError(f"{name}: holds the view of this table, which is never drawn again. Use the recorded one.")

    return decide


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
