"""Streaming metrics: pytrees that merge exactly and compute at the end."""
