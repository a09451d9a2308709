"""Why a mechanism cannot be used for a problem. Unknown or uncovered means refuse, with the reason."""

from __future__ import annotations


class Refusal(Exception):
    """Raised by a mechanism, caught by `plan` and `auto`; never seen by a user.

    `usage` marks a problem that is wrong for the mechanism as stated (say delta 0) rather than out of its reach: when nothing
    else applies, such a reason is reported as bad usage.
    """

    def __init__(self, reason: str, *, usage: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.usage = usage
