"""The tracker of Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from estimator_hooks.trackers.tracker import Ending, TrackedRun, missing

_EXIT_CODE = {"finished": 0, "failed": 1, "interrupted": 255}


class WandbTracker:
    """Sends runs to Weights & Biases.

    The x axis of the curves is the global step: `train/...` and every evaluation each have a `<part>/global_step`. With
    `mode="offline"`, a resumed run cannot see what a killed run has sent: points after its checkpoint appear twice.

    Args:
        project: the project. It is created if it does not exist.
        **settings: further arguments of `wandb.init`, for example `entity=` or `mode="offline"`.

    Raises:
        TrackerMissingError: wandb is not installed; raised in the run.

    Example:
        >>> WandbTracker("digits", mode="offline").name
        'wandb'
    """

    name = "wandb"

    def __init__(self, project: str, **settings: Any) -> None:
        self._project = project
        self._settings = settings
        self._run: Any = None
        self._sent: dict[str, int] = {}

    def start(self, run: TrackedRun, run_id: str | None) -> str:
        """Starts a run, or continues one."""
        try:
            wandb: Any = import_module("wandb")
        except ImportError as error:
            raise missing("Weights & Biases", "wandb") from error
        arguments = {"name": run.model_dir.name, "dir": str(run.model_dir), **self._settings}
        config = {
            name: value if isinstance(value, (int, float, bool)) else str(value)
            for name, value in run.parameters.items()
        }
        self._run = wandb.init(project=self._project, id=run_id, resume="allow", config=config, **arguments)
        self._sent = {}
        return str(self._run.id)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Sends the values of parts that have not reached this step."""
        parts = {name.partition("/")[0] for name in metrics}
        for part in sorted(parts):
            if step <= self._reached(part):
                continue
            values = {name: value for name, value in metrics.items() if name.partition("/")[0] == part}
            self._run.log({**values, f"{part}/global_step": step})
            self._sent[part] = step  # after the call, because a refused point is sent again

    def keep(self, name: str, text: str) -> None:
        """Stores a file among those of the run."""
        path = Path(self._run.dir) / name
        path.write_text(text, encoding="utf-8")
        self._run.save(str(path), base_path=str(path.parent), policy="now")

    def finish(self, ending: Ending) -> None:
        """Ends the run."""
        self._run.finish(exit_code=_EXIT_CODE[ending])

    def _reached(self, part: str) -> int:
        """Returns the newest step of a part that this process or an earlier one has sent."""
        if part not in self._sent:
            self._run.define_metric(f"{part}/*", step_metric=f"{part}/global_step")
            self._sent[part] = int(self._run.summary.get(f"{part}/global_step", -1))
        return self._sent[part]
