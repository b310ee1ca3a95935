"""What goes wrong with a launch."""

from __future__ import annotations

from estimator_core.errors import EstimatorError


class LaunchError(EstimatorError):
    """An engine is not here, refuses a job, or does not know one."""
