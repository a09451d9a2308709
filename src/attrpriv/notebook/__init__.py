"""Values as HTML and as data frames, for notebooks."""
