"""What one `Estimator.train` call is given."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core._backends import Devices
from estimator_core._builtin_hooks.evaluation import RunEvaluations
from estimator_core._inputs import InputFn
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.history import History
from estimator_core._loop.programs import Programs
from estimator_core._model_dir import ModelDir
from estimator_core._plugins import Plugins
from estimator_core._step import Discovery, TrainState
from estimator_core.hooks import CheckpointListener, Hook

_log = logging.getLogger("estimator_core")

if TYPE_CHECKING:
    from estimator_core._loop.owner import Owner


@dataclass(frozen=True, kw_only=True)
class TrainCall:
    """The arguments of a training call, checked, and what the Estimator lends it.

    Attributes:
        estimator: handed to hooks as `run.estimator`.
        devices, programs, state: of the Estimator.
        fresh: makes a state of initial values.
        entered: within, calls of the Estimator belong to the call of a context.
        model_dir: exists when `execute` is called.
        place: what the model_dir stands for.
        params: of the Estimator.
        evaluations: of train_and_evaluate.
        history: written to.
        plugins: the plugin registry.
    """

    estimator: Owner
    devices: Devices
    programs: Programs
    state: DeviceState
    fresh: Callable[[Devices, Discovery], TrainState]
    entered: Callable[[RunContext], contextlib.AbstractContextManager[None]]
    model_dir: Path
    place: ModelDir
    params: Any
    input_fn: InputFn
    hooks: Sequence[Hook]
    listeners: Sequence[CheckpointListener]
    steps: int | None
    max_steps: int | None
    evaluations: RunEvaluations | None
    history: History
    plugins: Plugins
