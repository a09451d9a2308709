"""A page for whoever must approve a release: one file, no script, nothing loaded, and no row of the table read for it."""
