"""The secret-free view, and answers from it (docs/theory/view.md)."""
