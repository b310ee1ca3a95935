"""The checkpoints of one training call: their contents, and the announcement of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from estimator_core._checkpoint import CheckpointItems, CheckpointStore
from estimator_core._checkpoint.catalog import manifest_digest
from estimator_core._checkpoint.items import PendingCheckpoint
from estimator_core._inputs import InputPosition
from estimator_core._journal.entries import Entry
from estimator_core._loop.context import RunContext
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.resuming import Ending, positions_json
from estimator_core._loop.run import LoopRun
from estimator_core._loop.time_spent import CHECKPOINT, HOOKS
from estimator_core._step.state import flatten_opt_state


class Checkpoints:
    """Passes the state to the store and announces committed checkpoints to plugins.

    Args:
        context: the context of the call.
        run: the run that plugins and hooks see.
        state: the state to save.
        hook_states: a function that returns the states of the hooks, which are saved too.
        store: the store, which writes the checkpoints.
        position: the position of the input at the start of the call.
        timers: a function that returns the bases of cadences that a resumed call needs.
        recorded: a function that returns the entries to record with the checkpoint of a step.
        committed: a function that is called with the step of each committed checkpoint.
    """

    def __init__(
        self,
        context: RunContext,
        run: LoopRun,
        state: DeviceState,
        hook_states: Callable[[], Mapping[str, Mapping[str, Any]]],
        store: CheckpointStore,
        *,
        position: InputPosition | None,
        timers: Callable[[], Mapping[str, Any]],
        recorded: Callable[[int], Sequence[Entry]],
        committed: Callable[[int], None],
    ) -> None:
        self._context, self._run, self._state, self._store = context, run, state, store
        self._hook_states = hook_states
        self._position, self._timers, self._recorded, self._committed = position, timers, recorded, committed
        self._pending: list[PendingCheckpoint] = []  # not announced yet

    def save(self, step: int, ending: Ending | None = None) -> PendingCheckpoint:
        """Starts a checkpoint: the state after `step`, the input's position, the states of all hooks.

        Args:
            step: the global step.
            ending: the ending of the call, if this is its last checkpoint.
        """
        live, context, run = self._state, self._context, self._run
        state = live.ready
        position = live.position if run.step > run.first_step else self._position
        items = CheckpointItems(
            clock=state.clock,
            variables=state.variables,
            model_state=state.model_state,
            opt_state=flatten_opt_state(state.opt_state),
            input=positions_json(position, context.devices.processes, context.devices.placement.pipelines),
            hooks=self._hook_states(),
            timers=self._timers(),
            manifest={
                "plugins": context.plugins.versions(),
                "components": context.plugins.used(),
                **({} if ending is None else ending.in_manifest()),
            },
        )
        with context.account.on(CHECKPOINT):
            saved = self._store.save(step, items, self._recorded(step))  # waits for the previous commit
        live.checkpoint_step, live.checkpoint_version, live.checkpoint_digest = step, live.version, None
        self._look()
        self._pending.append(saved)
        return saved

    def tell_commits(self) -> bool:
        """Announces committed checkpoints to plugins. Returns whether no commit is in progress.

        Raises:
            SupersededError, StorageGoneError: the run must not continue. Several processes agree to stop first.
        """
        if self._store.lost is not None:
            self._context.decisions.give_up(self._store.lost)
        return self._look()

    def finish(self) -> None:
        """Waits for the commits in progress and announces them to plugins. `wait` raises the error of a failed one."""
        with self._context.account.on(CHECKPOINT):
            for saved in self._pending:
                saved.join()
            self._look()

    def wait(self) -> None:
        """Waits for the commits in progress.

        Raises:
            CheckpointError: a commit failed.
        """
        self._store.wait()

    def _look(self) -> bool:
        """Announces the checkpoints that are committed by now, in order. Returns whether no commit is in progress."""
        while self._pending and self._pending[0].done():
            saved = self._pending.pop(0)
            if saved.error is None:
                self._tell(saved.step, saved.path)
        return not self._pending

    def _tell(self, step: int, path: str) -> None:
        self._committed(step)
        if step == self._state.checkpoint_step:
            self._state.checkpoint_digest = manifest_digest(Path(path))
        with self._context.account.on(HOOKS):
            self._context.plugins.checkpoint_saved(self._run, step, path)
