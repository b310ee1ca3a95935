"""Faults in sound components of every kind, and the runner that tells which suite kills which."""
