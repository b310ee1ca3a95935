"""The tracker of MLflow."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from estimator_hooks.trackers.tracker import Ending, TrackedRun, missing

_log = logging.getLogger("estimator_hooks")
_STATUS = {"finished": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}
_MAX_VALUE = 500  # MLflow stores this many characters of a parameter
_MAX_NAME = 250  # and of a name
_REFUSED = re.compile(r"[^\w./ :-]")


class MlflowTracker:
    """Sends runs to an MLflow tracking store.

    MLflow refuses some characters in names. They are replaced by `_`: `precision@5` becomes `precision_5`.

    Args:
        tracking_uri: the URI of the store, for example "sqlite:///runs.db". Default: the setting of MLflow.
        experiment: the name of the experiment. It is created if it does not exist.
        run_name: the name of the run in the store. Default: the name of the model_dir.

    Raises:
        TrackerMissingError: MLflow is not installed; raised in the run.

    Example:
        >>> MlflowTracker("sqlite:///runs.db", experiment="digits").name
        'mlflow'
    """

    name = "mlflow"

    def __init__(
        self, tracking_uri: str | None = None, *, experiment: str = "estimator", run_name: str | None = None
    ) -> None:
        self._tracking_uri = tracking_uri
        self._experiment = experiment
        self._run_name = run_name
        self._client: Any = None
        self._run_id = ""
        self._sent: dict[str, int] = {}

    def start(self, run: TrackedRun, run_id: str | None) -> str:
        """Starts a run in the store, or continues one that is still there."""
        try:
            mlflow: Any = import_module("mlflow")
        except ImportError as error:
            raise missing("MLflow", "mlflow") from error
        self._client = mlflow.MlflowClient(tracking_uri=self._tracking_uri)
        self._sent = {}
        if run_id is not None and self._continues(run_id):
            return run_id
        found = self._client.get_experiment_by_name(self._experiment)
        experiment_id = self._client.create_experiment(self._experiment) if found is None else found.experiment_id
        created = self._client.create_run(experiment_id, run_name=self._run_name or run.model_dir.name)
        self._run_id = created.info.run_id
        for name, value in run.parameters.items():
            self._client.log_param(self._run_id, _accepted(name), str(value)[:_MAX_VALUE])
        return self._run_id

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Sends the values that the store does not have yet."""
        for name, value in ((_accepted(name), value) for name, value in metrics.items()):
            if step > self._sent.get(name, -1):
                self._client.log_metric(self._run_id, name, value, step=step)
                self._sent[name] = step

    def keep(self, name: str, text: str) -> None:
        """Stores a file among the artifacts of the run."""
        self._client.log_text(self._run_id, text, name)

    def finish(self, ending: Ending) -> None:
        """Sets the status of the run."""
        self._client.set_terminated(self._run_id, _STATUS[ending])

    def _continues(self, run_id: str) -> bool:
        """Returns whether the store has the run, and reads the steps that it holds.

        A store that does not answer is an error, because a second run would split the curves.
        """
        exceptions: Any = import_module("mlflow.exceptions")
        try:
            stored = self._client.get_run(run_id)
        except exceptions.MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            stored = None
        if stored is None or stored.info.lifecycle_stage != "active":
            _log.warning("MLflow no longer has the run %s, so a new run starts.", run_id)
            return False
        self._run_id = run_id
        self._client.update_run(run_id, status="RUNNING")
        for name in stored.data.metrics:
            self._sent[name] = max(point.step for point in self._client.get_metric_history(run_id, name))
        return True


def _accepted(name: str) -> str:
    """Returns a name that MLflow accepts. A part that consists only of dots becomes `_`."""
    parts = _REFUSED.sub("_", name).split("/")
    return "/".join(part if part.strip(".") else "_" for part in parts)[:_MAX_NAME]
