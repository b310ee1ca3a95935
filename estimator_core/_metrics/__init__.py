"""Streaming metrics: pytrees that merge exactly and are computed at the end."""
