"""The tracker of Neptune."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from estimator_hooks.trackers.tracker import Ending, TrackedRun, missing


class NeptuneTracker:
    """Sends runs to Neptune.

    With `mode="offline"` the run is written to files, which `neptune sync` sends later. A resumed run then cannot see
    what a killed run has sent: points after its checkpoint appear twice.

    Args:
        project: the project, `workspace/name`.
        **settings: further arguments of `neptune.init_run`, for example `mode="offline"` or `tags=`.

    Raises:
        TrackerMissingError: neptune is not installed; raised in the run.

    Example:
        >>> NeptuneTracker("acme/digits", mode="offline").name
        'neptune'
    """

    name = "neptune"

    def __init__(self, project: str, **settings: Any) -> None:
        self._project = project
        self._settings = settings
        self._run: Any = None
        self._asks = False  # whether the server has points of an earlier call
        self._sent: dict[str, int] = {}

    def start(self, run: TrackedRun, run_id: str | None) -> str:
        """Starts a run, or continues one."""
        try:
            neptune: Any = import_module("neptune")
        except ImportError as error:
            raise missing("Neptune", "neptune") from error
        chosen = run_id or uuid.uuid4().hex
        arguments = {"name": run.model_dir.name, **self._settings}
        self._run = neptune.init_run(project=self._project, custom_run_id=chosen, **arguments)
        self._sent = {}
        self._asks = run_id is not None and self._settings.get("mode", "async") in ("async", "sync")
        if run_id is None:
            for name, value in run.parameters.items():
                self._run[name] = value if isinstance(value, (int, float, bool)) else str(value)
        return chosen

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Sends the values that the server does not have."""
        for name, value in metrics.items():
            if step > self._reached(name):
                self._run[name].append(value, step=step)
                self._sent[name] = step

    def keep(self, name: str, text: str) -> None:
        """Stores a file as `record/<name>`."""
        types: Any = import_module("neptune.types")
        self._run[f"record/{name}"].upload(types.File.from_content(text, extension="json"))

    def finish(self, ending: Ending) -> None:
        """Records how the run ended, and sends the remaining values."""
        self._run["sys/failed"] = ending == "failed"
        self._run["ending"] = ending
        self._run.stop()

    def _reached(self, name: str) -> int:
        """Returns the newest step of a metric that this process or an earlier one has sent."""
        if name not in self._sent:
            known = self._asks and self._run.exists(name)
            steps = self._run[name].fetch_values(include_timestamp=False)["step"] if known else ()
            self._sent[name] = max(map(int, steps), default=-1)
        return self._sent[name]
