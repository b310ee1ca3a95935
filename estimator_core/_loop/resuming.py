"""Where a training call starts: from the state in memory, from a checkpoint, or fresh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimator_core._backends import Devices, Placement
from estimator_core._checkpoint import CheckpointItems, latest_checkpoint
from estimator_core._checkpoint.layout import checkpoint_step, checkpoints_dir
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._checkpoint.newest import read_latest
from estimator_core._cluster.processes import chief_says
from estimator_core._inputs import InputPosition
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.ending import Ending, call_ended
from estimator_core._loop.positions import input_context, position_of
from estimator_core._loop.programs import Programs, state_shardings
from estimator_core._loop.starting import placed, put_all
from estimator_core._plugins import Plugins
from estimator_core._step import Discovery, TrainState
from estimator_core._step.state import flatten_opt_state, unflatten_opt_state
from estimator_core.errors import CheckpointNotFoundError


@dataclass(frozen=True, kw_only=True)
class Start:
    """The point that a training call starts from.

    Attributes:
        step: the global step.
        checkpoint: its path; None for a start from memory without checkpoints, or a fresh one.
        items: what the checkpoint holds; None if the state is in memory already, or fresh.
        position: the position of the input.
        hook_states: the states of hooks by name; empty if a new call begins.
        unfinished: whether this continues an interrupted call.
        cut_short: whether that call is known to have been interrupted, or to have failed.
        ending: how that call had ended, if it was interrupted after its last save: only its end is left.
    """

    step: int = 0
    checkpoint: str | None = None
    items: CheckpointItems | None = None
    position: InputPosition | None = None
    hook_states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    unfinished: bool = False
    cut_short: bool = False
    ending: Ending | None = None


def find_start(
    devices: Devices,
    state: DeviceState,
    model_dir: str,
    plugins: Plugins,
    owed: Callable[[str], Ending | None] = lambda checkpoint: None,
) -> Start:
    """Decides where to start. A checkpoint that is newer than the state in memory wins.

    Args:
        devices: of the Estimator.
        state: the state in memory.
        model_dir: of the run.
        plugins: know checkpoints of others.
        owed: how the call had ended that wrote the newest checkpoint, if only its end is left.

    Raises:
        CheckpointError: there is a checkpoint of another framework, and none of ours.
        CheckpointNotFoundError: the only checkpoints were deleted while being read.
    """
    processes = devices.processes
    newest = latest_checkpoint(model_dir)
    told = chief_says(processes, "newest", None if newest is None else checkpoint_step(newest))
    newest = newest if processes.count == 1 else _in(model_dir, told)
    if state.state is not None and (newest is None or checkpoint_step(newest) == state.checkpoint_step):
        return Start(step=state.step, checkpoint=newest, position=state.position)
    found = read_latest(model_dir, set_aside=True, processes=processes)
    if found is None:
        if told is not None:  # starting from scratch would lose the run
            raise CheckpointNotFoundError(f"Checkpoint {told} of {model_dir} was deleted while being read. Try again.")
        if plugins.names("initial_values"):  # who reads a checkpoint of another framework
            from estimator_core._checkpoint.foreign import refuse_foreign

            refuse_foreign(model_dir, plugins)
        return Start()
    path, items = found.path, found.items
    saver: Mapping[str, Any] = items.hooks.get("CheckpointSaverHook", {})
    # A call that ends by itself at a step with a checkpoint does not save that step again to record its end.
    # Calls that began here since, and were killed, change nothing about that.
    known = chief_says(processes, "ended", call_ended(model_dir, int(items.clock[0])))  # others may have older records
    ended = saver.get("finished", False) or bool(known)
    ending = owed(path)
    unfinished = not ended or ending is not None or saver.get("owed_step") == int(items.clock[0])
    return Start(
        step=int(items.clock[0]),
        checkpoint=path,
        items=items,
        position=None if items.input is None else position_of(items.input, input_context(devices)),
        hook_states=items.hooks if unfinished else {},
        unfinished=unfinished,
        cut_short=unfinished and known is False,
        ending=ending,
    )


def restored_state(
    devices: Devices, programs: Programs, discovery: Discovery, items: CheckpointItems, checkpoint: str
) -> TrainState:
    """The state of a checkpoint, from which training continues.

    Raises:
        CheckpointMismatchError: the checkpoint does not fit the model. The message says how.
    """
    from estimator_core._checkpoint.restore import check_fits

    abstract = {
        "variables": discovery.trainable,
        "model_state": discovery.model_state,
        "opt_state": flatten_opt_state(discovery.opt_state),
    }
    check_fits(
        Path(checkpoint),
        read_manifest(Path(checkpoint)),
        abstract,
        allow_cast=devices.config.allow_cast,
        allow_missing=False,
        allow_extra=False,
    )
    return placed(devices.placement, programs, items, _slots(devices.placement, items.opt_state, discovery))


def _slots(placement: Placement, leaves: Mapping[str, object], discovery: Discovery) -> Any:
    expected = flatten_opt_state(discovery.opt_state)
    shardings = state_shardings(placement, discovery)
    slots = put_all(
        placement,
        {name: leaves[name] for name in expected},
        None if shardings is None else flatten_opt_state(shardings.opt_state),
        {name: leaf.dtype for name, leaf in expected.items()},
    )
    return unflatten_opt_state(discovery.opt_state, slots)


def _in(model_dir: str, step: int | None) -> str | None:
    """The path of a checkpoint of the chief, on this process."""
    return None if step is None else str(checkpoints_dir(model_dir) / str(step))
