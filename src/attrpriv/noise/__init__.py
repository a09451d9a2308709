"""Noise: exact samplers on a public grid, through OpenDP."""

from attrpriv.noise.exact import GRID_BITS, add_gaussian, add_laplace, granularity

__all__ = ["GRID_BITS", "add_gaussian", "add_laplace", "granularity"]
