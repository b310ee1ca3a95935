"""Determines the start of a training call: its state, its input, and the owed work of a previous killed call.

A checkpoint records whether it is the last one of its call, and why that call ended. The journal records whether the
call has ended since. If the same call runs again, it runs no steps. It only does the work after the last save, and
records the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from estimator_core._backends import Devices, Placement
from estimator_core._checkpoint import CheckpointItems, latest_checkpoint
from estimator_core._checkpoint.catalog import checkpoint_step, checkpoints_dir
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._checkpoint.newest import read_latest
from estimator_core._cluster.processes import chief_says, gather
from estimator_core._inputs import InputContext, InputPosition
from estimator_core._journal.reading import ended_since, lineage_of
from estimator_core._loop.agreement import of_several
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.initial_state import placed, put_all
from estimator_core._loop.programs import Programs, state_shardings
from estimator_core._loop.run_record import FILE, changed_hparams, ended_step
from estimator_core._plugins import Plugins
from estimator_core._step import Discovery, TrainState
from estimator_core._step.state import flatten_opt_state, unflatten_opt_state
from estimator_core._storage.local import LocalStorage
from estimator_core.coordinator import Coordinator
from estimator_core.errors import CheckpointNotFoundError


def input_context(devices: Devices) -> InputContext:
    """Returns the context for input functions of these devices."""
    placement = devices.placement
    if not placement.spans_processes:
        return InputContext(num_replicas_in_sync=placement.batch_parts)
    part, parts = placement.input_part(devices.processes.index)
    return InputContext(
        num_input_pipelines=parts,
        input_pipeline_id=part,
        num_replicas_in_sync=placement.batch_parts,
        parts=placement.parts[devices.processes.index],
    )


_PARTS = "parts"


def positions_json(
    position: InputPosition | None, processes: Coordinator, pipelines: Sequence[Sequence[int]]
) -> dict[str, Any] | None:
    """Returns the position for a checkpoint: that of the chief, and with several processes that of every part of the
    input.
    """
    own = None if position is None else position.to_json()
    if processes.count == 1:
        return own
    told = gather(processes, "position", own)
    parts = [told[members[0]] for members in pipelines]
    return None if parts[0] is None else {**parts[0], _PARTS: parts}


def position_of(saved: Mapping[str, Any], context: InputContext) -> InputPosition:
    """Returns the position of one share of the input.

    A position of all processes together is valid for any number of processes. An input that divides itself continues
    only with the same number of processes. With another number, its position is that of another share, so it starts
    again and logs the reason.
    """
    parts: list[InputPosition] = [InputPosition.from_json(part) for part in saved.get(_PARTS) or [saved]]
    return parts[context.input_pipeline_id] if len(parts) == context.num_input_pipelines else parts[0]


_KEY = "ending"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The end of a call: its reason, and the state of the work that belongs to it.

    Args:
        reason: the reason for the end.
        last_step: the last step allowed in the call. None: no limit.
        replaced: whether a hook replaced variables for the last save.
        prepared: whether `before_last_save` of the hooks was called.
    """

    reason: str
    last_step: int | None
    replaced: bool = False
    prepared: bool = True

    def in_manifest(self) -> dict[str, Any]:
        """Returns the entry in the manifest of the last checkpoint."""
        return {_KEY: asdict(self)}


def owed_ending(
    processes: Coordinator, checkpoint: str, *, model_dir: str, steps: int | None, max_steps: int | None
) -> Ending | None:
    """Returns the ending of the call that wrote the newest checkpoint, if it was killed before its end and this call is
    the same.

    Args:
        processes: the processes that start together. The first one decides.
        checkpoint: the path of the newest checkpoint.
        model_dir: the model_dir of the run.
        steps: the argument of the starting call. With it, each call runs new steps.
        max_steps: the argument of the starting call.

    Example:
        >>> from estimator_core.coordinator import ALONE
        >>> owed_ending(ALONE, "runs/line/checkpoints/20", model_dir="runs/line", steps=10, max_steps=None) is None
        True
    """
    if steps is not None:
        return None
    told: Any = read_manifest(Path(checkpoint)).extras.get(_KEY)
    if told is None or told["last_step"] != max_steps:
        return None
    ended = call_ended(model_dir, checkpoint_step(checkpoint))
    # If nothing is recorded, the directory is a copy of checkpoints for another call.
    return None if chief_says(processes, "ended-since", ended is not False) else Ending(**told)


def call_ended(model_dir: str, step: int) -> bool | None:
    """Returns whether the call that saved a step, or one that began there, ended successfully at it; None if this is
    unknown.

    Args:
        model_dir: the model_dir of the run.
        step: the step of the checkpoint.
    """
    lineage = lineage_of(model_dir)
    if lineage is not None:
        return ended_since(LocalStorage(Path(model_dir)), lineage, step)
    if not (Path(model_dir) / FILE).is_file():
        return None
    return ended_step(Path(model_dir), well=True) == step  # a copy of a directory in a store


def is_over(devices: Devices, state: DeviceState, model_dir: str, max_steps: int | None, plugins: Plugins) -> bool:
    """Returns whether a call up to a step has nothing to do, not even the remaining work of a killed call.

    Args:
        devices: the devices of the Estimator.
        state: the state in memory.
        model_dir: the model_dir of the run.
        max_steps: the step. None: there is always something to do.
        plugins: the registry, whose block list and policy apply.
    """
    if max_steps is None:
        return False
    newest = latest_checkpoint(model_dir)
    if state.is_in(newest):
        return state.state is not None and state.step >= max_steps
    if newest is None or checkpoint_step(newest) < max_steps:
        return False
    processes = devices.processes
    if processes.count > 1:
        of_several(plugins).announce(processes, "train", hooks=(), versions=tuple, max_steps=max_steps)
    found = read_latest(model_dir, processes=processes)  # the name alone does not show that it is intact
    if found is None or found.step < max_steps:
        return False
    return owed_ending(processes, found.path, model_dir=model_dir, steps=None, max_steps=max_steps) is None


def reached_before(max_steps: int, model_dir: str, params: Any) -> str:
    """Returns the stop reason of a call that had nothing to do, with the hyperparameters that differ from the run's.

    Args:
        max_steps: the argument of the call.
        model_dir: the model_dir of the run.
        params: the hyperparameters of the Estimator.
    """
    changed = changed_hparams(Path(model_dir), params)
    if not changed:
        return f"max_steps ({max_steps}) was reached before"
    return (
        f"max_steps ({max_steps}) was reached before, with other hyperparameters: {changed}. Nothing was trained with "
        "the new ones. To train with them, choose another model_dir, or more steps to continue this run"
    )


@dataclass(frozen=True, kw_only=True)
class Start:
    """The point from which a training call starts.

    Attributes:
        step: the global step.
        checkpoint: the path of the checkpoint. None for a fresh start, or a start from memory without checkpoints.
        items: the contents of the checkpoint; None if the state is already in memory, or fresh.
        position: the position of the input.
        hook_states: the states of hooks, by name. Empty if a new call begins.
        unfinished: whether this start continues an interrupted call.
        cut_short: whether that call is known to have been interrupted, or to have failed.
        ending: the ending of that call, if it was interrupted after its last save and only its end remains.
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
    """Decides where to start. A checkpoint that is newer than the state in memory takes precedence.

    Args:
        devices: the devices of the Estimator.
        state: the state in memory.
        model_dir: the model_dir of the run.
        plugins: the registry of readers of other frameworks' checkpoints.
        owed: a function that returns the ending of the call that wrote the newest checkpoint, if only its end remains.

    Raises:
        CheckpointError: the model_dir has only a checkpoint of another framework.
        CheckpointNotFoundError: the only checkpoints were deleted during the read.
    """
    processes = devices.processes
    newest = latest_checkpoint(model_dir)
    told = chief_says(processes, "newest", None if newest is None else checkpoint_step(newest))
    newest = newest if processes.count == 1 else _in(model_dir, told)
    if chief_says(processes, "held", state.state is not None and state.is_in(newest)):
        return Start(step=state.step, checkpoint=newest, position=state.position)
    state.forget()
    found = read_latest(model_dir, set_aside=True, processes=processes)
    if found is None:
        if told is not None:  # starting from scratch would lose the run
            raise CheckpointNotFoundError(f"Checkpoint {told} of {model_dir} was deleted while being read. Try again.")
        if plugins.names("initial_values"):  # a plugin may read checkpoints of other frameworks
            from estimator_core._checkpoint.foreign import refuse_foreign

            refuse_foreign(model_dir, plugins)
        return Start()
    path, items = found.path, found.items
    saver: Mapping[str, Any] = items.hooks.get("CheckpointSaverHook", {})
    # A call that ends regularly at a step with a checkpoint does not save that step again to record its end. Later
    # calls that began here and were killed do not change that.
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
    """Returns the state of a checkpoint, from which training continues.

    Raises:
        CheckpointMismatchError: the checkpoint does not fit the model. The message lists the differences.
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
        leaves,
        None if shardings is None else flatten_opt_state(shardings.opt_state),
        {name: leaf.dtype for name, leaf in expected.items()},
    )
    return unflatten_opt_state(discovery.opt_state, slots)


def _in(model_dir: str, step: int | None) -> str | None:
    """Returns the path of a checkpoint of the chief, on this process."""
    return None if step is None else str(checkpoints_dir(model_dir) / str(step))
