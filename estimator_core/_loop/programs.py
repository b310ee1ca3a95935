"""The discoveries and compiled programs of one Estimator."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np

from estimator_core._backends import Devices, Placement
from estimator_core._inputs import Batch
from estimator_core._loop.steps_per_dispatch import GroupTrials
from estimator_core._model.variables import VariableSpec
from estimator_core._step import BoundModelFn, Discovery, TrainState, TrainStep, discover
from estimator_core._step.sparse import forms_of
from estimator_core._step.state import Packing, packing_for
from estimator_core._step.train_op import Group
from estimator_core.modes import ModeKeys

if TYPE_CHECKING:
    from estimator_core._step.carried import CarriedTables
    from estimator_core._step.eval_step import EvalStep
    from estimator_core._step.predict_step import PredictStep

_log = logging.getLogger("estimator_core")
#: The form in which a training program carries a state.
Carrying: TypeAlias = "Packing | CarriedTables | None"


class Programs:
    """Discoveries, compiled steps, packings and tuning results.

    Each is created when it is first needed, and exists as long as the Estimator. Its key contains everything on which
    it depends, including the placement.

    Args:
        bound: the bound model_fn.

    Attributes:
        specs: every variable declared so far, in any mode.
        traces: the numbers of traces of model_fn, by mode, and "discovery".
        measured_dispatches: the numbers of steps per dispatch that "auto" chose, by program and shapes of a batch.
    """

    def __init__(self, bound: BoundModelFn) -> None:
        self._bound = bound
        self.specs: dict[str, VariableSpec] = {}
        self.traces: Counter[str] = Counter()
        self.measured_dispatches: dict[TrainStep, dict[Any, int]] = {}
        self._trials: dict[tuple[str, frozenset[str], Placement], GroupTrials] = defaultdict(GroupTrials)
        self._discoveries: dict[tuple[str, Placement], Discovery] = {}
        self._train_steps: dict[tuple[frozenset[str], Carrying, Placement], TrainStep] = {}
        self._eval_steps: dict[tuple[frozenset[str], Hashable, Placement], EvalStep] = {}
        self._predict_steps: dict[Placement, PredictStep] = {}
        self._packings: dict[Any, Carrying] = {}

    def model_fn(self, devices: Devices) -> BoundModelFn:
        """Returns the model_fn, bound to the config of these devices."""
        if self._bound.config is not devices.config:
            self._bound = replace(self._bound, config=devices.config)
        return self._bound

    def predict_step(self, devices: Devices) -> PredictStep:
        """Returns the prediction program."""
        from estimator_core._step.predict_step import PredictStep

        key = devices.placement
        if key not in self._predict_steps:
            self._predict_steps[key] = PredictStep(
                self.model_fn(devices), lambda: self.specs, traces=self.traces, placement=devices.placement
            )
        return self._predict_steps[key]

    def eval_step(self, devices: Devices, fetches: frozenset[str], form: Hashable) -> EvalStep:
        """Returns the evaluation program for a set of fetched outputs and a batch form.

        Another form may have other outputs.
        """
        from estimator_core._step.eval_step import EvalStep

        key = fetches, form, devices.placement
        if key not in self._eval_steps:
            self._eval_steps[key] = EvalStep(
                self.model_fn(devices),
                lambda: self.specs,
                example_mean=devices.config.eval_loss == "example_mean",
                fetches=fetches,
                traces=self.traces,
                placement=devices.placement,
            )
        return self._eval_steps[key]

    def train_step(self, devices: Devices, fetches: frozenset[str], packing: Carrying = None) -> TrainStep:
        """Returns the training program for a set of fetched outputs and a way to carry the state, after discovery in
        TRAIN.
        """
        config, placement = devices.config, devices.placement
        key = fetches, packing, placement
        if key not in self._train_steps:
            discovery = self._discoveries[ModeKeys.TRAIN, placement]
            if not placement.single and not self._train_steps:
                _log.info("%s", placement.describe(discovery.specs))
            shardings = state_shardings(placement, discovery)
            opened = None if packing is None or isinstance(packing, Packing) else packing
            self._train_steps[key] = TrainStep(
                self.model_fn(devices),
                discovery,
                fetches=fetches,
                accumulate_steps=config.accumulate_steps,
                traces=self.traces,
                remat=config.remat,
                placement=placement,
                state_shardings=opened.shardings(shardings) if opened and shardings else shardings,
                packing=packing if isinstance(packing, Packing) else None,
            )
        return self._train_steps[key]

    def packing(self, devices: Devices, state: TrainState, discovery: Discovery) -> Carrying:
        """Returns how the training program carries a state; None if it uses the state unchanged."""
        plain = devices.placement.plain(discovery.specs)
        forms = forms_of(discovery.tables) if isinstance(discovery.train_op, Group) else {}
        if devices.config.debug or not (plain or forms):
            return None
        key = jax.tree.structure(state), tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state))
        if key not in self._packings:  # model_fn may declare further variables in another mode
            if forms:
                from estimator_core._step.carried import CarriedTables

                self._packings[key] = CarriedTables(forms)
            else:
                self._packings[key] = packing_for(state, discovery.tables)
        return self._packings[key]

    def group_trials(self, devices: Devices, mode: str, fetches: Iterable[str] = ()) -> GroupTrials:
        """Returns the trials of grouped batches of a program. Calls that run the program read and extend them."""
        return self._trials[mode, frozenset(fetches), devices.placement]

    def discovery(self, devices: Devices, mode: str, batch: Batch, *, fresh: bool = False) -> Discovery:
        """Returns the discovery of a mode, made with the first batch that needs it.

        Args:
            devices: the devices on which the mode runs.
            mode: the mode of the discovery.
            batch: the batch whose shapes are traced.
            fresh: whether first values will be computed for the variables.
        """
        key = mode, devices.placement
        if key not in self._discoveries:
            self.traces["discovery"] += 1
            data = batch.features, batch.labels, batch.weights
            with devices.placement.context():
                found = discover(self.model_fn(devices), mode, data, known=self.specs, fresh=fresh)
            self._discoveries[key] = found
            self.specs.update(found.specs)
        return self._discoveries[key]

    def adopt(self, variables: Mapping[str, np.ndarray], *, trainable: bool) -> None:
        """Adds the variables of a checkpoint. Declarations of model_fn take precedence."""
        for name, value in variables.items():
            if name not in self.specs:
                self.specs[name] = VariableSpec(name, tuple(value.shape), value.dtype, _never_initialised, trainable)


def state_shardings(placement: Placement, discovery: Discovery) -> TrainState | None:
    """Returns the sharding of every leaf of the state; None if no leaf needs one."""
    if placement.plain(discovery.specs):
        return None
    shardings = placement.variables(discovery.specs) or {}
    return TrainState(
        placement.replicated,
        {name: shardings[name] for name in discovery.trainable},
        {name: shardings[name] for name in discovery.model_state},
        placement.like_variables(discovery.opt_state, discovery.specs),
    )


def _never_initialised(key: object, shape: object, dtype: object) -> Any:
    raise AssertionError("a variable that came out of a checkpoint is not initialised")
