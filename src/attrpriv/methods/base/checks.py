"""What a certificate stores of a case, for kinds of evidence of several methods: one secret under one member of Theta."""

from __future__ import annotations

from dataclasses import replace

from attrpriv.frozen import Finite, FrozenModel
from attrpriv.numerics.calibration.groups import population_tail
from attrpriv.numerics.calibration.parameter_counts import (
    ParameterCounts,
)
from attrpriv.numerics.laws.groups import GroupCase, VectorCase
from attrpriv.numerics.laws.stated import StatedLaws


class GroupCheck(FrozenModel):
    """One secret under one member of Theta; `shares` where it is a share of the population."""

    secret: str
    theta: int
    case: GroupCase | VectorCase
    shares: tuple[Finite, Finite] | None = None

    @property
    def tail(self) -> float:
        """The chance that a table of the population is not covered by the case."""
        if self.shares is None:
            return 0.0
        return population_tail(self.case.n, *self.shares, self.case.low, self.case.high, self.case.apart)

    @property
    def readable(self) -> bool:
        """Whether a release may depend on the table's counts.

        For a share of the population not where rows are known: given their values, the categories of these rows depend on the
        share by far more than a row's own chance does, so that neither `apart` nor the range bounds the counts.
        """
        return self.shares is None or not (isinstance(self.case, GroupCase) and self.case.known)

    def wider(self, off: float) -> GroupCheck:
        """The same case with every difference of means larger by this share."""
        case = self.case
        if isinstance(case, GroupCase):
            members, rest = (tuple((mean * (1 + off), sd) for mean, sd in side) for side in (case.members, case.rest))
            return self.model_copy(update={"case": replace(case, members=members, rest=rest)})
        inside, outside = (
            tuple((tuple(mean * (1 + off) for mean in law[0]), law[1]) for law in side) for side in (case.members, case.rest)
        )
        return self.model_copy(update={"case": replace(case, members=inside, rest=outside)})


class StatedCheck(FrozenModel):
    """Laws as they are written down, given each value of one secret, under one member of Theta."""

    secret: str
    theta: int
    laws: StatedLaws


class ParameterCheck(FrozenModel):
    """One hidden parameter under one member of Theta."""

    secret: str
    theta: int
    counts: ParameterCounts
