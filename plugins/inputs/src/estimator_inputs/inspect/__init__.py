"""Inspection of files of examples: columns, statistics, rows."""
