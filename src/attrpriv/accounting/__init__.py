"""What has been released about a table, and whether anything more may be."""
