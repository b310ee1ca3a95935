"""TPU backend for estimator-core: mesh, placement, precision and device figures."""

__version__ = "0.1.0"
