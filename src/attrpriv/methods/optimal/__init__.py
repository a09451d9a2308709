"""The least expected error of any mechanism, by linear programs (docs/theory/optimal.md)."""
