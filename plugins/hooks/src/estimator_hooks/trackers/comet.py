"""The tracker of Comet."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from estimator_hooks.trackers.tracker import Ending, TrackedRun, missing


class CometTracker:
    """Sends runs to Comet.

    With `online=False` the run is written to a file, which `comet upload` sends later. A resumed run then cannot see
    what a killed run has sent: points after its checkpoint appear twice.

    Args:
        project: the project. It is created if it does not exist.
        **settings: further arguments of `comet_ml.start`, for example `workspace=` or `online=False`.

    Raises:
        TrackerMissingError: comet-ml is not installed; raised in the run.

    Example:
        >>> CometTracker("digits", online=False).name
        'comet'
    """

    name = "comet"

    def __init__(self, project: str, **settings: Any) -> None:
        self._project = project
        self._settings = settings
        self._run: Any = None
        self._known: Any = None  # the experiment of an earlier call on the server
        self._sent: dict[str, int] = {}

    def start(self, run: TrackedRun, run_id: str | None) -> str:
        """Starts a run, or continues one."""
        try:
            comet: Any = import_module("comet_ml")
        except ImportError as error:
            raise missing("Comet", "comet") from error
        mode = "create" if run_id is None else "get_or_create"
        self._run = comet.start(project=self._project, experiment_key=run_id, mode=mode, **self._settings)
        self._sent = {}
        self._known = None
        if run_id is None:
            self._run.set_name(run.model_dir.name)
            self._run.log_parameters(
                {
                    name: value if isinstance(value, (int, float, bool)) else str(value)
                    for name, value in run.parameters.items()
                }
            )
        elif self._settings.get("online", True):
            self._known = comet.API().get_experiment_by_key(run_id)
        return str(self._run.get_key())

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Sends the values that the server does not have."""
        for name, value in metrics.items():
            if step > self._reached(name):
                self._run.log_metric(name, value, step=step)
                self._sent[name] = step

    def keep(self, name: str, text: str) -> None:
        """Stores a file among the assets of the run."""
        self._run.log_asset_data(text, name=name, overwrite=True)

    def finish(self, ending: Ending) -> None:
        """Records how the run ended, and sends the remaining values."""
        self._run.log_other("ending", ending)
        self._run.end()

    def _reached(self, name: str) -> int:
        """Returns the newest step of a metric that this process or an earlier one has sent."""
        if name not in self._sent:
            points = [] if self._known is None else self._known.get_metrics(name)
            self._sent[name] = max((int(point["step"]) for point in points if point["step"] is not None), default=-1)
        return self._sent[name]
