"""`transport` by quantiles, pure epsilon (docs/theory/quantile-clip.md)."""
