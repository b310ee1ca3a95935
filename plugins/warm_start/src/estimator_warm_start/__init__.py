"""Warm start for estimator-core: initial values from checkpoints, by settings or inside model_fn."""

__version__ = "0.1.0"
