"""Counts that hide a parameter of a network (docs/theory/parameter-counts.md)."""
