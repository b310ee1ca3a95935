"""Hooks for estimator-core: logging, progress, early stopping, iterator initialisation, profiling."""

__version__ = "0.1.0"
