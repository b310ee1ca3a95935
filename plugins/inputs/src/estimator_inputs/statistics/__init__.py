"""Statistics of tables in one pass and bounded memory: cells of columns, counts, moments, sketches, sources of rows."""
