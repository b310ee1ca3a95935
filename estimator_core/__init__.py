"""Estimator framework on JAX: write a model once, then train, evaluate, predict and export it."""

__version__ = "0.1.0"
