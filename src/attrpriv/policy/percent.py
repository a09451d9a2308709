"""Where a policy file may write `1%`: a share may be given in percent, a mean, a sum or a count may not.

`within: 1%` of a mean could be meant as a hundredth of something; read as 0.01 it would hide far less than its writer thinks.
"""

from __future__ import annotations

from typing import Any

from attrpriv.errors import PolicyError

_SHARES = ("share(", "distribution(")


class Percent(float):
    """A number that was written with a percent sign."""


def without_percent(value: Any) -> Any:
    """The policy with plain numbers; `PolicyError` where a secret that is no share is given in percent."""
    if isinstance(value, dict) and isinstance(value.get("protect"), list):
        for place, secret in enumerate(value["protect"]):
            _require_share(place, secret)
    return _plain(value)


def _require_share(place: int, secret: Any) -> None:
    text = secret.get("secret", secret.get("parameter")) if isinstance(secret, dict) else None
    if text is None or str(text).strip().lower().startswith(_SHARES):
        return
    for key, given in secret.items():
        if _has_percent(given):
            raise PolicyError(
                f"protect[{place}].{key}: only a share may be given in percent. Got a percentage for {text}. "
                f"Write a number in the unit of {text}."
            )


def _has_percent(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_percent, value.values()))
    return any(map(_has_percent, value)) if isinstance(value, list) else isinstance(value, Percent)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        # Most of a long policy are mappings of plain numbers.
        kinds = {*map(type, value), *map(type, value.values())}
        return {_plain(key): _plain(item) for key, item in value.items()} if kinds & {Percent, dict, list} else value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Percent) else value
