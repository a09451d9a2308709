"""Statistics whose laws are written down (docs/theory/stated-laws.md)."""
