"""Faults in sound components of every kind, and the runner that shows which suite kills which fault."""
