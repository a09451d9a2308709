"""`transport` of a count (docs/theory/count-transport.md)."""
