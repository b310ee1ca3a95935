"""Exporters, export formats and serving for estimator-core."""

__version__ = "0.1.0"
