"""Sends the scalars and evaluations of a run to a tracker."""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core.builtin_hooks import whole_steps
from estimator_core.errors import ArgumentTypeError, HookError
from estimator_core.hooks import Hook, Run
from estimator_core.modes import ModeKeys
from estimator_core.storage import draft_of
from estimator_core.summaries import without_secrets
from estimator_hooks.trackers.tracker import Ending, KeepsRecords, TrackedRun, Tracker

_log = logging.getLogger("estimator_hooks")
#: After a refused attempt of at least this many seconds, as with an unreachable server, the tracker is not called for
#: this many times the duration.
_LONG_SECS, _REST = 0.1, 10
#: The largest number of waiting points, for the training and for each evaluation.
_MOST_WAITING = 10_000


class TrackerHook(Hook):
    """Sends the scalars of every N-th step, and the results of evaluations, to a tracker.

    It does not interrupt dispatches of several steps. The file `<model_dir>/tracker_<name>.json` stores the run id of
    the tracker, so that a resumed run continues it. Only the chief sends data.

    A tracker that refuses its first point ends the run. Points that it refuses later are kept and sent again with the
    next ones. A warning is logged, and the run continues. If a refusal takes long, for example because the server is
    down, the tracker is called less often. It uses at most about a tenth of the time of the run. If more than 10,000
    points wait, every second one is dropped with a warning. Memory stays bounded, and the curve keeps its shape.

    Args:
        tracker: a `Tracker`, for example `MlflowTracker("sqlite:///runs.db", experiment="digits")`.
        every_n_steps: steps between points, counted from step 0.

    Raises:
        ArgumentTypeError: `tracker` is not a Tracker, or `every_n_steps` is not a number.
        ArgumentError: `every_n_steps` is not a positive whole number.
        HookError: the hook is used in `evaluate` or `predict`.
    """

    def __init__(self, tracker: Tracker, every_n_steps: int = 100) -> None:
        if not isinstance(tracker, Tracker):
            raise ArgumentTypeError(f"TrackerHook: the tracker must be a Tracker, given: {type(tracker).__name__}")
        self._tracker = tracker
        self._every = whole_steps(self, "every_n_steps", every_n_steps)
        self._evaluations_sent = 0
        self._started = False
        self._records_sent = False
        #: Points not sent yet, by part (training, or an evaluation). A point that is always refused blocks only its own
        #: part.
        self._points: defaultdict[str, deque[tuple[int, dict[str, float]]]] = defaultdict(deque)
        self._restored: Sequence[tuple[str, int, dict[str, float]]] = ()
        self._evaluations: Sequence[Mapping[str, Any]] = ()
        self._took = self._refuses = False
        self._dropped = 0
        self._next_attempt = 0.0

    def begin(self, run: Run) -> None:
        """Refuses calls other than `train`, because their values are not training values."""
        if run.mode != ModeKeys.TRAIN:
            raise HookError(
                f"TrackerHook: this is a call of mode {run.mode!r}. Pass the hook to train only: it also sends the "
                "results of evaluations during training."
            )

    def after_create(self, run: Run) -> None:
        """Follows all scalars, and starts or continues the run of the tracker."""
        self._started = self._records_sent = self._took = self._refuses = False
        self._next_attempt = 0.0
        self._dropped = 0
        self._points.clear()
        restored, self._restored = self._restored, ()
        if not run.config.is_chief:
            return
        for name in sorted(name for name, kind in run.output_kinds.items() if kind == "scalar"):
            run.follow(name)
        for part, step, metrics in restored:
            self._add(part, step, metrics)
        self._evaluations = run.estimator.history.evaluations
        self._evaluations_sent = len(self._evaluations)
        path = run.model_dir / f"tracker_{self._tracker.name}.json"
        known = _run_id(path)
        tracked = TrackedRun(model_dir=run.model_dir, first_step=run.step, parameters=dict(_parameters(run)))
        run_id = self._tracker.start(tracked, known)
        self._started = True
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of(path) as draft:
            draft.write_text(json.dumps({"run_id": run_id}), encoding="utf-8")

    def on_values(self, run: Run, steps: range, values: Mapping[str, np.ndarray]) -> None:
        """Sends the points that are due. Before the first points it sends the record, which is complete by then."""
        self._send_records(run)
        for index, step in enumerate(steps):
            if step % self._every == 0:
                metrics = {f"train/{name}": float(np.asarray(stacked[index])) for name, stacked in values.items()}
                self._add("train", step, metrics)
        self._add_evaluations()
        if (began := time.monotonic()) < self._next_attempt:
            return
        error = self._send()
        if error is not None and not self._took:
            raise error
        ended = time.monotonic()
        if error is not None and ended - began > _LONG_SECS:
            self._next_attempt = ended + _REST * (ended - began)

    def end(self, run: Run) -> None:
        """Sends the remaining points, and ends the run of the tracker. Refusals only warn, because the run is saved."""
        if not self._started:
            return
        self._started = False
        self._send_records(run)
        self._add_evaluations()
        error = self._send()
        if error is not None:
            _log.warning(
                "%s did not accept %d points of the run (%s: %s), so they are lost.",
                self._tracker.name,
                self._dropped + sum(map(len, self._points.values())),
                type(error).__name__,
                error,
            )
        stopped = run.failed and isinstance(sys.exc_info()[1], KeyboardInterrupt)  # a second Ctrl-C
        ending: Ending = "interrupted" if run.interrupted or stopped else "failed" if run.failed else "finished"
        try:
            self._tracker.finish(ending)
        except Exception as error:
            _log.warning("%s could not end its run (%s: %s).", self._tracker.name, type(error).__name__, error)

    def state(self) -> Mapping[str, Any]:
        """Returns the points up to a checkpoint that are not sent yet, because a resumed run does not repeat them."""
        if self._started:
            self._add_evaluations()
        return {"waiting": [[part, *point] for part, points in self._points.items() for point in points]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back the points that were not sent."""
        self._restored = [(part, step, dict(metrics)) for part, step, metrics in state.get("waiting", ())]

    def _add(self, part: str, step: int, metrics: dict[str, float]) -> None:
        """Adds a waiting point. If too many wait, every second one is dropped, but the newest stays."""
        points = self._points[part]
        points.append((step, metrics))
        if len(points) <= _MOST_WAITING:
            return
        kept = [*points][::-2][::-1]
        _log.warning(
            "%s did not accept %d points of %s, so every second one is dropped.", self._tracker.name, len(points), part
        )
        self._dropped += len(points) - len(kept)
        self._points[part] = deque(kept)

    def _send(self) -> Exception | None:
        """Sends the waiting points in order. Returns the last refusal."""
        errors = [error for points in self._points.values() if (error := self._send_some(points)) is not None]
        if self._refuses and not errors:
            missing = f"{self._dropped} are missing" if self._dropped else "none is missing"
            _log.warning("%s accepts points again: %s.", self._tracker.name, missing)
            self._dropped = 0
        self._refuses = bool(errors)
        return errors[-1] if errors else None

    def _send_some(self, points: deque[tuple[int, dict[str, float]]]) -> Exception | None:
        """Sends points until the tracker refuses one, which stays. Returns the refusal."""
        while points:
            step, metrics = points[0]
            try:
                self._tracker.log(metrics, step)
            except Exception as error:  # a client of a server may raise any type of error
                if self._took and not self._refuses:
                    self._refuses = True
                    _log.warning(
                        "%s did not accept the point of step %d (%s: %s). It is kept and sent again with the next "
                        "ones.",
                        self._tracker.name,
                        step,
                        type(error).__name__,
                        error,
                    )
                return error
            points.popleft()
            self._took = True
        return None

    def _send_records(self, run: Run) -> None:
        """Sends the files of the record. A refusal is a warning, because the parameters contain most of the record."""
        if self._records_sent or not isinstance(self._tracker, KeepsRecords):
            return
        self._records_sent = True
        try:
            for name, path in _record_files(run.model_dir):
                self._tracker.keep(name, path.read_text(encoding="utf-8"))
        except Exception as error:  # whatever it is, the run must not end because of it
            _log.warning(
                "%s did not accept the record of the run (%s: %s).", self._tracker.name, type(error).__name__, error
            )

    def _add_evaluations(self) -> None:
        rows = self._evaluations
        for row in rows[self._evaluations_sent :]:
            folder = "eval" if row["name"] is None else f"eval_{row['name']}"
            numbers = {
                f"{folder}/{name}": float(value)
                for name, value in row.items()
                if name not in ("name", "global_step") and not isinstance(value, str) and np.ndim(value) == 0
            }
            self._add(folder, int(row["global_step"]), numbers)
        self._evaluations_sent = len(rows)


def _run_id(path: Path) -> str | None:
    """Returns the tracker's run of an earlier call. None for the first call, or if the file is damaged."""
    if not path.exists():
        return None
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["run_id"])
    except (ValueError, KeyError, TypeError) as error:
        _log.warning("%s is damaged (%r): the tracker starts another run.", path, error)
        return None


def _parameters(run: Run) -> Iterator[tuple[str, Any]]:
    """Returns the record of the start in `run.json`, with masked secrets. Without the file, it is made from the run."""
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
    """Returns the files with the record of the newest start: `run.json`, and the input of `estimator reproduce`."""
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
    """Returns the values without secrets. A text without secrets stays as it is."""
    return {
        name: without_secrets([f"{name}={value}"])[0].partition("=")[2] if isinstance(value, str) else value
        for name, value in values.items()
    }
