"""Exports: what is served, and the contracts of those who write it. estimator-exporters writes the formats."""
