"""Parts of hooks: when a hook is due, the outputs that it reads, and the writer of its summaries."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, final

import numpy as np

from estimator_core._summaries import NO_SUMMARIES, EventFile, open_summary_writer
from estimator_core.errors import ArgumentError, ArgumentTypeError, HookError, did_you_mean
from estimator_core.hooks import Run, StepOutputs, SummaryWriter, Wake
from estimator_core.modes import ModeKeys

_log = logging.getLogger("estimator_core")

#: A number of steps larger than any wait of a hook, so that only the clock triggers.
_NO_TRIGGER = 1_000_000


def whole_steps(owner: object, name: str, steps: Any, *, least: int = 1) -> int:
    """Returns the value of an argument that is a number of steps.

    Args:
        owner: the hook, whose class the messages name.
        name: the name of the argument.
        steps: the value of the argument.
        least: the smallest accepted value.

    Raises:
        ArgumentError: it is not a whole number, or too small.
        ArgumentTypeError: it is not a number.

    Example:
        >>> from estimator_core.hooks import Hook
        >>> whole_steps(Hook(), "every_n_steps", 1e3)
        1000
    """
    _require_number(owner, name, steps, "steps")
    if not steps >= least or steps % 1:
        told = f"{name} must be at least {least}, and a whole number, given: {steps}."
        raise ArgumentError(f"{type(owner).__name__}: {told}")
    return int(steps)


def positive_secs(owner: object, name: str, secs: Any) -> float:
    """Returns the value of an argument that is a number of seconds.

    Args:
        owner: the hook, whose class the messages name.
        name: the name of the argument.
        secs: the value of the argument.

    Raises:
        ArgumentError: it is not positive.
        ArgumentTypeError: it is not a number.

    Example:
        >>> from estimator_core.hooks import Hook
        >>> positive_secs(Hook(), "timeout_secs", 2)
        2.0
    """
    _require_number(owner, name, secs, "seconds")
    if not secs > 0:
        raise ArgumentError(f"{type(owner).__name__}: {name} must be > 0, given: {secs}.")
    return float(secs)


def checked_interval(owner: object, secs: tuple[str, Any], steps: tuple[str, Any]) -> tuple[float | None, int | None]:
    """Returns the seconds and the steps of an interval, of which one is None, for a `SecondOrStepTimer`.

    Args:
        owner: the hook, whose class the messages name.
        secs: the name and the value of the argument for seconds.
        steps: the name and the value of the argument for steps.

    Raises:
        ArgumentError: neither or both are set, or the interval is not positive.
        ArgumentTypeError: the interval is not a number.

    Example:
        >>> from estimator_core.hooks import Hook
        >>> checked_interval(Hook(), ("every_n_secs", None), ("every_n_steps", 100))
        (None, 100)
    """
    if (secs[1] is None) == (steps[1] is None):
        given = f"{secs[0]}={secs[1]!r}, {steps[0]}={steps[1]!r}"
        raise ArgumentError(
            f"{type(owner).__name__}: exactly one of {secs[0]} and {steps[0]} should be provided, given: {given}."
        )
    if steps[1] is None:
        return positive_secs(owner, *secs), None
    return None, whole_steps(owner, *steps)


def _require_number(owner: object, name: str, value: object, unit: str) -> None:
    if isinstance(value, int) and (bits := value.bit_length()) > 63:
        told = f"{name} must be below 2**63 {unit}, given: an integer of {bits} bits"
        raise ArgumentError(f"{type(owner).__name__}: {told}.")
    array = np.asarray(value)  # an array of one number, such as a step that was read, is a number too
    if array.ndim or array.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"{type(owner).__name__}: {name} must be a number of {unit}, given: {value!r}.")


class SecondOrStepTimer:
    """Triggers at the first step, then at intervals of steps or seconds, and never twice for one step.

    Args:
        every_secs: the seconds between triggers.
        every_steps: the steps between triggers. Set exactly one of the two.

    Raises:
        ArgumentError, ArgumentTypeError: neither or both are set, or the interval is not positive. A hook names its
            own arguments with `checked_interval`.

    Example:
        >>> timer = SecondOrStepTimer(every_steps=3)
        >>> fired = []
        >>> for step in range(1, 11):
        ...     if timer.should_trigger_for_step(step):
        ...         _ = timer.update_last_triggered_step(step)
        ...         fired.append(step)
        >>> fired
        [1, 4, 7, 10]

    Source: `tf.compat.v1.train.SecondOrStepTimer`.
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        secs, steps = ("every_secs", every_secs), ("every_steps", every_steps)
        self._every_secs, self._every_steps = checked_interval(self, secs, steps)
        self._last_step: int | None = None
        self._last_time: float | None = None

    def reset(self) -> None:
        """Removes the record of all triggers, so the next step triggers."""
        self._last_step = self._last_time = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Returns whether the timer is due at a step."""
        if self._last_step is None or self._last_time is None:
            return True
        if step == self._last_step:
            return False
        if self._every_steps is not None:
            return step >= self._last_step + self._every_steps
        return self._every_secs is not None and time.monotonic() >= self._last_time + self._every_secs

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Records a trigger. Returns the seconds and steps since the previous one; (None, None) for the first."""
        now = time.monotonic()
        elapsed = (None, None)
        if self._last_step is not None and self._last_time is not None:
            elapsed = (now - self._last_time, step - self._last_step)
        self._last_step, self._last_time = step, now
        return elapsed

    def last_triggered_step(self) -> int | None:
        """Returns the step of the last trigger."""
        return self._last_step

    def next_step(self, step: int) -> int | None:
        """Returns the next step at which a hook with this timer needs control; None if it depends only on the clock."""
        if self._last_step is None:
            return step + 1
        return None if self._every_steps is None else max(self._last_step + self._every_steps, step + 1)

    def next_time(self) -> float | None:
        """Returns the `time.monotonic()` of the next trigger, if it depends on the clock."""
        if self._every_secs is None or self._last_time is None:
            return None
        return self._last_time + self._every_secs

    def wake(self, step: int) -> Wake:
        """Returns the `Wake` of a hook with this timer that only reads outputs: at the next trigger, or at latest at
        the following one.

        Example:
            >>> SecondOrStepTimer(every_steps=100).wake(0)
            Wake(step=1, time=None, within=99, joins=False)
        """
        within = _NO_TRIGGER if self._every_steps is None else self._every_steps - 1
        return Wake(step=self.next_step(step), time=self.next_time(), within=within)

    def state(self) -> Mapping[str, Any]:
        """Returns the base of the cadence, as JSON, so that it survives a resume."""
        if self._last_step is None or self._last_time is None:
            return {}
        if self._every_steps is not None:
            return {"last_step": self._last_step}
        return {"last_step": self._last_step, "elapsed_secs": time.monotonic() - self._last_time}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`. The time between the two calls does not count."""
        self.reset()
        if state:
            self._last_step = int(state["last_step"])
            self._last_time = time.monotonic() - float(state.get("elapsed_secs", 0.0))


def at_most(due: int | None, last_step: int | None, step: int) -> int | None:
    """Returns the due step, or the last step if that is still ahead and comes first.

    Example:
        >>> at_most(101, 90, 1), at_most(101, None, 1), at_most(101, 90, 90)
        (90, 101, 101)
    """
    if last_step is None or step >= last_step:
        return due
    return last_step if due is None else min(due, last_step)


def checked_types(owner: str, names: Iterable[Any]) -> list[str]:
    """Returns the names as a list.

    Raises:
        ArgumentTypeError: a value is not a name, but for example an array.
    """
    checked = list(names)
    for name in checked:
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"{owner}: hooks refer to values by name, given: {type(name).__name__}. Name the value in model_fn "
                "with ec.tensor(name, value) or ec.summary.scalar(name, value) and pass that name."
            )
    return checked


def check_known(owner: str, names: Iterable[str], available: Collection[str]) -> None:
    """Refuses names that no step of this run produces.

    Raises:
        HookError: a name is unknown. The message shows a near match.
    """
    for name in names:
        if name not in available:
            raise HookError(f"{owner}: {unknown_output(name, available)}")


def unknown_output(name: str, available: Collection[Any]) -> str:
    """Returns the message for an output that does not exist."""
    return (
        f"The step has no output {name!r}.{did_you_mean(name, available)} Its outputs: {sorted(map(str, available))}. "
        "Name a value in model_fn with ec.summary.scalar or ec.tensor. A prediction has only its predictions."
    )


def point_step(run: Run, step: int) -> int:
    """Returns the global step of a point: `step` in training.

    The steps of evaluations and predictions are batches, so their points are at the step of the weights.

    Args:
        run: the run of the hook.
        step: the step that the hook sees.

    Example:
        >>> from types import SimpleNamespace
        >>> state = SimpleNamespace(clock=np.array([100, 0, 0, 0], np.uint32))
        >>> point_step(SimpleNamespace(mode="eval", state=state), 3)
        100
    """
    return step if run.mode == ModeKeys.TRAIN else int(np.asarray(run.state.clock)[0])


class PresentNames:
    """Finds the names that a dispatch has, and warns once about each missing name.

    A model_fn may produce other outputs for another batch shape.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._warned: set[str] = set()

    def of(self, names: Iterable[str], out: StepOutputs, step: int) -> list[str]:
        """Returns the names that this dispatch has, in the given order."""
        here = set(iter(out))
        present: list[str] = []
        for name in names:
            if name in here:
                present.append(name)
            elif name not in self._warned:
                self._warned.add(name)
                _log.warning("%s: step %d has no output %r. Steps without it are skipped.", self._owner, step, name)
        return present


@final
class HookWriter:
    """Chooses the writer of a hook: the given one, one of the hook's own directory, or that of the run.

    Of several processes, only the chief writes to the hook's own directory.

    The run handles its own event file. The event file of a hook's own directory must be flushed in `state` of the hook,
    which is called before a checkpoint is committed, and closed in `end`.

    Args:
        output_dir: the hook's own directory.
        given: a writer, which takes precedence.

    Attributes:
        to: the chosen writer, from `open` on.
    """

    def __init__(self, output_dir: str | os.PathLike[str] | None, given: SummaryWriter | None) -> None:
        self._output_dir = output_dir
        self._given = given
        self._own: EventFile | None = None
        self.to: SummaryWriter = NO_SUMMARIES

    def open(self, run: Run) -> None:
        """Chooses the writer. Call it in `after_create`."""
        self.to = run.summaries if self._given is None else self._given
        writes = run.config.is_chief or run.config.task_type == "evaluator"  # one of several processes
        if writes and self._given is None and self._output_dir is not None:
            # An evaluation outside training repeats no step, and the next training does not count its files.
            epoch = None if getattr(run.summaries, "held", False) else getattr(run.summaries, "epoch", None)
            step = run.step if run.mode == ModeKeys.TRAIN else None
            self.to = file = open_summary_writer(self._output_dir, resume_step=step, epoch=epoch)
            self._own = None if file is run.summaries else file

    def flush(self) -> None:
        """Flushes the hook's own event file. Call it in `state`."""
        if self._own is not None:
            self._own.flush()

    def close(self) -> None:
        """Closes the hook's own event file. Call it in `end`."""
        if self._own is not None:
            self._own.close()
