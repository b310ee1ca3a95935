"""What authors of plugins test with; it lives in the package estimator-testing, and `testing.pyi` types its names."""

from estimator_core._moved import moved_module

__getattr__ = moved_module("testing")
