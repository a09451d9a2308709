"""Laplace noise on one statistic after the other: one proof for every method that draws it (docs/theory/count-sequences.md)."""
