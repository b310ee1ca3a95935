"""Tests for authors of plugins, from the package estimator-testing. `testing.pyi` types the names."""

from estimator_core._moved import moved_module

__getattr__ = moved_module("testing")
