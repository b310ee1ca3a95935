"""Columns of tables: their types and defaults, and the conversion of Arrow arrays to numpy arrays."""
