"""`auto`: which methods may be asked, how their plans compare, and what to say about the choice."""
