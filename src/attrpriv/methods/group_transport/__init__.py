"""`transport` of averages behind categories (docs/theory/groups-transport.md)."""
