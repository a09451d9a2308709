"""Whether one policy promises at least what another one promised: the only way in which a table's policy may change.

What was released before was promised something. Under another policy everything is accounted for anew, with the noise that was
drawn, so its promise covers the earlier answers too. That keeps the earlier promise if the new one implies it:

| part | may |
|---|---|
| epsilon, delta | become smaller |
| protect | get more secrets; of each earlier one, more pairs (a wider range, a larger distance) |
| assume | get more members: an adversary may believe more |
| known_rows | become larger |
| individuals | be as it is, or become smaller |
| everything else that the promise depends on | stay as it is |

What must never change: where this cannot tell, the answer is no.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrpriv.errors import RefusedError
from attrpriv.policy.models import Policy, digest_of
from attrpriv.problem.secret import Secret

# What a policy may change without touching what was promised.
_PLACES = frozenset({"attrpriv", "data", "ledger", "release"})
_ORDERED = frozenset({"epsilon", "delta", "protect", "assume", "known_rows", "individuals"})


def require_tighter(name: str, before: Policy, now: Policy) -> None:
    """A refusal that names what is looser, unless `now` promises all that `before` promised."""
    looser = loosened(before, now)
    if looser:
        raise RefusedError(
            f"{name}: belongs to its table, and holds releases under another policy. {looser[0]} Answers that are out cannot "
            "be taken back, so a policy may only promise more than the one before. Recorded answers are repeated in any case."
        )


def loosened(before: Policy, now: Policy) -> list[str]:
    """What the new policy does not promise any more, in words."""
    found = [
        f"{key}: must not become larger (it was {getattr(before, key):g}). Got {getattr(now, key):g}: "
        "the earlier answers were released under the smaller one."
        for key in ("epsilon", "delta")
        if getattr(now, key) > getattr(before, key)
    ]
    found += [_secret_lost(secret) for secret in before.protect if not any(_implies(one, secret) for one in now.protect)]
    if not _members(before) <= _members(now):
        found.append(
            "assume: must keep every member it had. Got another assumption: what the earlier answers reveal was computed for "
            "adversaries who hold the first one, and for others it is not known."
        )
    if now.known_rows < before.known_rows:
        found.append(f"known_rows: must not become smaller (it was {before.known_rows:g}). Got {now.known_rows:g}.")
    if not _rows_kept(before, now):
        found.append("individuals: must not be dropped or become larger: single persons were promised as much.")
    found += [f"{key}: must stay as it was. Got another." for key in _others(before, now)]
    return found


def _secret_lost(secret: Secret) -> str:
    return f"protect: must still hide {secret}, with all its pairs of values. Got a policy that does not."


def _members(policy: Policy) -> frozenset[str]:
    # A ledger keeps its keys sorted: the order in which a network lists its nodes is not part of what it says.
    return frozenset(digest_of(member.to_json()) for member in policy.assume)


def _rows_kept(before: Policy, now: Policy) -> bool:
    if before.individuals == "none":
        return now.individuals == "none"  # earlier answers have no noise for single rows
    if now.individuals == "none" or now.individuals.epsilon > before.individuals.epsilon:
        return False
    return now.individuals.delta == before.individuals.delta


def _others(before: Policy, now: Policy) -> list[str]:
    old, new = before.to_json(), now.to_json()
    return [key for key in old if key not in _PLACES | _ORDERED and old[key] != new.get(key)]


def _implies(now: Secret, before: Secret) -> bool:
    """Whether every pair that had to look alike still has to."""
    if (now.secret, now.parameter, now.cases) != (before.secret, before.parameter, before.cases):
        return False
    return _wider(now.between, before.between) and (
        now.within is None or (before.within is not None and now.within >= before.within)
    )


def _wider(now: Any, before: Any) -> bool:
    """Whether a range holds another one; ranges of cells must be the same."""
    if now is None or now == before:
        return True
    if before is None or isinstance(now, Mapping) or isinstance(before, Mapping):
        return False
    return bool(now[0] <= before[0] and before[1] <= now[1])
