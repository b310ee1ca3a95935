"""The sections about evaluations."""
