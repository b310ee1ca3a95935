"""The record from which a run can be repeated, and the command that repeats and compares it."""
