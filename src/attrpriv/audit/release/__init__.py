"""The audit of a release: three experiments on tables that are made up, or made of public records."""
