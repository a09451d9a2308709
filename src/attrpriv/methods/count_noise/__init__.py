"""Whole-number noise on counts and sums: `laplace`, `gaussian`, `wasserstein` (docs/theory/exact-calibration.md)."""
