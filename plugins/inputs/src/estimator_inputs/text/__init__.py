"""Files of lines: CSV and JSON."""
