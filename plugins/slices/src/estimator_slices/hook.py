"""The hook that evaluates slices. `EvalSpec(slices=...)` adds it to an evaluation."""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.hooks import Hook
from estimator_core.modes import ModeKeys
from estimator_slices.exchange import global_keys
from estimator_slices.fold import folding, of_examples
from estimator_slices.keys import Drawn, KeyReader, crossings
from estimator_slices.rows import RESULT, SliceRow, by_name
from estimator_slices.tally import Tally

if TYPE_CHECKING:
    from estimator_core.hooks import Run, StepOutputs

_log = logging.getLogger("estimator_core")
#: The compiled programs of each Estimator, because all its evaluations have the same model.
_PROGRAMS: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


class SliceHook(Hook):
    """Computes every metric of an evaluation also for each slice of its data.

    The results get the rows of all slices as "slices" (see `rows_of`), and `metric/feature=value` for each number.
    Slices are exact for any batches and devices. `EvalSpec(slices=...)` and `Estimator.evaluate(slices=...)`
    make this hook with its defaults.

    Args:
        slices: the names of features (or of labels; "labels" if they are one array), and tuples of names.
        groups: the number of groups of examples that are left out in turn for the intervals. 0: no intervals.
        level: the confidence level of the intervals.
        unit: the feature that identifies examples that belong together (a user, for example). They are left out
            together, so the intervals hold for new units. None: examples are independent.
        most: the largest number of slices. More slices raise an error.

    Raises:
        ArgumentError, ArgumentTypeError: invalid slices.

    Example:
        >>> SliceHook(["sex", ("pclass", "embarked")]).crossings
        (('sex',), ('pclass', 'embarked'))
    """

    def __init__(
        self,
        slices: Iterable[Any] = (),
        *,
        groups: int = 20,
        level: float = 0.95,
        unit: str | None = None,
        most: int = 500,
    ) -> None:
        if groups < 0 or groups == 1:
            raise ArgumentError(f"groups must be 0 (no intervals) or at least 2, given: {groups}.")
        if not 0 < level < 1:
            raise ArgumentError(f"level must lie between 0 and 1, given: {level}.")
        self.crossings = crossings(slices)
        self._groups, self._level, self._unit, self._most = max(groups, 1), level, unit, most
        self._reader = self._new_reader(0)
        self._tally = self._new_tally()
        self._drawn: deque[Drawn] = deque()
        self._active = False

    def see(self, features: Any, labels: Any) -> None:
        """Reads the keys of a batch."""
        if self._active:
            self._drawn.append(self._reader.read(features, labels))

    def begin(self, run: Run) -> None:
        """Discards the previous evaluation."""
        self._active = run.mode == ModeKeys.EVAL
        self._reader, self._tally = self._new_reader(run.input_part[0]), self._new_tally()
        self._drawn.clear()

    def next_step(self, step: int) -> int | None:
        """Requests every batch."""
        return step + 1 if self._active else None

    def after_step(self, run: Run, step: int, out: StepOutputs) -> None:
        """Adds the batch to its slices."""
        drawn = self._drawn.popleft() if self._drawn else None
        batch = run.state, run.batch.features, run.batch.labels, run.batch.weights
        rows = next(leaf.shape[0] for leaf in jax.tree.leaves(batch[1:]) if np.ndim(leaf))
        keys = global_keys(drawn, run.input_part, rows, _own_rows(run, drawn))
        self._tally.add(self._program(run), of_examples(run.batch_metrics), batch, keys)

    def end(self, run: Run) -> None:
        """Adds the slices to the results, unless the evaluation failed."""
        active, self._active = self._active, False
        if active and not run.failed:
            rows = self._tally.rows()
            if rows and not rows[0].metrics:
                _log.warning("Slices have no metrics, only counts: eval_metric_ops has no metric of examples.")
            for name, row in by_name(rows[1:]).items():
                _add_numbers(run, name, row)
            run.add_result(RESULT, [row.to_json() for row in rows])

    def _program(self, run: Run) -> Any:
        programs = _PROGRAMS.setdefault(run.estimator, {})
        key = run.batch_metrics, self._groups
        if key not in programs:
            # Every process reads all slices, so the table is replicated on each device.
            whole = _whole(run.state.variables)
            programs[key] = jax.jit(folding(of_examples(run.batch_metrics), self._groups), out_shardings=whole)
        return programs[key]

    def _new_reader(self, part: int) -> KeyReader:
        return KeyReader(self.crossings, groups=self._groups, unit=self._unit, part=part)

    def _new_tally(self) -> Tally:
        return Tally(self.crossings, groups=self._groups, most=self._most, level=self._level)


def _own_rows(run: Run, drawn: Drawn | None) -> list[int] | None:
    """Returns the rows of a batch that were drawn here. Empty if each process draws all. None if none are assigned."""
    total = run.batch.total
    if total is None:
        return None
    # If each process draws only its own rows, the batch has no padding.
    draws_all = drawn is None or len(drawn.real) == total or run.batch.size != total
    return [] if draws_all else run.input_rows(total).tolist()


def _add_numbers(run: Run, of_slice: str, row: SliceRow) -> None:
    for name, value in row.metrics.items():
        if np.ndim(value) == 0:
            run.add_result(f"{name}/{of_slice}", value)


def _whole(variables: Any) -> Any:
    """Returns the sharding that replicates arrays on all devices of the variables, or None for one device."""
    leaf = next(iter(jax.tree.leaves(variables)), None)
    sharding = getattr(leaf, "sharding", None)
    if not isinstance(sharding, jax.sharding.NamedSharding):
        return None
    return jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec())
