"""Views: which rows are kept of each cell, how they are read again, written and asked."""
