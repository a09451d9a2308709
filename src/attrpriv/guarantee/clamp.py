"""A clamp: what a transported average takes back of a sensitive column's average, in public numbers.

With x the sensitive column's average, masked by N(0, mask^2), and y = slope (x - centre), an average F becomes

    F - y + clip(y, -reach, +reach)

so that what the sensitive column tells of F stays within +-reach; reach 0 takes y back altogether. What must never change:
everything here is public. The sensitive average is read, used and forgotten (`mechanisms.clamp`).
"""

from __future__ import annotations

from pydantic import Field

from attrpriv.framework.model import Finite, FrozenModel, NonNegative, Positive


class Clamp(FrozenModel):
    """Which column's average is read, around which centre, and how much of it may show; all public."""

    column: str = Field(description="the sensitive column, read in the same pass")
    centre: Finite
    slope: Finite = Field(description="from the sensitive column's average to the released one")
    reach: NonNegative = Field(description="how far what is left of the sensitive column may move the answer, to each side")
    mask: Positive = Field(description="standard deviation of the noise on the sensitive average, which hides its digits")
    fill: Finite | None = Field(default=None, description="public value for missing entries")
