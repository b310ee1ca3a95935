"""What a call owes that was killed after its last save: only its end.

A checkpoint says whether it is the last one of its call, and why that call ended. The journal says whether the call has
ended since. The next call that is the same makes no step: it runs what comes after the last save, and records the end.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from estimator_core._backends import Devices
from estimator_core._checkpoint import latest_checkpoint
from estimator_core._checkpoint.layout import checkpoint_step
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._cluster.processes import announce, chief_says
from estimator_core._journal import ended_since, lineage_of
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.run_record import FILE, ended_step
from estimator_core._storage.local import LocalStorage
from estimator_core.coordinator import Coordinator

_KEY = "ending"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a call ended.

    Args:
        reason: why.
        last_step: the step up to which it trained at most; None: there was none.
        replaced: whether a hook replaced variables for the last save.
        prepared: whether `before_last_save` of the hooks was called.
    """

    reason: str
    last_step: int | None
    replaced: bool = False
    prepared: bool = True

    def in_manifest(self) -> dict[str, Any]:
        """What the manifest of the last checkpoint holds."""
        return {_KEY: asdict(self)}


def owed_ending(
    processes: Coordinator, checkpoint: str, *, model_dir: str, steps: int | None, max_steps: int | None
) -> Ending | None:
    """How the call ended that wrote the newest checkpoint, if it was killed before its end and this call is the same.

    Args:
        processes: those that start together; the first one decides.
        checkpoint: the newest one.
        model_dir: its directory.
        steps: of the call that starts; with it, each call makes steps of its own.
        max_steps: of the call that starts.

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
    # Where nothing says so, it is a copy of checkpoints, for another call.
    return None if chief_says(processes, "ended-since", ended is not False) else Ending(**told)


def call_ended(model_dir: str, step: int) -> bool | None:
    """Whether the call that saved a step, or one that began there, has ended well at it; None if nothing says so.

    Args:
        model_dir: of the run.
        step: of the checkpoint.
    """
    lineage = lineage_of(model_dir)
    if lineage is not None:
        return ended_since(LocalStorage(Path(model_dir)), lineage, step)
    if not (Path(model_dir) / FILE).is_file():
        return None
    return ended_step(Path(model_dir), well=True) == step  # a copy of a directory in a store


def is_over(devices: Devices, state: DeviceState, model_dir: str, max_steps: int | None) -> bool:
    """Whether a call up to a step has nothing to do, not even to end what a killed one has left.

    Args:
        devices: of the Estimator.
        state: the state in memory.
        model_dir: of the run.
        max_steps: the step; None: there is always something to do.
    """
    if max_steps is None:
        return False
    newest = latest_checkpoint(model_dir)
    if newest is None or checkpoint_step(newest) == state.checkpoint_step:
        return state.state is not None and state.step >= max_steps
    if checkpoint_step(newest) < max_steps:
        return False
    processes = devices.processes
    announce(processes, "train", hooks=(), versions=tuple, max_steps=max_steps)
    return owed_ending(processes, newest, model_dir=model_dir, steps=None, max_steps=max_steps) is None
