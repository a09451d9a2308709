"""Divergences between laws: how far apart two outputs are, never underestimated.

Each name loads its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrpriv.lazy import attribute

if TYPE_CHECKING:
    from attrpriv.numerics.divergences.chain_influence import ChainInfluence
    from attrpriv.numerics.divergences.chain_ratio import ChainRatio
    from attrpriv.numerics.divergences.families import FamilyWasserstein, family_wasserstein
    from attrpriv.numerics.divergences.gaussian import (
        gaussian_delta,
        gaussian_delta_upper,
        gaussian_epsilon,
        hockey_stick,
        unequal_delta,
        unequal_delta_upper,
    )
    from attrpriv.numerics.divergences.gaussian_mixture import gaussian_mixture_delta_upper
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
    from attrpriv.numerics.divergences.wasserstein import Closeness, Wasserstein, close_distance, wasserstein_inf

_HOME = {
    "ChainInfluence": "attrpriv.numerics.divergences.chain_influence",
    "ChainRatio": "attrpriv.numerics.divergences.chain_ratio",
    "Closeness": "attrpriv.numerics.divergences.wasserstein",
    "FamilyWasserstein": "attrpriv.numerics.divergences.families",
    "Influence": "attrpriv.numerics.divergences.influence",
    "MaxDivergence": "attrpriv.numerics.divergences.max_divergence",
    "SetDivergence": "attrpriv.numerics.divergences.set_valued",
    "Wasserstein": "attrpriv.numerics.divergences.wasserstein",
    "approximate_max_divergence": "attrpriv.numerics.divergences.max_divergence",
    "close_distance": "attrpriv.numerics.divergences.wasserstein",
    "corrected_guarantee": "attrpriv.numerics.divergences.max_divergence",
    "family_wasserstein": "attrpriv.numerics.divergences.families",
    "gaussian_delta": "attrpriv.numerics.divergences.gaussian",
    "gaussian_delta_upper": "attrpriv.numerics.divergences.gaussian",
    "gaussian_epsilon": "attrpriv.numerics.divergences.gaussian",
    "gaussian_mixture_delta_upper": "attrpriv.numerics.divergences.gaussian_mixture",
    "hockey_stick": "attrpriv.numerics.divergences.gaussian",
    "lam_of": "attrpriv.numerics.divergences.set_valued",
    "lattice_approximate_max_divergence": "attrpriv.numerics.divergences.lattice",
    "lattice_delta_upper": "attrpriv.numerics.divergences.lattice",
    "lattice_max_divergence": "attrpriv.numerics.divergences.lattice",
    "max_influence": "attrpriv.numerics.divergences.influence",
    "mixture_hockey_stick": "attrpriv.numerics.divergences.set_valued",
    "moving_upper": "attrpriv.numerics.divergences.moving_sets",
    "pointwise_hockey_stick": "attrpriv.numerics.divergences.set_valued",
    "set_valued_hockey_stick": "attrpriv.numerics.divergences.set_valued",
    "unequal_delta": "attrpriv.numerics.divergences.gaussian",
    "unequal_delta_upper": "attrpriv.numerics.divergences.gaussian",
    "wasserstein_inf": "attrpriv.numerics.divergences.wasserstein",
}

__all__ = [
    "ChainInfluence",
    "ChainRatio",
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


def __getattr__(name: str) -> Any:
    return attribute(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted(__all__)
