"""Divergences between laws: how far apart two outputs are, never underestimated."""

from attrpriv.numerics.divergences.chain_influence import ChainInfluence
from attrpriv.numerics.divergences.family_wasserstein import FamilyWasserstein, family_wasserstein
from attrpriv.numerics.divergences.gaussian_mixture import gaussian_mixture_delta_upper
from attrpriv.numerics.divergences.hockey_stick import gaussian_delta, gaussian_delta_upper, gaussian_epsilon, hockey_stick
from attrpriv.numerics.divergences.influence import Influence, max_influence
from attrpriv.numerics.divergences.lattice import (
    lattice_approximate_max_divergence,
    lattice_delta_upper,
    lattice_max_divergence,
)
from attrpriv.numerics.divergences.max_divergence import MaxDivergence, approximate_max_divergence, corrected_guarantee
from attrpriv.numerics.divergences.moving_sets import moving_upper
from attrpriv.numerics.divergences.set_valued import (
    SetDivergence,
    lam_of,
    mixture_hockey_stick,
    pointwise_hockey_stick,
    set_valued_hockey_stick,
)
from attrpriv.numerics.divergences.unequal import unequal_delta, unequal_delta_upper
from attrpriv.numerics.divergences.wasserstein import Closeness, Wasserstein, close_distance, wasserstein_inf

__all__ = [
    "ChainInfluence",
    "Closeness",
    "FamilyWasserstein",
    "Influence",
    "MaxDivergence",
    "SetDivergence",
    "Wasserstein",
    "approximate_max_divergence",
    "close_distance",
    "corrected_guarantee",
    "family_wasserstein",
    "gaussian_delta",
    "gaussian_delta_upper",
    "gaussian_epsilon",
    "gaussian_mixture_delta_upper",
    "hockey_stick",
    "lam_of",
    "lattice_approximate_max_divergence",
    "lattice_delta_upper",
    "lattice_max_divergence",
    "max_influence",
    "mixture_hockey_stick",
    "moving_upper",
    "pointwise_hockey_stick",
    "set_valued_hockey_stick",
    "unequal_delta",
    "unequal_delta_upper",
    "wasserstein_inf",
]
