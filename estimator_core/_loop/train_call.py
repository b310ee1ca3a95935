"""One `Estimator.train` call, from its first check to its last file."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core._backends import Devices
from estimator_core._builtin_hooks.evaluation import RunEvaluations
from estimator_core._checkpoint import CheckpointStore
from estimator_core._checkpoint.preemption import Preemption
from estimator_core._checkpoint.write_errors import placed
from estimator_core._cluster.together import ending_together
from estimator_core._inputs import InputFn
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.history import History
from estimator_core._loop.owning import own_together
from estimator_core._loop.programs import Programs
from estimator_core._loop.resuming import find_start
from estimator_core._loop.train_run import TrainRun
from estimator_core._plugins import Plugins, compare_versions
from estimator_core._step import Discovery, TrainState
from estimator_core._summaries import read_eval_metrics
from estimator_core.hooks import CheckpointListener, Hook

if TYPE_CHECKING:
    from estimator_core.estimator import Estimator

_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class TrainCall:
    """The arguments of a training call, checked, and what the Estimator lends it.

    Attributes:
        estimator: handed to hooks as `run.estimator`.
        devices, programs, state: of the Estimator.
        fresh: makes a state of initial values.
        entered: within, calls of the Estimator belong to the call of a context.
        model_dir: exists when `execute` is called.
        params: of the Estimator.
        evaluations: of train_and_evaluate.
        history: written to.
        plugins: the plugin registry.
    """

    estimator: Estimator
    devices: Devices
    programs: Programs
    state: DeviceState
    fresh: Callable[[Devices, Discovery], TrainState]
    entered: Callable[[RunContext], contextlib.AbstractContextManager[None]]
    model_dir: Path
    params: Any
    input_fn: InputFn
    hooks: Sequence[Hook]
    listeners: Sequence[CheckpointListener]
    steps: int | None
    max_steps: int | None
    evaluations: RunEvaluations | None
    history: History
    plugins: Plugins

    def execute(self) -> str:
        """Trains; returns why it ended.

        Raises:
            PreemptedError: when the platform asked for a stop; the state is saved.
        """
        devices = self.devices
        processes, config = devices.processes, devices.config
        with (
            placed(self.model_dir),
            ending_together(processes),
            own_together(self.model_dir, processes),
            Preemption(grace_secs=config.grace_secs) as preemption,
            contextlib.ExitStack() as cleanup,
        ):
            best = config.keep_checkpoint_best
            store = cleanup.enter_context(
                CheckpointStore(
                    self.model_dir,
                    keep_max=config.keep_checkpoint_max,
                    keep_every_n_hours=config.keep_checkpoint_every_n_hours,
                    keep_best=best,
                    results=lambda: read_eval_metrics(self.estimator.eval_dir(best and best.evaluation)),
                    processes=processes,
                )
            )
            _log.info("%s", self.plugins.opening_line())
            # The first process to ask for devices waits until all do; below one of them may have to wait for another.
            _ = devices.placement
            start = find_start(devices, self.state, str(self.model_dir))
            if start.items is not None:
                for line in compare_versions(start.items.manifest.get("plugins", ()), self.plugins.versions()):
                    _log.warning("%s", line)
            return TrainRun(self, start, store, preemption, cleanup).to_end()
