"""The opt-in to guarantees that rest on simulation: how many draws, and how sure their intervals must be.

What must never change: without it no simulated guarantee is planned, whoever asks.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from attrpriv.framework.model import Finite, FrozenModel

# What a policy without the opt-in has to add.
OPT_IN = "sampled: {runs: 100000, confidence: 0.999999}"


class Sampled(FrozenModel):
    """Conditional laws may be simulated instead of computed, and normal ones fitted to them.

    >>> Sampled()
    Sampled(runs=100000, confidence=0.999999)
    """

    runs: Annotated[int, Field(strict=True, ge=1_000, le=1_000_000)] = Field(
        default=100_000, description="draws of the statistic for each simulated value of a secret"
    )
    confidence: Annotated[Finite, Field(ge=0.5, lt=1)] = Field(
        default=0.999999, description="probability that all intervals of the simulation hold"
    )

    @property
    def risk(self) -> float:
        """The probability that one of them does not."""
        return 1 - self.confidence
