"""Channel: how much the rest of a row tells of one number in it, for rows that are shown with a public value near their own.

    information: {explained: 10%}             the other columns together explain at most this share of its variance
    information: {iota: 1e-10}                D_alpha(K(u) || K(v)) <= alpha iota (u-v)^2 / 2 at the certificate's order
    information: {iota: 1e-10, slope: 1e-5}   integral of (sqrt k_u - sqrt k_v)^2 <= iota (u-v)^2 / 4
                                              and |log k_u/k_v| <= slope |u-v|
    shift: 0.02                               in an interval, no share of rows is this much further from spread evenly

K(u) is the law of the rest of a row whose number is u; u and v are in one interval. `explained` means that iota is
R^2/(1-R^2)/variance, exact for normal rows and an assumption for others. What must never change: this module states, and
nothing here is proved or read from a table (`methods.view.sorted`).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from attrpriv.frozen import Finite, FrozenModel, Positive
from attrpriv.numerics.divergences.channel import explained
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.shapes import CHANNEL


class Information(FrozenModel):
    """A bound on what a row tells of its number: a share that is explained, or numbers per unit of it."""

    explained: Annotated[Finite, Field(gt=0, lt=1)] | None = Field(
        default=None, description="share of the variance that all other columns together explain, at most"
    )
    iota: Positive | None = Field(default=None, description="information per squared unit")
    slope: Positive | None = Field(default=None, description="with iota: how fast a likelihood changes, per unit")

    @model_validator(mode="after")
    def _one_form(self) -> Information:
        if (self.explained is None) == (self.iota is None):
            raise ValueError("needs explained, such as 10%, or iota, one of them.")
        if self.slope is not None and self.iota is None:
            raise ValueError("slope: is stated beside iota, not beside explained.")
        return self


class Channel(Assumption):
    """How much the rest of a row tells of a number in it.

    >>> str(Channel(information={"explained": 0.1}))
    'all other columns together explain at most 10% of the variance of the sorted column, also within an interval'
    """

    shape: ClassVar[str] = CHANNEL
    kind: Literal["channel"] = "channel"
    information: Information = Field(description="{explained: share}, {iota: } or {iota: , slope: }")
    shift: Annotated[Finite, Field(ge=0, lt=1)] | None = Field(
        default=None,
        description="in an interval rows are independent draws of one law, nowhere further than this from an even one; "
        "left out: nothing is assumed of it",
    )

    def information_per_unit(self, variance: float) -> float:
        """iota, rounded up."""
        told = self.information
        return told.iota if told.iota is not None else explained(told.explained or 0.0, variance)

    def explained(self) -> tuple[str, ...]:
        lines = [f"Whoever believes that {self}."]
        if self.shift is not None:
            lines.append(
                "They may also believe that rows of an interval are independent draws of a law whose distribution function is "
                f"within {self.shift:g} of an even one."
            )
        return tuple(lines)

    def __str__(self) -> str:
        told = self.information
        if told.explained is not None:
            share = f"{100 * told.explained:g}% of the variance of the sorted column"
            return f"all other columns together explain at most {share}, also within an interval"
        slope = "" if told.slope is None else f" and log likelihoods change by at most {told.slope:g} per unit"
        return f"the rest of a row has at most information {told.iota:g} per squared unit of the sorted column{slope}"
