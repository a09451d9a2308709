"""Releases of other libraries as the ledger holds them: recorded before they are made, and proved again with no data.

What must never change: the entry is durable before the algorithm runs, so that the ledger never knows less than was told; and
the same b recorded twice counts twice, whatever is said of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrpriv.accounting.hash_chain import Entry
from attrpriv.accounting.ledger import Ledger
from attrpriv.accounting.standing import Accountant
from attrpriv.errors import AttrprivError, CertificateError
from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.outside import OutsideRelease
from attrpriv.methods.choice.outside import plan_outside
from attrpriv.policy import Policy
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query
from attrpriv.session.record import named_types


def outside_problem(policy: Policy, n: int, types: Mapping[str, str]) -> Problem:
    """The problem of a release that asks nothing of us."""
    return policy.problem((Query("count"),), n, types)


def record(
    ledger: Ledger, release: OutsideRelease, policy: Policy, types: Mapping[str, str], time: str, allowed: Accountant
) -> Entry:
    """The entry, once it is durable; its details are what it is planned again from."""
    texts = [release.reads or "", *(secret.text for secret in policy.protect)]
    return ledger.commit(
        kind="outside",
        time=time,
        policy_digest=release.policy_digest,
        plan=[release.to_json()],
        answers=[],
        details={"types": named_types(types, texts), "policy": json.dumps(policy.stated)},
        allowed=allowed,
    )


def outside_again(
    entry: Entry, policy: Policy, types: Mapping[str, str], earlier: FrozenModel | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the stated policy makes of a recorded release, and what is recorded: as JSON, to be compared."""
    (told,) = entry.plan
    recorded = OutsideRelease.from_json(told)
    if policy.rows not in (None, recorded.n):
        raise CertificateError(f"n: must be the policy's rows, {policy.rows}. Got {recorded.n}.")
    problem = outside_problem(policy, recorded.n, types)
    rows = recorded.certificate.individuals
    # How much is left for single persons is decided by the ledger's account, from what each entry took.
    changes = {"earlier": earlier, "individuals": None if problem.individuals is None or rows is None else rows.epsilon}
    try:
        made = plan_outside(problem.model_copy(update=changes), recorded.b, recorded.what, recorded.reads)
        return made.to_json(), recorded.to_json()
    except AttrprivError as error:
        reason = str(error)
    raise CertificateError(f"must be what its policy allows. Got something else: {reason}")
