"""Gaussian noise on averages: Algorithms 1 and 2 of the paper (docs/theory/gaussian.md)."""
