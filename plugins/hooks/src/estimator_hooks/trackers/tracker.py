"""The contract of an experiment tracker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from estimator_core.errors import EstimatorError

Ending = Literal["finished", "failed", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class TrackedRun:
    """What a tracker is told about a run.

    Args:
        model_dir: where the run writes.
        first_step: the global step it starts at.
        parameters: the record of the start, `run.json`, flat and with secrets masked: `params/...`, `config/...`,
            `versions/...`, `plugins/...`, `call/...` and `arguments`.
    """

    model_dir: Path
    first_step: int
    parameters: Mapping[str, Any]


@runtime_checkable
class Tracker(Protocol):
    """Keeps the curves of runs. Called by one process only.

    Libraries are imported in `start`, not before.
    """

    @property
    def name(self) -> str:
        """The name of the tracker, for messages and for the file in model_dir that names its run."""
        ...

    def start(self, run: TrackedRun, run_id: str | None) -> str:
        """Starts a run of the tracker, or continues one.

        A resumed run repeats points that a killed run has sent. The tracker must keep the first of two points of a
        metric and step.

        Args:
            run: the run to track.
            run_id: what `start` returned for an earlier call in the same model_dir, None for the first.

        Returns:
            The run's id in the tracker.
        """
        ...

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Sends values of one step. Names are `train/<output>` and `<evaluation>/<metric>`."""
        ...

    def finish(self, ending: Ending) -> None:
        """Ends the run; an interrupted run will be resumed. The platform or a Ctrl-C has interrupted it."""
        ...


@runtime_checkable
class KeepsRecords(Protocol):
    """A tracker that also keeps the record of a run as files. Whoever has no such place lacks the method."""

    def keep(self, name: str, text: str) -> None:
        """Keeps a file, in the place of one of the same name.

        Args:
            name: `run.json`, or `capsule.json` in a run of `estimator run` with estimator-runs.
            text: its content, JSON in which secrets are masked.
        """
        ...


class TrackerMissingError(EstimatorError, ImportError):
    """The library of a tracker is not installed."""


def missing(library: str, extra: str) -> TrackerMissingError:
    """The error for a library that is not installed."""
    return TrackerMissingError(f"{library} is not installed. Install estimator-hooks[{extra}].")
