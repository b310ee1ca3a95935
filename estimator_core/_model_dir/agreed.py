"""Where a run writes, out of what the Estimator and its configuration say."""

from __future__ import annotations

import logging
import tempfile
from typing import Any

from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError

_log = logging.getLogger("estimator_core")


def agreed_model_dir(given: Any, configured: str | None) -> str:
    """The directory of a run; a temporary one where neither says it.

    Args:
        given: to the Estimator.
        configured: in its RunConfig.

    Raises:
        ArgumentError: both say it, and differ.
    """
    if given is not None:
        given = RunConfig(model_dir=given).model_dir
        if configured is not None and configured != given:
            raise ArgumentError(
                "`model_dir` are set both in constructor and `RunConfig`, but with different values. In constructor: "
                f"{given!r}, in `RunConfig`: {configured!r}."
            )
        return given
    if configured is not None:
        return configured
    temporary = tempfile.mkdtemp(prefix="estimator-")
    _log.warning("Using temporary folder as model directory: %s", temporary)
    return temporary
