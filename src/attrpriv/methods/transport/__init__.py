"""Averages without what the secret tells of them (docs/theory/transport.md, sequences.md)."""
