"""The number of batches per dispatch: as requested, as stored in a checkpoint, or as measured."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Generator, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._cluster.processes import chief_says, gather
from estimator_core._inputs import Batch
from estimator_core._loop.batches import Batches, Ways
from estimator_core._loop.dispatch import Dispatch, Program, Stacking, shapes_of, single, stacked
from estimator_core._loop.time_spent import TimeSpent
from estimator_core.coordinator import ALONE, Coordinator

_log = logging.getLogger("estimator_core")
#: The number of batches per dispatch that is tried.
CANDIDATE = 20
#: A step that is at least this slow is not worth a trial, because its dispatch costs little in comparison.
SLOW_STEP_SECONDS = 2e-3
_WORTH_IT = 1.1
_REPEATS = 5
#: The seconds of run time after which a program of an evaluation or of predictions is worth a trial, which compiles it
#: once more.
_TRIAL_SECONDS = 0.5
#: The limit in bytes for the batches of one dispatch, and for their results. Larger ones gain nothing and cost memory.
_MOST_BYTES = 4 * 2**20
#: The longest time in seconds to draw a group. If the input becomes slower, its batches are drawn one by one again.
_PATIENCE_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class TrainWays:
    """Computes the state after some batches with a training program, on copies of a state.

    It does not say whether the program calls back to the host, because the user requested the trial with "auto".

    Attributes:
        program: the compiled function for a number of steps.
        state: the state of the run, which is not changed.
    """

    program: Callable[[int], Program]
    state: Any

    def one_by_one(self, batches: list[Batch]) -> Any:
        """Returns the state after a single step for each batch."""
        state, step = self._copied(), self.program(1)
        for batch in batches:
            state, _ = step(state, batch.features, batch.labels, batch.weights)
        return state

    def together(self, dispatch: Dispatch) -> Any:
        """Returns the state after one dispatch of all of them."""
        features, labels, weights, steps, _ = dispatch
        return self.program(steps)(self._copied(), features, labels, weights)[0]

    def _copied(self) -> Any:
        return jax.tree.map(jnp.copy, self.state)


def steps_per_dispatch(
    asked: int | Literal["auto"],
    remembered: int | None,
    batches: Batches,
    ways: TrainWays,
    processes: Coordinator,
    measured: MutableMapping[Any, int],
) -> int:
    """Returns the number of steps per dispatch of a training call.

    "auto" tries 20 steps per dispatch on copies of the state and the first batches, which are not consumed. It uses
    them if they are at least a tenth faster and return bitwise the same state as single steps. A resumed run uses the
    value in its checkpoint. A later call with batches of the same shapes uses what was measured before.

    Args:
        asked: the value of `RunConfig(steps_per_dispatch=...)`.
        remembered: the value of the interrupted call; None without one.
        batches: the source of the first batches.
        ways: the ways in which the program computes them.
        processes: the processes. The measurements of the first one decide.
        measured: the best number for this program, by the shapes of its batches. It is read and extended.
    """
    if asked != "auto":
        return int(asked)
    if remembered is not None:
        _log.info("steps_per_dispatch: %d, as before the interruption.", remembered)
        return remembered
    first = batches.peek(CANDIDATE)
    if not _alike(first):
        _log.info("steps_per_dispatch: 1, because there are fewer than %d batches, or their shapes differ.", CANDIDATE)
        return 1
    shapes = tuple(leaf.shape for leaf in jax.tree.leaves((first[0].features, first[0].labels)))
    if shapes in measured:
        _log.info("steps_per_dispatch: %d, as measured before.", measured[shapes])
    else:
        group = _stacked(first, batches.stack_arrays)
        worth_it, figures = is_worth_it(lambda: ways.one_by_one(first), lambda: ways.together(group), processes)
        measured[shapes] = CANDIDATE if worth_it else 1
        _log.info("steps_per_dispatch: %d (%s).", measured[shapes], figures)
    return measured[shapes]


@dataclass
class GroupTrials:
    """The trials of one program of an evaluation or of predictions.

    Attributes:
        seconds, batches: the time and the number of single batches of all calls, including drawing.
        counts: the tried numbers of batches per dispatch, by shapes of the batches.
    """

    seconds: float = 0.0
    batches: int = 0
    counts: dict[Any, int] = field(default_factory=dict[Any, int])


class TunedBatches(Batches):
    """The batches of an evaluation or of predictions. They are grouped after the first one: as requested, or after a
    trial has shown that groups are faster.

    Args:
        source, stack_arrays, account: see `Batches`.
        asked: the value of `RunConfig(batches_per_dispatch=...)`.
        trials: a function that returns the trials of the program after it has run. They are read and extended.
    """

    def __init__(
        self,
        source: Iterator[Batch],
        stack_arrays: Stacking,
        account: TimeSpent,
        asked: int | Literal["auto"],
        trials: Callable[[], GroupTrials] = GroupTrials,
    ) -> None:
        super().__init__(source, stack_arrays, account)
        self._asked = asked
        self._find_trials = trials
        self._dispatches = 1  # since the last call of `tune`
        self._open = True
        self._began: float | None = None

    def begin(self, first: Batch) -> bool:
        """Groups from the first batch on, if a trial in an earlier call was faster. Returns whether it was."""
        count = 1 if isinstance(self._asked, int) else self._trials.counts.get(shapes_of(first), 1)
        if count > 1:
            self._settle(shapes_of(first), count)
        return count > 1

    def used(self, newest: Batch, count: int) -> None:
        """Records that `count` batches of `singles` have been used, each by itself."""
        self.newest, self._dispatches = single(newest), count

    def tune(self, ways: Ways, room: float) -> None:
        """Tries several batches at the right time. Before that, it costs little.

        Args:
            ways: the ways in which the program computes batches.
            room: the number of batches that may be drawn now.
        """
        newest, dispatches, self._dispatches = self.newest, self._dispatches, 1
        if not self._open or newest is None:
            return
        if isinstance(self._asked, int):
            self._open = False
            self.group(self._asked)
        elif self._is_time(newest.last, room, dispatches) and not ways.has_effects(newest):
            first = self.peek(CANDIDATE)
            if _alike(first):
                self._settle(shapes_of(first[0]), _tried(first, ways, self.stack_arrays))

    def until_tuned(self) -> float:
        """Returns the number of seconds of this call until a trial is due."""
        if not self._open:
            return math.inf
        return 0.0 if self._began is None or isinstance(self._asked, int) else _TRIAL_SECONDS - self._seconds

    @contextmanager
    def away(self) -> Generator[None]:
        """Inside the block, the call does nothing, because its caller acts instead."""
        began = perf_counter()
        try:
            yield
        finally:
            if self._began is not None:
                self._began += perf_counter() - began

    def close(self) -> None:
        """Records how long the program has run. The owner of the source closes it."""
        if self._open and self._began is not None:
            self._trials.seconds = self._seconds

    def _is_time(self, batch: Batch, room: float, count: int) -> bool:
        """Returns whether a trial is due after this batch. Known results for batches of its shapes are applied."""
        trials = self._trials
        if self._began is None:
            self._began = perf_counter()  # after the first batch, which may have compiled
            if (shapes := shapes_of(batch)) in trials.counts:
                self._settle(shapes, trials.counts[shapes])
            return False
        trials.batches += count
        if self._seconds < _TRIAL_SECONDS or room < CANDIDATE:
            return False
        self._open = False
        slow = self._seconds > SLOW_STEP_SECONDS * trials.batches
        if slow:  # the input or the model is slow, so a later call measures again
            trials.seconds, trials.batches = 0.0, 0
        return not slow

    @cached_property
    def _trials(self) -> GroupTrials:
        return self._find_trials()

    @property
    def _seconds(self) -> float:
        return self._trials.seconds + (0.0 if self._began is None else perf_counter() - self._began)

    def _settle(self, shapes: object, count: int) -> None:
        self._open = False
        self._trials.counts[shapes] = count
        self.group(count, only=shapes, patience=_PATIENCE_SECONDS)


def is_worth_it(
    single: Callable[[], Any], grouped: Callable[[], Any], processes: Coordinator = ALONE
) -> tuple[bool, str]:
    """Returns whether one dispatch is a tenth faster than 20 single batches and returns the same bits, and the reason
    for the log.

    Args:
        single: a function that computes 20 batches one by one.
        grouped: a function that computes them in one dispatch. It is not called, and so not compiled, if it could not
            gain much.
        processes: the processes. The measurements of the first one decide.
    """
    after_single = jax.block_until_ready(single())  # this may compile
    seconds = chief_says(processes, "seconds", _seconds(single))
    if seconds / CANDIDATE > SLOW_STEP_SECONDS:
        milliseconds = seconds / CANDIDATE * 1e3
        return False, f"a batch takes {milliseconds:.1f} ms, and dispatching it costs little in comparison"
    after_group = jax.block_until_ready(grouped())
    # They are measured alternately, and the best time of each counts, because a single measurement on a busy machine is
    # random.
    times = [(_seconds(single), _seconds(grouped)) for _ in range(_REPEATS)]
    seconds, group_seconds = chief_says(processes, "seconds", [min(each) for each in zip(*times, strict=True)])
    figures = (
        f"{seconds / CANDIDATE * 1e6:.0f} microseconds per batch alone, {group_seconds / CANDIDATE * 1e6:.0f} in a "
        f"dispatch of {CANDIDATE}"
    )
    if seconds < _WORTH_IT * group_seconds:
        return False, figures
    if not all(gather(processes, "same-bits", _same_bits(after_single, after_group))):
        return False, f'{figures}, but the last bits differ; set a number instead of "auto" to use it anyway'
    return True, f"{figures}, the same bits"


def _stacked(batches: list[Batch], stack_arrays: Stacking) -> Dispatch:
    group = stacked(batches, stack_arrays)
    assert group is not None, "they are of one shape"
    return group


def _tried(batches: list[Batch], ways: Ways, stack_arrays: Stacking) -> int:
    """Returns the best number of batches per dispatch in an evaluation or in predictions."""
    if _bytes(batches[0][:2]) * CANDIDATE > _MOST_BYTES:
        return 1
    if _bytes(ways.one_by_one(batches[:1])) * CANDIDATE > _MOST_BYTES:
        return 1
    try:
        worth_it, figures = is_worth_it(
            lambda: jax.device_get(ways.one_by_one(batches)),
            lambda: jax.device_get(ways.together(_stacked(batches, stack_arrays))),
        )
    except Exception as error:  # it works one by one
        worth_it, figures = False, f"several cannot be computed in one dispatch: {error}"
    count = CANDIDATE if worth_it else 1
    _log.info("Batches per dispatch: %d (%s).", count, figures)
    return count


def _alike(batches: list[Batch]) -> bool:
    """Returns whether there are enough batches for a trial, all of one shape."""
    return len(batches) == CANDIDATE and len({shapes_of(batch) for batch in batches}) == 1


def _bytes(tree: object) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def _seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - began


def _same_bits(one: object, other: object) -> bool:
    return all(
        a.tobytes() == b.tobytes()
        for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
        for a, b in zip(_parts(left), _parts(right), strict=True)
    )


def _parts(leaf: Any) -> list[np.ndarray]:
    """Returns the values of an array that this process holds."""
    return [np.asarray(shard.data) for shard in leaf.addressable_shards] if isinstance(leaf, jax.Array) else [leaf]
