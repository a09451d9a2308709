"""Noise: exact samplers on a public grid, through OpenDP."""

from attrpriv.noise.exact import GRID_BITS, MOST_BITS, add_gaussian, add_laplace, correlated_noise, granularity

__all__ = ["GRID_BITS", "MOST_BITS", "add_gaussian", "add_laplace", "correlated_noise", "granularity"]
