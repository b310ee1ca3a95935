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
    """Information about a run for a tracker.

    Args:
        model_dir: the directory of the run.
        first_step: the global step at which the run starts.
        parameters: the record of the start, `run.json`, flat and with secrets masked: `params/...`, `config/...`,
            `versions/...`, `plugins/...`, `call/...` and `arguments`.
    """

    model_dir: Path
    first_step: int
    parameters: Mapping[str, Any]


@runtime_checkable
class Tracker(Protocol):
    """Stores the curves of runs. Only one process calls it.

    Import libraries in `start`, not earlier.
    """

    @property
    def name(self) -> str:
        """The name of the tracker, for messages and for the file in model_dir that names its run."""
        ...

    def start(self, run: TrackedRun, run_id: str | None) -> str:
        """Starts a run of the tracker, or continues one.

        A resumed run repeats points that a killed run has sent. Of two points with the same metric and step, the
        tracker must keep the first.

        Args:
            run: the run to track.
            run_id: the result of `start` in an earlier call with the same model_dir; None for the first call.

        Returns:
            The id of the run in the tracker.
        """
        ...

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Sends values of one step. Names are `train/<output>` and `<evaluation>/<metric>`."""
        ...

    def finish(self, ending: Ending) -> None:
        """Ends the run. After the ending "interrupted", by the platform or Ctrl-C, the run will be resumed."""
        ...


@runtime_checkable
class KeepsRecords(Protocol):
    """An optional contract for a tracker that also stores the record of a run as files."""

    def keep(self, name: str, text: str) -> None:
        """Stores a file, replacing one of the same name.

        Args:
            name: `run.json`, or `capsule.json` in a run of `estimator run` with estimator-runs.
            text: the content: JSON with masked secrets.
        """
        ...


class TrackerMissingError(EstimatorError, ImportError):
    """The library of a tracker is not installed."""


def missing(library: str, extra: str) -> TrackerMissingError:
    """Returns the error for a library that is not installed."""
    return TrackerMissingError(f"{library} is not installed. Install estimator-hooks[{extra}].")
