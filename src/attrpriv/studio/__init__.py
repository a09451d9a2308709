"""The studio: a release is designed in a browser, on this machine. The policy file stays the truth; no row is shown."""
