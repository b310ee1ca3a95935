"""The arguments of one `Estimator.train` call."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from estimator_core._backends import Devices
from estimator_core._builtin_hooks.history import History
from estimator_core._inputs import InputFn
from estimator_core._loop.checkpointing import RunEvaluations, has_policy
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.programs import Programs
from estimator_core._model_dir import ModelDir
from estimator_core._step import Discovery, TrainState
from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError
from estimator_core.hooks import CheckpointListener, CheckpointPolicy, Hook
from estimator_core.specs import check_steps

_log = logging.getLogger("estimator_core")
_DO_NOT_TRAIN = {
    "evaluator": "Use ec.train_and_evaluate, which does the right thing for every role.",
    "ps": "There are no parameter servers here: start no ps tasks. RunConfig(partition_rules=...) splits large state.",
}

if TYPE_CHECKING:
    from estimator_core._inputs.seen_features import SeenFeatures


@dataclass(frozen=True, kw_only=True)
class TrainArguments:
    """The checked arguments of a training call, and the parts of the Estimator that it uses.

    Attributes:
        context: the context of the call, still without its event file, decisions and results. Its directory is the
            model_dir, which exists when `execute` is called.
        programs, state: the programs and the state of the Estimator.
        fresh: a function that makes a state of initial values.
        entered: a function that returns a block in which calls of the Estimator belong to the call of a context.
        place: the model_dir, which may be a copy of a URL.
        input_fn: the function that returns batches, with host transforms applied.
        hooks: the hooks of the call. A checkpoint policy among them replaces that of the config.
        listeners: the listeners that are called around each save.
        steps: the number of steps to train in this call. None: no limit.
        max_steps: the global step at which training ends. None: no limit.
        evaluations: the evaluations of train_and_evaluate.
        seeing: the transforms that record the features of training. It may be empty.
        history: the history that the call fills.
    """

    context: RunContext
    programs: Programs
    state: DeviceState
    fresh: Callable[[Devices, Discovery], TrainState]
    entered: Callable[[RunContext], contextlib.AbstractContextManager[None]]
    place: ModelDir
    input_fn: InputFn
    hooks: Sequence[Hook]
    listeners: Sequence[CheckpointListener]
    steps: int | None
    max_steps: int | None
    evaluations: RunEvaluations | None
    seeing: Sequence[SeenFeatures]
    history: History


def check_training(
    config: RunConfig,
    hooks: Sequence[Hook],
    listeners: Sequence[CheckpointListener],
    *,
    steps: int | None,
    max_steps: int | None,
) -> tuple[int | None, int | None]:
    """Refuses arguments of a training call that cannot be combined. Returns both numbers of steps as int of Python.

    Raises:
        ArgumentError, ArgumentTypeError: both numbers of steps are set or one is invalid, the process does not train,
            several hooks are policies, or there are listeners although nothing is saved.
    """
    if steps is not None and max_steps is not None:
        raise ArgumentError("Can not provide both steps and max_steps.")
    check_steps("steps", steps)
    check_steps("max_steps", max_steps)
    if hint := _DO_NOT_TRAIN.get(config.task_type or ""):
        raise ArgumentError(f"Train has been called wrong configuration: the task type is {config.task_type}. {hint}")
    given = [type(hook).__name__ for hook in hooks if isinstance(hook, CheckpointPolicy)]
    if len(given) > 1:
        raise ArgumentError(f"hooks: {', '.join(given)} all decide when to save. Write one policy for all of them.")
    if listeners and not given and not has_policy(config):
        raise ArgumentError(
            "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
            "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs, or give one in hooks."
        )
    return None if steps is None else int(steps), None if max_steps is None else int(max_steps)
