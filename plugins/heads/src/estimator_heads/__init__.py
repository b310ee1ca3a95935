"""Heads for estimator-core: loss, predictions, metrics and signatures of a task."""

__version__ = "0.1.0"
