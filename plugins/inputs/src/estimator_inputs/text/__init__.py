"""Readers of files of lines: CSV and JSON."""
