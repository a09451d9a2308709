"""Noise: exact samplers on a public grid, through OpenDP, and of laws with whole-number weights."""

from attrpriv.noise.exact import (
    GRID_BITS,
    MOST_BITS,
    add_filled_gaussian,
    add_gaussian,
    add_gaussian_on,
    add_laplace,
    correlated_noise,
    coupled_draw,
    coupled_weights,
    draw,
    granularity,
    whole_gaussian,
    whole_laplace,
)

__all__ = [
    "GRID_BITS",
    "MOST_BITS",
    "add_filled_gaussian",
    "add_gaussian",
    "add_gaussian_on",
    "add_laplace",
    "correlated_noise",
    "coupled_draw",
    "coupled_weights",
    "draw",
    "granularity",
    "whole_gaussian",
    "whole_laplace",
]
