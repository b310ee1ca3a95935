"""Sends a run's scalars and evaluations to a tracker."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.hooks import Hook, Run
from estimator_core.summaries import without_secrets
from estimator_hooks.trackers.tracker import Ending, KeepsRecords, TrackedRun, Tracker

_log = logging.getLogger("estimator_hooks")


class TrackerHook(Hook):
    """Sends the scalars of every N-th step, and the results of evaluations, to a tracker.

    It forces no boundary on several steps per dispatch. The file `<model_dir>/tracker_<name>.json` names the tracker's
    run, so that a resumed run continues it. Only the chief sends.

    Args:
        tracker: a `Tracker`, for example `MlflowTracker("sqlite:///runs.db", experiment="digits")`.
        every_n_steps: steps between points, counted from step 0.

    Raises:
        ArgumentTypeError: not a Tracker.
        ArgumentError: `every_n_steps` is not positive.
    """

    def __init__(self, tracker: Tracker, every_n_steps: int = 100) -> None:
        if not isinstance(tracker, Tracker):
            raise ArgumentTypeError(f"TrackerHook: the tracker must be a Tracker, given: {type(tracker).__name__}")
        if every_n_steps < 1:
            raise ArgumentError(f"TrackerHook: every_n_steps must be at least 1, given: {every_n_steps}")
        self._tracker = tracker
        self._every = every_n_steps
        self._evaluations_sent = 0
        self._started = False
        self._records_sent = False

    def after_create(self, run: Run) -> None:
        """Follows all scalars; starts the tracker's run, or continues it."""
        self._started = self._records_sent = False
        if not run.config.is_chief:
            return
        for name in sorted(name for name, kind in run.output_kinds.items() if kind == "scalar"):
            run.follow(name)
        self._evaluations_sent = len(run.estimator.history.evaluations)
        path = run.model_dir / f"tracker_{self._tracker.name}.json"
        known = json.loads(path.read_text(encoding="utf-8"))["run_id"] if path.exists() else None
        tracked = TrackedRun(model_dir=run.model_dir, first_step=run.step, parameters=dict(_parameters(run)))
        run_id = self._tracker.start(tracked, known)
        self._started = True
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"run_id": run_id}), encoding="utf-8")

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Sends the points that are due, and before the first ones the record, which all hooks have begun by then."""
        self._send_records(run)
        for index, step in enumerate(steps):
            if step % self._every == 0:
                metrics = {f"train/{name}": float(np.asarray(stacked[index])) for name, stacked in values.items()}
                self._tracker.log(metrics, step)
        self._send_evaluations(run)

    def end(self, run: Run) -> None:
        """Sends the rest and ends the tracker's run."""
        if self._started:
            self._started = False
            self._send_records(run)
            self._send_evaluations(run)
            ending: Ending = "failed" if run.failed else "interrupted" if run.interrupted else "finished"
            self._tracker.finish(ending)

    def _send_records(self, run: Run) -> None:
        """Sends the files of the record. Parameters have told the most of them: a place that refuses files is named."""
        if self._records_sent or not isinstance(self._tracker, KeepsRecords):
            return
        self._records_sent = True
        try:
            for name, path in _record_files(run.model_dir):
                self._tracker.keep(name, path.read_text(encoding="utf-8"))
        except Exception as error:  # whatever it is, the run is worth more than a copy of its record
            _log.warning(
                "%s did not take the record of the run (%s: %s).", self._tracker.name, type(error).__name__, error
            )

    def _send_evaluations(self, run: Run) -> None:
        rows = run.estimator.history.evaluations
        for row in rows[self._evaluations_sent :]:
            folder = "eval" if row["name"] is None else f"eval_{row['name']}"
            numbers = {
                f"{folder}/{name}": float(value)
                for name, value in row.items()
                if name not in ("name", "global_step") and not isinstance(value, str) and np.ndim(value) == 0
            }
            self._tracker.log(numbers, int(row["global_step"]))
        self._evaluations_sent = len(rows)


def _parameters(run: Run) -> Iterator[tuple[str, Any]]:
    """What `run.json` says of the start, in which secrets are masked. A run without one tells its hyperparameters."""
    record = _record(run)
    for part, key in (("params", "hparams"), ("config", "run_config"), ("versions", "versions"), ("call", "call")):
        values = record.get(key)
        if isinstance(values, Mapping):
            yield from ((f"{part}/{name}", value) for name, value in values.items())
    for plugin in record.get("plugins", ()):
        yield f"plugins/{plugin['distribution']}", plugin["version"]
    if "arguments" in record:
        yield "arguments", " ".join(record["arguments"])


def _record_files(model_dir: Path) -> Iterator[tuple[str, Path]]:
    """The files that hold the record of the newest start: `run.json`, and the one that `estimator reproduce` reads."""
    record, starts = model_dir / "run.json", model_dir / "capsules" / "starts.jsonl"
    if record.is_file():
        yield record.name, record
    if starts.is_file():
        newest = json.loads(starts.read_text(encoding="utf-8").splitlines()[-1])
        yield "capsule.json", starts.parent / f"{newest['capsule']}.json"


def _record(run: Run) -> Mapping[str, Any]:
    path = run.model_dir / "run.json"
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    params = run.params
    values: Any = params.values() if hasattr(params, "parse_json") else params
    config = {field.name: getattr(run.config, field.name) for field in dataclasses.fields(run.config)}
    found = {"hparams": values, "run_config": config}
    return {key: _masked(told) if isinstance(told, Mapping) else told for key, told in found.items()}


def _masked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values without secrets. A text that holds none stays as it is."""
    return {
        name: without_secrets([f"{name}={value}"])[0].partition("=")[2] if isinstance(value, str) else value
        for name, value in values.items()
    }
