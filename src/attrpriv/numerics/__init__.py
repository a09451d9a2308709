"""Pure numerics that everything else may use: how floats are rounded."""
