"""Columns of tables: their types and defaults, and Arrow arrays as numpy arrays."""
