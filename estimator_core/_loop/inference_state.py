"""The state that evaluate, predict and export use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from estimator_core._backends import Devices, Placement
from estimator_core._checkpoint import CheckpointItems, latest_checkpoint
from estimator_core._checkpoint.catalog import manifest_digest, resolve_checkpoint
from estimator_core._checkpoint.foreign import refuse_foreign
from estimator_core._checkpoint.manifest import read_manifest
from estimator_core._checkpoint.newest import read_latest
from estimator_core._checkpoint.read import open_checkpoint, reading
from estimator_core._checkpoint.restore import check_fits
from estimator_core._inputs import Batch
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState, is_readable
from estimator_core._loop.initial_state import placed
from estimator_core._loop.programs import Programs
from estimator_core._step import Discovery, TrainState
from estimator_core.coordinator import Coordinator
from estimator_core.errors import CheckpointNotFoundError
from estimator_core.modes import ModeKeys

_ITEMS = ("variables", "model_state")


class InferenceStates:
    """Provides the states of one Estimator.

    The state of a checkpoint is kept until another one is requested or training begins.

    Args:
        programs: the programs of the Estimator. Their variables are compared with those of a checkpoint.
        live: the newest state.
        model_dir: the directory of the checkpoints.
        fresh: a function that makes a state of initial values. None: they were not requested.
        agree: a function that sends the newest checkpoint of the chief to all processes.
    """

    def __init__(
        self,
        programs: Programs,
        live: DeviceState,
        model_dir: str,
        fresh: Callable[[Devices, Discovery], TrainState] | None,
        agree: Callable[[Coordinator], None],
    ) -> None:
        self._programs, self._live, self._model_dir, self._fresh = programs, live, model_dir, fresh
        self._agree = agree
        self._kept: tuple[tuple[str, str | None, Placement], TrainState] | None = None

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Inside the block, live arrays from `get` remain valid, even if another thread begins to train."""
        return self._live.read_here()

    def get(self, context: RunContext, batch: Batch | None, checkpoint_path: str | None) -> TrainState:
        """Returns a state for a call: the requested checkpoint, the live state, the newest checkpoint, or initial
        values.

        EVAL receives the live arrays, to be read inside `reading`. PREDICT receives a snapshot. While another thread
        trains, the newest checkpoint is used.

        Args:
            context: the context of the call.
            batch: the first batch, which is required to discover a model without a state. None without a batch.
            checkpoint_path: the requested checkpoint.

        Raises:
            CheckpointNotFoundError: nothing has been trained, and initial values were not requested.
        """
        live, programs, model_dir, named = self._live, self._programs, self._model_dir, context.config.model_dir
        if checkpoint_path is not None:
            path = str(resolve_checkpoint(checkpoint_path, context.plugins))
            return self._of_checkpoint(path, context, batch, lambda: self._read(path, context))
        if not context.training:
            self._agree(context.devices.processes)
        newest = None if context.training and not context.devices.apart else latest_checkpoint(model_dir)
        if self._is_live(context, newest):
            return live.ready if context.mode == ModeKeys.EVAL else live.snapshot()
        newest = latest_checkpoint(model_dir) if newest is None else newest
        if newest is not None:
            return self._of_checkpoint(newest, context, batch, lambda: self._read_newest(context))
        if live.trained_elsewhere:
            raise CheckpointNotFoundError(
                f"Another thread is training this Estimator, and there is no checkpoint in {named} yet. Wait for the "
                "first one, or make this call in a hook of the training."
            )
        read_latest(model_dir, ())  # raises an error if all checkpoints are damaged
        refuse_foreign(model_dir, context.plugins)
        if self._fresh is None:
            raise CheckpointNotFoundError(
                f"Could not find trained model in model_dir: {named}. Train first, give checkpoint_path or "
                "warm_start_from, or set RunConfig(allow_untrained=True) to use initial values."
            )
        if batch is None:
            raise CheckpointNotFoundError(f"The model in {named} has no state yet: train, evaluate or predict first.")
        discovery = programs.discovery(context.devices, context.mode, batch, fresh=True)
        live.start(self._fresh(context.devices, discovery))
        return live.ready if context.mode == ModeKeys.EVAL else live.snapshot()

    def at_hand(self, context: RunContext) -> TrainState:
        """Returns a state like `get` without a batch.

        One of several processes may call it alone, because it does not wait for the others. Do not keep the result,
        because live arrays are donated to the next step.
        """
        alone = context.devices.processes.count == 1
        newest = None if context.training else latest_checkpoint(self._model_dir)
        if self._is_live(context, newest) and (alone or context.training or is_readable(self._live.ready)):
            return self._live.ready
        return self.get(context if alone else context.within(devices=context.devices.alone()), None, None)

    def _is_live(self, context: RunContext, newest: str | None) -> bool:
        """Returns whether the live state exists, is the newest, and can be read without other processes."""
        live = self._live
        if live.trained_elsewhere or live.state is None:
            return False
        if context.devices.apart and newest is not None:
            return False  # distributed over processes that do not take part
        return context.training or live.is_in(newest)

    def _of_checkpoint(
        self, path: str, context: RunContext, batch: Batch | None, read: Callable[[], CheckpointItems]
    ) -> TrainState:
        devices, placement = context.devices, context.devices.placement
        key = path, manifest_digest(Path(path)), placement  # another run may replace a checkpoint of the same step
        if (kept := self._kept) is not None and kept[0] == key:  # another thread may replace it
            return kept[1]
        kept = None  # frees it before another is read
        if batch is not None and (context.config.allow_cast or not placement.single):
            # The declarations of the model determine dtypes and shardings, not the contents of a checkpoint.
            self._programs.discovery(devices, context.mode, batch)
        # Otherwise both would be in memory. What one process reads alone replaces nothing that the others still keep.
        self._kept = self._kept if devices.apart else None
        with reading(Path(path)):
            state = placed(placement, self._programs, read())
        # Without a batch, it is not split as the model requests. A state that one process reads alone is not known to
        # the others.
        if (batch is not None or placement.single) and not devices.apart:
            self._kept = key, state
        return state

    def _read(self, path: str, context: RunContext) -> CheckpointItems:
        self._check(path, context)
        processes = context.devices.processes
        return open_checkpoint(path, _ITEMS, part=processes.index, parts=processes.count)

    def _read_newest(self, context: RunContext) -> CheckpointItems:
        found = read_latest(self._model_dir, _ITEMS, processes=context.devices.processes)
        if found is None:
            raise CheckpointNotFoundError(
                f"The checkpoint in {context.config.model_dir} was deleted while it was being read. Try again."
            )
        self._check(found.path, context)
        return found.items

    def _check(self, path: str, context: RunContext) -> None:
        """Reports how the plugins in use differ from those of the checkpoint.

        Refuses shapes and dtypes that differ from the known variables of this Estimator. Further variables may differ.

        Raises:
            CheckpointMismatchError: the plugins, shapes or dtypes differ. The message lists the differences.
        """
        known, manifest = self._programs.specs, read_manifest(Path(path))
        context.plugins.require_made_with(manifest.extras.get("plugins", ()))
        check_fits(
            Path(path),
            manifest,
            {
                "variables": {name: spec for name, spec in known.items() if spec.trainable},
                "model_state": {name: spec for name, spec in known.items() if not spec.trainable},
            },
            allow_cast=context.config.allow_cast,
            allow_missing=True,
            allow_extra=True,
        )
