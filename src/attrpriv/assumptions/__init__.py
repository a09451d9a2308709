"""Assumptions: the conditional law of a query given a secret, over a whole class of distributions. One module a kind."""
