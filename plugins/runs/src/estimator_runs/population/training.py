"""The training of several runs together: one program, stacked states, and checkpoints of each in its own model_dir."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from estimator_core.errors import ArgumentError, PreemptedError
from estimator_core.inputs import Batch, InputPosition
from estimator_runs.population.choosing import fastest
from estimator_runs.population.member import Member, Standing, check_member, save, start
from estimator_runs.population.program import STEPS, Row, Way, arrays, common_step, ways
from estimator_runs.workers import Interruption

_log = logging.getLogger("estimator_core")
_FIRST_BAD = 1  # the index in the clock
_AHEAD = STEPS  # the steps that the host may be ahead of the device: a signal and a save by time wait for them


class Population:
    """Runs that are trained together. Each has its own model_dir, with the same content as if it were trained alone.

    Args:
        members: the runs. Their programs must be the same; seeds, data and numbers in the optimizer's state may differ.
        way: "together" maps the step over all runs. "apart" runs the step of one run after the other. None: the faster
            one, by measurement.
        keep_way: a function that is called with the measured way before the first step.

    Attributes:
        way: the way in use; None: it has not been chosen.
        failed: the first step whose loss was not finite, by name of the run. Such a run is not trained further.

    Raises:
        ArgumentError: a run cannot be trained together with others. The message names it and the reason.

    Example:
        >>> import estimator_core as ec, jax, jax.numpy as jnp, numpy as np, optax, tempfile
        >>> def model_fn(features, labels, mode):
        ...     y = features["x"] * ec.get_variable("slope", (), initializer=jax.nn.initializers.normal())
        ...     return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.3))
        >>> x = np.linspace(0, 1, 64, dtype=np.float32)
        >>> inputs = ec.inputs.numpy_input_fn({"x": x}, 3 * x, batch_size=16, num_epochs=None, shuffle=True, seed=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     config = [ec.RunConfig(f"{folder}/{seed}", tf_random_seed=seed) for seed in range(3)]
        ...     runs = [ec.Estimator(model_fn, config=one) for one in config]
        ...     Population([Member(name=one.model_dir, estimator=one, input_fn=inputs) for one in runs]).train(100)
        ...     [round(float(one.get_variable_value("slope")), 2) for one in runs]
        [3.0, 3.0, 3.0]
    """

    def __init__(
        self,
        members: Sequence[Member],
        *,
        way: str | None = None,
        keep_way: Callable[[str], None] = lambda way: None,
    ) -> None:
        for member in members:
            check_member(member)
        names = [member.name for member in members]
        if len(set(names)) < len(names):
            raise ArgumentError(f"Each run of a population needs its own name, given: {names}.")
        directories = [member.estimator.model_dir for member in members]
        if len(set(directories)) < len(directories):
            raise ArgumentError(f"Each run of a population needs its own model_dir, given: {directories}.")
        self.way = way
        self._keep_way = keep_way
        self.failed: dict[str, int] = {}
        self._standing = {member.name: start(member) for member in members}
        self._interruption = Interruption()
        self._ways: dict[Any, dict[str, Way]] = {}
        self._next: dict[str, Batch | None] = {}  # drawn but not used; None: the input has ended

    def drop(self, name: str) -> None:
        """Stops the training of a run."""
        del self._standing[name]

    def step(self, name: str) -> int:
        """Returns the current step of a run."""
        return self._standing[name].step

    def train(self, step: int) -> None:
        """Trains every run up to a step, or to the end of its input. Each is saved there, and as its RunConfig says.

        Args:
            step: the global step. Runs that have passed it do not change. Runs with fewer steps are trained first.

        Raises:
            ArgumentError: the batches of the runs have different shapes.
            PreemptedError: SIGTERM or SIGINT stopped it. The states of all runs are saved.
        """
        going = {name: one for name, one in self._standing.items() if one.step < step and name not in self.failed}
        with Interruption() as self._interruption:
            self._train(going, step)

    def _train(self, going: dict[str, Standing], step: int) -> None:
        while going:
            least = min(one.step for one in going.values())
            behind = [one for one in going.values() if one.step == least]
            target = min([step, _next_save(behind, least), *(one.step for one in going.values() if one.step > least)])
            ended = self._advance(behind, target)
            if self._interruption.reason is not None:
                raise PreemptedError(
                    f"The training of {len(self._standing)} runs was interrupted ({self._interruption.reason}) and "
                    "their states were saved; start it again to continue."
                )
            going = {
                name: one
                for name, one in going.items()
                if one.step < step and name not in ended and name not in self.failed
            }

    def _advance(self, group: list[Standing], target: int) -> set[str]:
        """Trains runs with the same step up to a later one. Returns the names of those whose input has ended."""
        at, ended, recent = group[0].step, set[str](), deque[Any]()
        cadences = {one.member.estimator.config.save_summary_steps or sys.maxsize for one in group}
        due = time.monotonic() + min(one.member.estimator.config.save_checkpoints_secs or math.inf for one in group)
        carried: Any = None
        way: Way | None = None
        records: dict[int, tuple[Any, int | None]] = {}
        positions = {one.member.name: one.position for one in group}
        while at < target and time.monotonic() < due and self._interruption.reason is None:
            gone = [one for one in group if self._peek(one) is None]
            if gone:
                for name in (one.member.name for one in gone):
                    position = positions[name]
                    positions[name] = None if position is None else position._replace(exhausted=True)
                self._land(group, way, carried, records, at, positions)
                ended |= {one.member.name for one in gone}
                group = [one for one in group if one not in gone and one.member.name not in self.failed]
                return ended if not group else ended | self._advance(group, target)
            row = self._row(group)
            way = self._way(group, row)
            if carried is None:
                carried = way.enter([one.state for one in group])
            rows = [row] if way.several is None or at + STEPS > target else self._together(group, row)
            for part in [rows] if len(rows) == STEPS else [[one] for one in rows]:
                while len(recent) >= _AHEAD // len(part):
                    jax.block_until_ready(recent.popleft())
                if way.several is None or len(part) == 1:
                    carried, found = way.step(carried, part[0])
                else:
                    carried, found = way.several(carried, part)
                recent.append(found)
                for place, each in enumerate(part):
                    at += 1
                    if any(at % every == 0 for every in cadences):
                        records[at] = found, None if len(part) == 1 else place
                    for one, batch in zip(group, each.batches, strict=True):
                        positions[one.member.name] = batch.position
        self._land(group, way, carried, records, at, positions)
        return ended

    def _way(self, group: list[Standing], row: Row) -> Way:
        key = row.tree, row.shapes
        if key not in self._ways:
            others = [one for one in self._standing.values() if one not in group and self._may_follow(one)]
            batches = [*row.batches, *(self._like(one, row.batches[0]) for one in others)]
            self._ways[key] = ways(common_step([one.member for one in (*group, *others)], batches))
        if self.way is None:
            self.way = fastest(self._ways[key], [one.state for one in group], row)
            self._keep_way(self.way)
        return self._ways[key][self.way]

    def _may_follow(self, one: Standing) -> bool:
        """Returns whether a run may be trained later: it has not failed, and its input has not ended."""
        return one.member.name not in self.failed and self._peek(one) is not None

    def _like(self, one: Standing, batch: Batch) -> Batch:
        """Returns a batch of these shapes, to trace a later step of a run. The run's next one is used if it fits."""
        following = self._peek(one)
        if following is None or _shapes(following)[0] != _shapes(batch)[0]:
            raise ArgumentError(
                f"{one.member.name} cannot be trained together with others: its batches have other features."
            )
        return following if _shapes(following) == _shapes(batch) else batch

    def _peek(self, one: Standing) -> Batch | None:
        name = one.member.name
        if name not in self._next:
            self._next[name] = one.draw()
        return self._next[name]

    def _row(self, group: list[Standing]) -> Row:
        """Returns the next batch of each run. Every run has one."""
        batches = [batch for one in group if (batch := self._next.pop(one.member.name)) is not None]
        flat = [jax.tree.flatten(arrays(batch)) for batch in batches]
        forms = [(tree, tuple([(leaf.shape, leaf.dtype) for leaf in leaves])) for leaves, tree in flat]
        for one, form in zip(group, forms, strict=True):
            if form != forms[0]:
                raise ArgumentError(
                    f"{one.member.name} cannot be trained together with {group[0].member.name}: its batch has the "
                    f"shapes {_told(form)}, not {_told(forms[0])}."
                )
        return Row(batches, [leaves for leaves, _ in flat], *forms[0])

    def _together(self, group: list[Standing], row: Row) -> list[Row]:
        """Returns a row and the following ones for the same dispatch. Fewer than `STEPS` rows run one by one."""
        rows = [row]
        while len(rows) < STEPS:
            following = [self._peek(one) for one in group]
            if any(batch is None or _shapes(batch) != (row.tree, row.shapes) for batch in following):
                break
            rows.append(self._row(group))
        return rows

    def _land(
        self,
        group: list[Standing],
        way: Way | None,
        carried: Any,
        records: Mapping[int, tuple[Any, int | None]],
        at: int,
        positions: Mapping[str, InputPosition | None],
    ) -> None:
        """Writes the progress of each run up to a step to its model_dir, unless its loss is not finite."""
        if way is None:
            return
        states = way.each(jax.device_get(carried), len(group))
        values: dict[int, Sequence[Any]] = {}
        for step, (found, place) in records.items():
            found = jax.device_get(found)
            found = found if place is None else jax.tree.map(lambda leaf, place=place: leaf[place], found)
            values[step] = way.each(found, len(group))
        for index, one in enumerate(group):
            if bad := int(states[index].clock[_FIRST_BAD]):
                self.failed[one.member.name] = bad
                _log.warning("%s: the loss is not finite at step %d.", one.member.name, bad)
                continue
            one.state, one.step, one.position = states[index], at, positions[one.member.name]
            every = one.member.estimator.config.save_summary_steps
            for step, found in values.items():
                if every and step % every == 0:
                    one.losses[step] = {name: float(value) for name, value in found[index].items()}
            try:
                save(one)
            except PreemptedError:  # its call received the signal, so the other runs are saved, too
                self._interruption.reason = "a signal during a save"
                save(one)


def _next_save(group: Sequence[Standing], step: int) -> int:
    """Returns the next step at which one of the runs saves."""
    cadences = [one.member.estimator.config.save_checkpoints_steps for one in group]
    return min([(step // every + 1) * every for every in cadences if every] or [sys.maxsize])


def _shapes(batch: Batch) -> tuple[Any, tuple[Any, ...]]:
    """Returns the structure, shapes and dtypes of a batch. It is fast, as every batch of every run needs it."""
    leaves, tree = jax.tree.flatten(arrays(batch))
    return tree, tuple([(leaf.shape, leaf.dtype) for leaf in leaves])


def _told(shapes: tuple[Any, tuple[Any, ...]]) -> tuple[str, ...]:
    return tuple(f"{dtype}{list(shape)}" for shape, dtype in shapes[1])
