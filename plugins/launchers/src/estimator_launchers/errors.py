"""Errors of a launch."""

from __future__ import annotations

from estimator_core.errors import EstimatorError


class LaunchError(EstimatorError):
    """An engine is missing, refuses a job, or does not know it."""
