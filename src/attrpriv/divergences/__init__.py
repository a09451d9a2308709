"""Divergences between laws: how far apart two outputs are, never underestimated."""

from attrpriv.divergences.hockey_stick import gaussian_delta, gaussian_delta_upper, gaussian_epsilon, hockey_stick
from attrpriv.divergences.max_divergence import MaxDivergence, approximate_max_divergence, corrected_guarantee
from attrpriv.divergences.moving_sets import moving_upper
from attrpriv.divergences.set_valued import (
    SetDivergence,
    lam_of,
    mixture_hockey_stick,
    pointwise_hockey_stick,
    set_valued_hockey_stick,
)
from attrpriv.divergences.unequal import unequal_delta, unequal_delta_upper

__all__ = [
    "MaxDivergence",
    "SetDivergence",
    "approximate_max_divergence",
    "corrected_guarantee",
    "gaussian_delta",
    "gaussian_delta_upper",
    "gaussian_epsilon",
    "hockey_stick",
    "lam_of",
    "mixture_hockey_stick",
    "moving_upper",
    "pointwise_hockey_stick",
    "set_valued_hockey_stick",
    "unequal_delta",
    "unequal_delta_upper",
]
