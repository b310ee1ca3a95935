"""Exports: their contents, and the contracts of their writers. estimator-exporters writes the formats."""
