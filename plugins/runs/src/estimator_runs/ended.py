"""The end of a training that a command was killed after, according to the record of the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from estimator_core.checkpoint import checkpoint_step
from estimator_core.errors import ArgumentError
from estimator_core.estimator import Estimator
from estimator_runs.records.reading import read_run


def ended_step(estimator: Estimator) -> int | None:
    """Returns the step of the newest checkpoint if the training that wrote it has ended by itself and without an error.

    None: there was none, or it was interrupted. A hook may have ended it, so another call would train further.
    """
    path = estimator.latest_checkpoint()
    try:
        end: Any = read_run(Path(estimator.model_dir)).record.get("ended")
    except ArgumentError:  # nothing has begun
        return None
    if path is None or not isinstance(end, Mapping):
        return None
    step, said = checkpoint_step(path), cast(Mapping[str, Any], end)
    return step if said.get("step") == step and not said.get("failed") and not said.get("owed") else None
