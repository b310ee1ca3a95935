"""Chooses the policy that decides when a training call saves, and runs all actions around its checkpoints."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index as as_int
from typing import Any, Protocol

from estimator_core._hook_members import refuse_misfit
from estimator_core._loop.checkpoints import Checkpoints
from estimator_core._loop.resuming import Ending
from estimator_core._loop.run import LoopRun
from estimator_core._plugins import Plugins
from estimator_core._plugins.discovery import describe, noting_origin
from estimator_core._plugins.in_use import component_of
from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentTypeError, HookError, PreemptedError, ProcessLostError
from estimator_core.hooks import CheckpointListener, CheckpointPolicy, Hook, Run, SavedCheckpoint, StepOutputs, Wake

_ROLE = "checkpoint_policy"


class RunEvaluations(Protocol):
    """The evaluations of a training run on its live state. Only its Checkpointer calls them."""

    def evaluate(self, run: Run) -> None:
        """Runs the evaluations that belong to a checkpoint, before its save."""
        ...

    def evaluate_between(self, run: Run) -> None:
        """Runs the evaluations that belong to the current step and not to a checkpoint."""
        ...

    def after_save(self, run: Run, step: int, checkpoint: SavedCheckpoint) -> bool | None:
        """Called after a save and its listeners."""
        ...

    def resume(self, run: Run, *, owed: bool) -> None:
        """Called when a run continues from a checkpoint, before the first step and before owed evaluations of its step
        are made up.
        """
        ...

    def next_step(self, step: int) -> int | None:
        """Returns the next step with an evaluation but without a checkpoint."""
        ...

    def finish(self) -> None:
        """Called after the end of all hooks, before the end of the call is recorded. A second call does nothing."""
        ...


class EvaluationHook(Hook):
    """Runs the evaluations that belong to a step and not to a checkpoint.

    Args:
        next_step: a function that returns the step of the next evaluation.
        evaluate: a function that runs the evaluations of the current step.

    Example:
        >>> EvaluationHook(lambda step: (step // 100 + 1) * 100, lambda run: None).next_step(250)
        300
    """

    def __init__(self, next_step: Callable[[int], int | None], evaluate: Callable[[Run], None]) -> None:
        self._next_step = next_step
        self._evaluate = evaluate

    def next_step(self, step: int) -> int | None:
        """Returns the step of the next evaluation."""
        return self._next_step(step)

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Runs the evaluations of the step."""
        self._evaluate(run)


def has_policy(config: RunConfig) -> bool:
    """Returns whether a config requests checkpoints: by a component in the role, or by a cadence.

    Example:
        >>> has_policy(RunConfig(save_checkpoints_steps=10))
        True
        >>> has_policy(RunConfig(save_checkpoints_steps=10, components={"checkpoint_policy": None}))
        False
    """
    if _ROLE in config.components:
        return config.components[_ROLE] is not None
    return bool(config.save_checkpoints_steps or config.save_checkpoints_secs)


def checkpoint_policy(config: RunConfig, plugins: Plugins, hooks: Sequence[Hook]) -> CheckpointPolicy | None:
    """Returns the policy of a call: the one among its hooks, or the policy of the config; None if nothing is saved.

    Args:
        config: the RunConfig, which names the component. It is created with the cadence `save_steps` and `save_secs`.
        plugins: the registry that provides the component.
        hooks: the hooks of the call.

    Raises:
        PluginLookupError: the named component does not exist.
        PluginError: the component cannot be created, or is not a policy.
    """
    given = next((hook for hook in hooks if isinstance(hook, CheckpointPolicy)), None)
    if given is not None or not has_policy(config):
        return given
    steps, secs = config.save_checkpoints_steps or None, config.save_checkpoints_secs or None
    policy: CheckpointPolicy | None = component_of(_ROLE, config.components, plugins, save_steps=steps, save_secs=secs)
    return policy


_log = logging.getLogger("estimator_core")
_OWN = ("policy", "finished", "owed_step", "owed_between")
_CADENCE = "CheckpointSaverHook"


class Checkpointer(Hook):
    """Evaluates, calls listeners and saves when the policy requests it, at the end, and on interruption.

    It is the first hook at the steps of the policy, and runs the evaluations of the save before the other hooks. The
    hook in `last` saves after every other hook has seen the step. If the platform interrupts an evaluation or export,
    or an evaluation fails, it is owed: the checkpoint of its step records this, and `make_up` runs it in the resumed
    run.

    Args:
        run: the run of the call.
        policy: the policy, which decides when to save.
        listeners: the listeners, which are called around each save, in order. A listener that occurs twice is called
            once.
        checkpoints: the object that saves.
        evaluations: the evaluations of train_and_evaluate, before each save and at steps without one.
        existing: the step of the checkpoint from which the run starts.
        ending: the ending of an earlier call, if this run only completes it after its last save. None: this run trains.
        before_last_save: a function that is called before the last save. It returns whether it replaced the state.
        stops_here: a function that returns whether the run stops at this step, after all processes know the requests of
            their hooks.

    Attributes:
        first: the hooks before all others, this one included.
        last: the hooks after all others.
        owed_step: the step whose evaluation or exports were interrupted, or whose evaluation failed.
    """

    name = _CADENCE  # the name in checkpoints from the time when only one policy existed

    def __init__(
        self,
        run: LoopRun,
        policy: CheckpointPolicy,
        listeners: Sequence[CheckpointListener],
        checkpoints: Checkpoints,
        *,
        evaluations: RunEvaluations | None,
        existing: int | None,
        ending: Ending | None,
        before_last_save: Callable[[], bool],
        stops_here: Callable[[], bool],
    ) -> None:
        self._run, self._policy, self._checkpoints = run, policy, checkpoints
        self._listeners = list({id(listener): listener for listener in listeners}.values())
        for listener in self._listeners:
            refuse_misfit(listener, CheckpointListener, describe(listener, "checkpoint listener"), ArgumentTypeError)
        self._evaluations, self._before_last_save, self._stops_here = evaluations, before_last_save, stops_here
        self._saved_step = existing
        self._evaluated_step: int | None = None
        self._wanted: int | Wake | None = None
        self._created = False
        self._ending = ending
        self._told_to_stop: int | None = None  # a listener requested it when this step was saved
        self.owed_step: int | None = None
        self._owed_between = False
        self.first: list[Hook] = [self]
        self.last: list[Hook] = [_Behind(self)]
        if evaluations is not None and evaluations.next_step(0) is not None:
            self.first.append(EvaluationHook(evaluations.next_step, self._evaluate_unless_at_end))

    def begin(self, run: Run) -> None:
        """Informs the listeners that training begins."""
        for listener in self._listeners:
            self._tell(listener, "begin", run)

    def after_create(self, run: Run) -> None:
        """Saves the initial state of the run, if the policy requests it."""
        self._created = True
        if self._ask("at_start", run) and self._saved_step != run.step:
            self._commit(may_stop=True)

    def make_up(self) -> None:
        """Runs the owed evaluation and exports of the step from which the run starts."""
        owed, self.owed_step = self.owed_step == self._run.step, None
        replaced = self._ending is not None and self._ending.replaced  # after the records
        if self._run.resumed and not replaced and self._evaluations is not None:
            self._evaluations.resume(self._run, owed=owed)
        if owed and self._evaluations is not None:
            if self._owed_between:
                self._evaluate_between()
            else:
                self._evaluate()
            if self.owed_step is None:
                self._commit(may_stop=True)

    def next_step(self, step: int) -> int | Wake | None:
        """Asks the policy when to save next.

        Raises:
            HookError: the answer is invalid.
        """
        wanted = self._ask("next_step", step)
        at = wanted.step if isinstance(wanted, Wake) else wanted
        try:
            valid = at is None or as_int(at) > step
        except TypeError:
            valid = False
        if not valid:
            raise HookError(
                f"{self._described()}: next_step({step}) returned {wanted!r}; it must return a later step, a Wake or "
                "None."
            )
        self._wanted = replace(wanted, within=0) if isinstance(wanted, Wake) else wanted
        return self._wanted

    def wanted(self) -> int | Wake | None:
        """Returns the last answer of the policy."""
        return self._wanted

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Runs the evaluations that belong to the save that is due."""
        self._ask("saved", run, step)
        self._stops_here()  # evaluations depend on it, and hooks that follow values may have requested it
        self._evaluate()

    def save(self) -> None:
        """Saves, after every hook has seen the step. A run that stops here saves in `end`."""
        if not self._stops_here():
            self._commit(may_stop=True)

    def end(self, run: Run) -> None:
        """Saves the last step if the run did not fail, and informs the listeners."""
        if self._created and not run.failed:
            if run.interrupted:
                if self._saved_step != run.step:
                    self._commit(may_stop=False)
            else:
                self._save_last()
        if not run.failed:
            for listener in self._listeners:
                self._tell(listener, "end", run, run.step)

    def state(self) -> Mapping[str, Any]:
        """Returns the state of the policy, whether the call had ended, and the step whose evaluation or exports are
        owed.

        Raises:
            HookError: the policy uses a reserved name, or does not return a mapping.
        """
        memory = self._ask("state")
        if not isinstance(memory, Mapping):
            raise HookError(f"{self._described()}: state() returned {memory!r}; it must return a mapping.")
        taken = sorted(name for name in _OWN if name in memory)
        if taken:
            raise HookError(f"{self._described()}: state() uses the names {taken}, which are reserved; use others.")
        owed = {} if self.owed_step is None else {"owed_step": self.owed_step, "owed_between": self._owed_between}
        return {**memory, "policy": self._name(), "finished": self._ending is not None, **owed}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the owed work, and the state of a policy of the same name."""
        self.owed_step, self._owed_between = state.get("owed_step"), bool(state.get("owed_between"))
        memory = {name: value for name, value in state.items() if name not in _OWN}
        # A checkpoint that does not name the policy was written when only one policy existed.
        if memory and state.get("policy", _CADENCE) == self._name():
            self._ask("restore", memory)

    def _save_last(self) -> None:
        run = self._run
        made_up = self._ending is not None  # the previous call came to its last save
        if self._ending is not None and self._ending.prepared:
            return
        wanted = bool(self._ask("at_end", run)) or self._evaluations is not None
        self._ending = ending = self._unprepared()
        try:
            if self._evaluated_step != run.step:
                self._evaluate()
            self._ending = replace(ending, replaced=self._before_last_save(), prepared=True)
        finally:
            again = self._ending.replaced or (made_up and self._ending.prepared)
            if wanted and (again or self._saved_step != run.step):
                self._commit(may_stop=False)
            elif wanted and self._told_to_stop == run.step:
                self._checkpoints.save(run.step, self._ending)  # again, so that the checkpoint is marked as the last

    def _evaluate(self) -> None:
        if self._evaluations is not None:
            self._evaluated_step = self._run.step
            self._guard(self._evaluations.evaluate)

    def _evaluate_unless_at_end(self, run: Run) -> None:
        """Runs the evaluations of a step, except at the end of the run, because the last checkpoint is evaluated
        anyway.
        """
        if not self._stops_here():
            self._evaluate_between()

    def _evaluate_between(self) -> None:
        """Runs the evaluations that belong to this step and not to a save, unless those of its save are owed."""
        if self._evaluations is not None and self.owed_step != self._run.step:
            self._guard(self._evaluations.evaluate_between, between=True)

    def _guard(self, evaluate: Callable[[Run], None], *, between: bool = False) -> None:
        """Runs evaluations. If one is interrupted or fails, it is owed. In the second case, the trained state is saved
        first.
        """
        try:
            evaluate(self._run)
        except PreemptedError as broken_off:
            self._owe(broken_off, between=between)
        except Exception as error:
            if self._saved_step != self._run.step:
                if self._run.stop_reason is not None or self._run.step == self._run.last_step:
                    self._ending = self._unprepared()  # otherwise a restart would find a call that has ended
                self._owe(f"An evaluation failed ({type(error).__name__}).", between=between)
                with contextlib.suppress(ProcessLostError):  # a process that fails alone cannot save
                    self._commit(may_stop=False)
            raise

    def _unprepared(self) -> Ending:
        run = self._run
        return Ending(reason=run.stop_reason or f"reached step {run.step}", last_step=run.last_step, prepared=False)

    def _commit(self, *, may_stop: bool) -> None:
        run, step = self._run, self._run.step
        for listener in self._listeners:
            self._tell(listener, "before_save", run, step)
        run.summaries.flush()
        checkpoint = self._checkpoints.save(step, self._ending)
        self._saved_step = step
        for told in (*self._listeners, *(() if self._evaluations is None else (self._evaluations,))):
            try:
                stops = self._tell(told, "after_save", run, step, checkpoint)
            except PreemptedError as broken_off:
                self._owe(broken_off)
                self._checkpoints.save(step, self._ending)  # again, so that the checkpoint records the owed work
                continue
            if stops and may_stop:
                run.request_stop(f"{type(told).__name__}.after_save asked for it at step {step}")
        if may_stop:
            self._stops_here()  # a listener may have requested it in one process alone
            self._told_to_stop = None if run.stop_reason is None else step

    def _owe(self, broken_off: PreemptedError | str, *, between: bool = False) -> None:
        _log.info("%s This work is repeated when the run continues from step %d.", broken_off, self._run.step)
        self.owed_step, self._owed_between, self._evaluated_step = self._run.step, between, None

    def _ask(self, method: str, *arguments: object) -> Any:
        return self._tell(self._policy, method, *arguments)

    def _tell(self, told: object, method: str, *arguments: object) -> Any:
        kind = "checkpoint policy" if told is self._policy else "checkpoint listener"
        where = f"{method}, step {self._run.step} of mode {self._run.mode!r}"
        with noting_origin(lambda: f"in {describe(told, kind)}, {where}"):
            return getattr(told, method)(*arguments)

    def _described(self) -> str:
        return describe(self._policy, "checkpoint policy")

    def _name(self) -> str:
        return self._policy.name or type(self._policy).__name__


class _Behind(Hook):
    """Gets control at the steps of the policy, after all other hooks."""

    def __init__(self, checkpointer: Checkpointer) -> None:
        self._checkpointer = checkpointer

    def next_step(self, step: int) -> int | Wake | None:
        """Returns the policy's answer to the first hook, which is called before this one."""
        return self._checkpointer.wanted()

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Saves the state after the step."""
        self._checkpointer.save()
