"""Each entry of a Markov chain hidden by the ratio recursion (docs/theory/chain-ratio.md)."""
