"""Experiment, learn_runner, HParams and the command `estimator run`, for estimator-core."""

__version__ = "0.1.0"
