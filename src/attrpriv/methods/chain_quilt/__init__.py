"""Each entry of a Markov chain hidden by quilts (docs/theory/chain-quilt.md)."""
