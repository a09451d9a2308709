"""Noise on a sum over rows like recorded ones, for the laws listed."""
