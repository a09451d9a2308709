"""Gaussian noise on averages that hides how many rows are of a category (docs/theory/groups.md)."""
