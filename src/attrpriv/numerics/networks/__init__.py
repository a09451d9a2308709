"""Bayesian networks: read, bounded, and asked for the law of a few columns."""
