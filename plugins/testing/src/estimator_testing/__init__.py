"""Conformance suites, faults and doubles for authors of estimator-core plugins, the package template and the doctor."""

__version__ = "0.1.0"
