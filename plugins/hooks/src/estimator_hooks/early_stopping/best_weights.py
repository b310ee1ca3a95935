"""The weights of the best evaluation so far, kept on disk to restore them at the end of the run."""

from __future__ import annotations

import logging
import os
import shutil
import time
from pathlib import Path

from estimator_core.checkpoint import being_written, load_variables
from estimator_core.errors import HookError
from estimator_core.hooks import Run
from estimator_hooks.early_stopping.agreement import same_on_all_processes

_log = logging.getLogger("estimator_hooks")
FOLDER = "best_weights"
#: A commit becomes visible in the directory some time after the save was requested. The seconds to wait for it, and the
#: seconds between two looks.
_START_SECS, _POLL_SECS = 5.0, 0.02


class BestWeights:
    """Keeps a copy of the checkpoint of the best step, because retention would delete the checkpoint itself.

    Args:
        model_dir: the directory of the run. The copy is `<model_dir>/best_weights/<step>`, with hard links if the file
            system supports them.
    """

    def __init__(self, model_dir: Path) -> None:
        self._model_dir = model_dir
        self._checkpoints = model_dir / "checkpoints"
        self._kept = model_dir / FOLDER

    def kept_step(self) -> int | None:
        """Returns the step whose weights are kept, or None."""
        steps = [int(path.name) for path in self._kept.glob("*") if path.name.isdigit()]
        return max(steps, default=None)

    def keep(self, step: int) -> bool:
        """Keeps the checkpoint of a step instead of the previous one.

        Returns False if the checkpoint does not exist (yet).
        """
        source, target = self._checkpoints / str(step), self._kept / str(step)
        if target.exists():
            return True
        if not source.exists():
            return False
        draft = self._kept / f"{step}.draft"
        shutil.rmtree(draft, ignore_errors=True)
        try:
            shutil.copytree(source, draft, copy_function=_link_or_copy)
        except (FileNotFoundError, shutil.Error):  # retention has deleted it in the meantime
            shutil.rmtree(draft, ignore_errors=True)
            return False
        draft.rename(target)
        for path in self._kept.iterdir():
            if path != target:
                shutil.rmtree(path, ignore_errors=True)
        return True

    def put_back(self, run: Run, step: int) -> None:
        """Replaces the current weights and model state with those of a step.

        Raises:
            HookError: the weights of the step cannot be found.
        """
        if not same_on_all_processes(run.config.is_chief and self._keep_when_written(step)):
            raise HookError(
                f"restore_best: the best evaluation is that of step {step}, but its checkpoint no longer exists. Raise "
                "RunConfig.keep_checkpoint_max, or let the hook check more often (run_every_steps)."
            )
        values = load_variables(str(self._kept / str(step)))
        state = run.state
        run.assign({path: values[path] for path in (*state.variables, *state.model_state)})
        _log.info("Restored the weights of step %d, the best evaluation.", step)

    def _keep_when_written(self, step: int) -> bool:
        """Waits for a commit in progress, because steps may be faster than the disk. Returns whether it is kept."""
        seen = time.monotonic()
        while not self.keep(step):
            if being_written(self._model_dir, step):
                seen = time.monotonic()
            elif time.monotonic() - seen > _START_SECS:
                return False
            time.sleep(_POLL_SECS)
        return True


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
