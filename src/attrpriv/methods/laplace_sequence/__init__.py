"""Laplace noise on one statistic after the other: one proof for all (docs/theory/count-sequences.md)."""
