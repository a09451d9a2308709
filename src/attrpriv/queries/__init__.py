"""Queries: the frozen `Query` and the SQL front end. No engine, no secret, no noise."""
