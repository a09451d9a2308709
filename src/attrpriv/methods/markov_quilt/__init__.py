"""Laplace noise that hides a parameter of the population: Algorithm 3 (docs/theory/markov-quilt.md)."""
