"""Methods: a problem in, a proved plan out. One folder a method, one table of them."""
