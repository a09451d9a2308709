"""Averages that hide a population's mean (docs/theory/hierarchy.md)."""
