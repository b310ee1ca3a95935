"""Saves checkpoints at their cadence, and calls the listeners around each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from estimator_core.errors import ArgumentError, ArgumentTypeError, PreemptedError
from estimator_core.hooks import CheckpointListener, Hook, Run, SavedCheckpoint, StepOutputs, Wake
from estimator_core.specs import check_listeners, check_steps

_log = logging.getLogger("estimator_core")


class CheckpointSaverHook(Hook):
    """Saves at the start of a fresh run, every `save_steps` steps or `save_secs` seconds after it, and at the end.

    Args:
        save_steps, save_secs: exactly one of them.
        listeners: called around each save, in order; a listener given twice is called once.

    A save is done when every hook has seen its step, by `last`, which stands behind them; evaluations that belong to it
    run before the other hooks. The cadence counts from the step at which training started; a save on
    interruption does not shift it. An evaluation or exports that the platform broke off are owed: the checkpoint of
    their step says so, and `make_up` makes them when the run goes on.

    Attributes:
        last: the hook that saves.

    Raises:
        ArgumentError: when both or none of save_steps and save_secs are given.

    Example:
        >>> CheckpointSaverHook(save_steps=10).next_step(0)
        10

    Source: `tf.estimator.CheckpointSaverHook`.
    """

    name = "CheckpointSaverHook"

    def __init__(
        self,
        *,
        save_steps: int | None = None,
        save_secs: float | None = None,
        listeners: Sequence[CheckpointListener] | None = None,
    ) -> None:
        if (save_steps is None) == (save_secs is None):
            raise ArgumentError("CheckpointSaverHook: exactly one of save_steps and save_secs must be given.")
        check_steps("save_steps", save_steps)
        if save_secs is not None and (isinstance(save_secs, bool) or not isinstance(save_secs, (int, float))):
            raise ArgumentTypeError(
                f"CheckpointSaverHook: save_secs must be a number of seconds, given: {save_secs!r}."
            )
        if save_secs is not None and not save_secs > 0:
            raise ArgumentError(f"CheckpointSaverHook: save_secs must be > 0, given: {save_secs}.")
        self._save_steps = save_steps
        self._save_secs = save_secs
        self._listeners: list[CheckpointListener] = []
        self.add_listeners(listeners or ())
        self._save: Callable[[int], SavedCheckpoint] | None = None
        self._evaluate: Callable[[Run], None] | None = None
        self._evaluate_between: Callable[[Run], None] | None = None
        self._before_last_save: Callable[[], bool] = _nothing_replaced
        self._existing: int | None = None
        self._base_step = 0
        self._base_time = time.monotonic()
        self._saved_step: int | None = None
        self._evaluated_step: int | None = None
        self._finished = False
        self.owed_step: int | None = None
        self._owed_between = False
        self.last = _SaveLast(self)

    def add_listeners(self, listeners: Sequence[CheckpointListener]) -> None:
        """Adds listeners behind those that are there."""
        for listener in check_listeners(listeners):
            if not any(listener is known for known in self._listeners):
                self._listeners.append(listener)

    def bind(
        self,
        save: Callable[[int], SavedCheckpoint],
        *,
        existing: int | None,
        evaluate: Callable[[Run], None] | None = None,
        evaluate_between: Callable[[Run], None] | None = None,
        before_last_save: Callable[[], bool] | None = None,
    ) -> None:
        """Called by the training call: how to save, the step of the checkpoint the run starts from, the evaluations to
        run before each save and at steps without one, and what is asked before the last save: whether it replaced the
        state.
        """
        self._save, self._existing, self._evaluate = save, existing, evaluate
        self._evaluate_between = evaluate_between
        self._before_last_save = before_last_save or _nothing_replaced
        self._saved_step = existing
        self._evaluated_step = None

    def begin(self, run: Run) -> None:
        """Calls the listeners' `begin`."""
        for listener in self._listeners:
            listener.begin(run)

    def after_create(self, run: Run) -> None:
        """Saves the first step of a fresh run; starts the cadence, or goes on with that of an interrupted call."""
        if not run.resumed:
            self._base_step = run.step
        self._base_time = time.monotonic()
        self._finished = False
        if self._saved_step != run.step:
            self._commit(run, may_stop=True)

    def make_up(self, run: Run) -> None:
        """Makes the evaluation and the exports that belong to the step the run starts from and were broken off."""
        owed, self.owed_step = self.owed_step == run.step, None
        if owed and self._evaluate is not None:
            if self._owed_between:
                self.run_between(run)
            else:
                self._run_evaluation(run)
            if self.owed_step is None:
                self._commit(run, may_stop=True)

    def next_step(self, step: int) -> int | Wake:
        """The next step of the cadence, or when the seconds are over."""
        if self._save_steps is None:
            assert self._save_secs is not None
            return Wake(time=self._base_time + self._save_secs)
        return self._base_step + ((step - self._base_step) // self._save_steps + 1) * self._save_steps

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Runs the evaluations that belong to this save."""
        self._base_step, self._base_time = step, time.monotonic()
        self._run_evaluation(run)

    def save(self, run: Run) -> None:
        """Saves, now that every hook has seen the step; a run that stops here saves in `end`."""
        if run.stop_reason is None and run.step != run.last_step:
            self._commit(run, may_stop=True)

    def end(self, run: Run) -> None:
        """Saves the last step, if the run did not fail, and calls the listeners' `end`."""
        if self._save is not None and not run.failed:
            if run.interrupted:
                if self._saved_step != run.step:
                    self._commit(run, may_stop=False)
            else:
                self._base_step, self._finished = run.step, True
                replaced = False
                try:
                    if self._evaluated_step != run.step:
                        self._run_evaluation(run)
                    replaced = self._before_last_save()
                finally:
                    if replaced or self._saved_step != run.step:
                        self._commit(run, may_stop=False)
        if not run.failed:
            for listener in self._listeners:
                listener.end(run, run.step)

    def state(self) -> Mapping[str, Any]:
        """The cadence's base, whether the call had ended, and the step whose evaluation or exports are owed."""
        owed = {} if self.owed_step is None else {"owed_step": self.owed_step, "owed_between": self._owed_between}
        return {"base_step": self._base_step, "finished": self._finished, **owed}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back the cadence's base, and what is owed."""
        self._base_step = int(state["base_step"])
        self.owed_step, self._owed_between = state.get("owed_step"), bool(state.get("owed_between"))

    def _run_evaluation(self, run: Run) -> None:
        if self._evaluate is None:
            return
        self._evaluated_step = run.step
        self._guard(run, self._evaluate)

    def run_between(self, run: Run) -> None:
        """Runs the evaluations that belong to this step and not to a save."""
        if self._evaluate_between is not None:
            self._guard(run, self._evaluate_between, between=True)

    def _guard(self, run: Run, evaluate: Callable[[Run], None], *, between: bool = False) -> None:
        """Evaluates; if the platform breaks that off, it is owed, and if it fails, what was trained is saved first."""
        try:
            evaluate(run)
        except PreemptedError as broken_off:
            self._owe(run, broken_off, between=between)
        except Exception:
            if self._saved_step != run.step:
                self._commit(run, may_stop=False)
            raise

    def _commit(self, run: Run, *, may_stop: bool) -> None:
        assert self._save is not None, "CheckpointSaverHook was not bound by a training call"
        step = run.step
        for listener in self._listeners:
            listener.before_save(run, step)
        run.summaries.flush()
        checkpoint = self._save(step)
        self._saved_step = step
        for listener in self._listeners:
            try:
                stops = listener.after_save(run, step, checkpoint)
            except PreemptedError as broken_off:
                self._owe(run, broken_off)
                self._save(step)  # again, now that it is known that something is owed
                continue
            if stops and may_stop:
                run.request_stop(f"{type(listener).__name__}.after_save asked for it at step {step}")

    def _owe(self, run: Run, broken_off: PreemptedError, *, between: bool = False) -> None:
        _log.info("%s It is made up for when the run goes on from step %d.", broken_off, run.step)
        self.owed_step, self._owed_between, self._evaluated_step = run.step, between, None


class _SaveLast(Hook):
    """Has control where the saver has it, behind all other hooks."""

    def __init__(self, saver: CheckpointSaverHook) -> None:
        self._saver = saver

    def next_step(self, step: int) -> int | Wake:
        """The saver's."""
        return self._saver.next_step(step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Saves."""
        self._saver.save(run)


def _nothing_replaced() -> bool:
    return False
