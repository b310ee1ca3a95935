"""Memory, time and collectives of a training step for devices that are not there, for estimator-core."""

__version__ = "0.1.0"
