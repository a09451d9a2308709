"""Tables and the one pass over them: a table is opened without reading a row, then scanned once through Ibis."""
