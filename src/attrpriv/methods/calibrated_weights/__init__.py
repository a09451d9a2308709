"""Weighted averages that say nothing of sensitive columns (docs/theory/calibrated-weights.md)."""
