"""Exports once a metric has reached a goal."""
