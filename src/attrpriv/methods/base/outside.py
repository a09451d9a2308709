"""A release that another library makes: what it may spend for one row, and what the ledger keeps of it (docs/theory/bridge.md).

    P(M(x) in T) <= e^b P(M(x') in T)      for tables of n rows that differ in one row, replaced by any other

What must never change: b is the epsilon of one row *replaced*, with delta 0. Nothing here can check that the algorithm keeps
it; that is stated in the certificate as assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import Literal

from pydantic import Field

from attrpriv.errors import UsageError
from attrpriv.frozen import FrozenModel, NonNegative, Positive
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import Evidence

_LONGEST = 200


@dataclass(frozen=True)
class RowCurve:
    """What everything released loses together, once an algorithm has spent b for one row."""

    proof: Callable[[float, str], Evidence]
    """The evidence of it, from b and what was released."""
    loss: Callable[[float], float]
    """The largest loss of any secret under any member of Theta, from above."""
    assumes: tuple[str, ...]
    """What the proof rests on, beside that the algorithm keeps its promise."""
    whole: str
    """What may be read of a row, in words."""


class OutsideRelease(FrozenModel):
    """What the ledger keeps of a release that another library makes."""

    schema_version: Literal[1] = 1
    what: str = Field(description="what is released, and by what, in a line")
    b: Positive = Field(description="the epsilon of one row replaced, delta 0")
    reads: str | None = Field(default=None, description="the event or the column that is all it reads; None: whole rows")
    n: int = Field(ge=2)
    epsilon: NonNegative
    delta: NonNegative
    policy_digest: str
    certificate: Certificate


def shown_b(b: float) -> str:
    """What may be spent, to six digits and never more than it is: somebody copies it from here.

    >>> shown_b(0.0499999999999), shown_b(1 / 3), shown_b(100.0)
    ('0.0499999', '0.333333', '100')
    """
    with localcontext() as context:
        context.prec, context.rounding = 6, ROUND_FLOOR
        return f"{(+Decimal(b)).normalize():f}"


def require_what(what: object) -> str:
    """`UsageError` unless it is a line that a reader of the ledger can understand."""
    if not isinstance(what, str) or not what.strip() or len(what) > _LONGEST or not what.isprintable():
        raise UsageError('what: must be a line that says what is released and by what, as in "histogram of ward, OpenDP".')
    return what.strip()
