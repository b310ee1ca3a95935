"""What one Estimator has compiled and holds: its programs, its variables' declarations, its live state."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._backends import Backend, Placement, place, select_backend
from estimator_core._backends.compile_cache import use_compile_cache
from estimator_core._cluster.connect import ALONE, Peers, connect, join_initialized
from estimator_core._inputs import InputContext
from estimator_core._loop.agreement import NOBODY_ASKS, NobodyAsks, OwnDecisions, SharedDecisions
from estimator_core._loop.batches import Batches
from estimator_core._loop.live import LiveState
from estimator_core._loop.time_spent import TimeSpent
from estimator_core._loop.tuning import GroupTrials, GroupTuner
from estimator_core._model.initialize import initialize
from estimator_core._model.variables import VariableSpec
from estimator_core._step import (
    BoundModelFn,
    Discovery,
    EvalStep,
    PredictStep,
    TrainState,
    TrainStep,
    discover,
    initial_clock,
)
from estimator_core._step.initial_state import initial_opt_state
from estimator_core._step.packing import Packing, packing_for
from estimator_core._step.precision import scales_loss
from estimator_core._step.state import flatten_opt_state, unflatten_opt_state
from estimator_core.config import RunConfig

_log = logging.getLogger("estimator_core")

#: Replaces initial values by path: `(values, specs, discovery, seed) -> changed values`.
Overrides = Callable[[Mapping[str, Any], Mapping[str, VariableSpec], Discovery, int], Mapping[str, Any]]


@dataclass(eq=False)
class Engine:
    """The compiled side of an Estimator. Everything is made when first needed and lives as long as the Estimator.

    Attributes:
        model_fn: the bound model_fn.
        config: the RunConfig.
        component: looks a plugin component up: `(kind, name) -> object`; `component_names(kind)` lists them.
        plugin_versions: the plugins in use, as manifests record them.
        specs: every variable declared so far, in any mode.
        live: the newest state.
        training: whether a training call is under way; `time_spent` its account.
        newest_results: the newest step that this call has recorded, by evaluation directory.
        replaces_results: whether an evaluation takes the place of one recorded for its step, as all do inside training.
        decisions: of a training call, asked by the evaluations that belong to its saves: whether to break off.
        by_itself: whether this process works without the others at the moment.
        event_files: of evaluations inside that call, which share one file each.
        group_trials: what is known of several batches a dispatch, by mode.
        measured_dispatches: steps per dispatch that "auto" chose, by program and shapes of a batch.
        traces: traces of model_fn by mode, and "discovery".
    """

    model_fn: BoundModelFn
    config: RunConfig
    component: Callable[[str, str], Any]
    component_names: Callable[[str], Any]
    plugin_versions: Callable[[], list[dict[str, str]]] = list
    specs: dict[str, VariableSpec] = field(default_factory=dict)
    live: LiveState = field(default_factory=LiveState)
    traces: Counter[str] = field(default_factory=Counter)
    training: bool = False
    saving_step: int | None = None
    newest_results: dict[Path, int] = field(default_factory=dict[Path, int])
    replaces_results: bool = False
    decisions: OwnDecisions | SharedDecisions | NobodyAsks = NOBODY_ASKS
    by_itself: bool = False
    time_spent: TimeSpent | None = None
    event_files: list[Any] = field(default_factory=list[Any])
    group_trials: dict[str, GroupTrials] = field(default_factory=lambda: defaultdict(GroupTrials))
    measured_dispatches: dict[TrainStep, dict[Any, int]] = field(default_factory=dict)
    _cached: tuple[str, TrainState] | None = None
    _discoveries: dict[str, Discovery] = field(default_factory=dict)
    _train_steps: dict[Any, TrainStep] = field(default_factory=dict)
    _packings: dict[Any, Packing | None] = field(default_factory=dict[Any, Packing | None])
    _eval_steps: dict[Any, EvalStep] = field(default_factory=dict)

    @cached_property
    def backend(self) -> Backend:
        """The backend the config asks for, initialised."""
        _ = self.peers  # before jax looks at a device
        backend = select_backend(
            self.config.backend, lambda name: self.component("backend", name), self.component_names("backend")
        )
        backend.initialize()
        use_compile_cache(self.config.compile_cache)
        if self.peers is ALONE and self.config.processes == "auto" and jax.distributed.is_initialized():
            self.__dict__["peers"] = join_initialized()
            # A pod is known only now.
            object.__setattr__(self.config, "_process_group", self.peers.group)
        return backend

    @cached_property
    def peers(self) -> Peers:
        """The processes of the run, connected."""
        group = self.config.process_group
        return ALONE if group is None else connect(group)

    @property
    def placement(self) -> Placement:
        """Where arrays live."""
        return self._own_placement if self.by_itself else self._shared_placement

    @cached_property
    def _shared_placement(self) -> Placement:
        return place(self.backend.devices(), self.config.mesh, self.config.partition_rules)

    @cached_property
    def _own_placement(self) -> Placement:
        own = [device for device in self.backend.devices() if device.process_index == self.peers.index]
        return place(own, None, ())

    @contextlib.contextmanager
    def alone(self) -> Generator[None]:
        """Within, this process works without the others, on its own device and from checkpoints."""
        before, self.by_itself = self.by_itself, self.peers.count > 1
        try:
            yield
        finally:
            self.by_itself = before

    @cached_property
    def input_context(self) -> InputContext:
        """Which part of the input this process reads."""
        if not self.placement.spans_processes:
            return InputContext(num_replicas_in_sync=self.placement.batch_parts)
        part, parts = self.placement.input_part(self.peers.index)
        return InputContext(
            num_input_pipelines=parts, input_pipeline_id=part, num_replicas_in_sync=self.placement.batch_parts
        )

    @cached_property
    def seed(self) -> int:
        """The seed of a fresh run."""
        return secrets.randbits(63) if self.config.tf_random_seed is None else self.config.tf_random_seed

    @cached_property
    def predict_step(self) -> PredictStep:
        """The prediction program."""
        return PredictStep(self.model_fn, lambda: self.specs, traces=self.traces, placement=self.placement)

    def eval_step(self, fetches: frozenset[str]) -> EvalStep:
        """The evaluation program for a set of fetched outputs."""
        if fetches not in self._eval_steps:
            example_mean = self.config.eval_loss == "example_mean"
            self._eval_steps[fetches] = EvalStep(
                self.model_fn,
                lambda: self.specs,
                example_mean=example_mean,
                fetches=fetches,
                traces=self.traces,
                placement=self.placement,
            )
        return self._eval_steps[fetches]

    def batches(self, source: Iterator[Any], mode: str, account: TimeSpent) -> Batches:
        """The batches of an evaluation or of predictions, one by one or in groups; several processes go batch by batch,
        since they decide what to do with their batches.
        """
        asked = 1 if self.placement.spans_processes else self.config.batches_per_dispatch
        tuner = GroupTuner(asked, self.group_trials[mode])
        return Batches(source, self.placement.stack, account, tuner=tuner)

    def train_step(self, fetches: frozenset[str], packing: Packing | None = None) -> TrainStep:
        """The training program for a set of fetched outputs, and a way to carry the state."""
        summaries = bool(self.config.save_summary_steps)
        if (fetches, packing) not in self._train_steps:
            if not self.placement.single and not self._train_steps:
                _log.info("%s", self.placement.describe(self._discoveries["train"].specs))
            self._train_steps[fetches, packing] = TrainStep(
                self.model_fn,
                self._discoveries["train"],
                fetches=fetches,
                summaries=summaries,
                accumulate_steps=self.config.accumulate_steps,
                traces=self.traces,
                precision=self.config.precision,
                remat=self.config.remat,
                placement=self.placement,
                state_shardings=self.state_shardings(self._discoveries["train"]),
                packing=packing,
            )
        return self._train_steps[fetches, packing]

    def packing(self, discovery: Discovery) -> Packing | None:
        """How the training program carries the live state."""
        state = self.live.ready
        if self.config.debug or not self.placement.single:
            return None
        key = jax.tree.structure(state), tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state))
        if key not in self._packings:  # model_fn may declare further variables in another mode
            self._packings[key] = packing_for(state, discovery.tables)
        return self._packings[key]

    def discovery(self, mode: str, batch: Any, *, fresh: bool = False) -> Discovery:
        """The discovery of a mode, made with the first batch that needs it.

        Args:
            mode: the mode.
            batch: the batch.
            fresh: whether first values will be computed for the variables.
        """
        if mode not in self._discoveries:
            self.traces["discovery"] += 1
            with self.placement.context():
                found = discover(
                    self.model_fn,
                    mode,
                    batch.features,
                    batch.labels,
                    known=self.specs,
                    weights=batch.weights,
                    fresh=fresh,
                )
            self._discoveries[mode] = found
            self.specs.update(found.specs)
        return self._discoveries[mode]

    def state_shardings(self, discovery: Discovery) -> TrainState | None:
        """The sharding of every leaf of the state, None with one device."""
        if self.placement.single:
            return None
        return TrainState(
            self.placement.replicated,
            self.placement.variables(discovery.trainable),  # type: ignore[arg-type]
            self.placement.variables(discovery.model_state),  # type: ignore[arg-type]
            self.placement.like_variables(discovery.opt_state, discovery.specs),
        )

    def fresh_values(self, discovery: Discovery, overrides: Overrides) -> tuple[dict[str, Any], dict[str, Any]]:
        """Initial variables and model state of a run without a checkpoint."""
        specs = self.specs
        values: dict[str, Any] = dict(initialize(specs, self.seed, out_shardings=self.placement.variables(specs)))
        for name, value in overrides(values, specs, discovery, self.seed).items():
            values[name] = self.on_device(value, specs[name])
        return self._split(values)

    def on_device(self, value: Any, spec: VariableSpec) -> Any:
        """A copy of a host array on the devices, where its variable belongs."""
        shardings = self.placement.variables({spec.name: spec})
        if shardings is None:
            return jnp.array(value, dtype=spec.dtype, copy=True)
        return self.placement.put(np.asarray(value, spec.dtype), shardings[spec.name])

    def start_fresh(self, discovery: Discovery, overrides: Overrides) -> None:
        """Sets the live state of a run without a checkpoint."""
        variables, model_state = self.fresh_values(discovery, overrides)
        self.live = LiveState(
            state=TrainState(self._clock(initial_clock(self.seed)), variables, model_state, ()), step=0
        )

    def start_from_checkpoint(
        self, items: Any, checkpoint_step: int, *, with_slots: bool, discovery: Discovery | None
    ) -> None:
        """Sets the live state from what a checkpoint holds, already compared with the declared variables."""
        self.adopt_specs(items)
        variables = {name: self.on_device(value, self.specs[name]) for name, value in items.variables.items()}
        model_state = {name: self.on_device(value, self.specs[name]) for name, value in items.model_state.items()}
        opt_state: Any = ()
        if with_slots:
            assert discovery is not None
            opt_state = self._slots(items.opt_state, discovery)
        state = TrainState(self._clock(items.clock), variables, model_state, opt_state)
        self.live = LiveState(
            state=state, step=int(items.clock[0]), checkpoint_step=checkpoint_step, has_slots=with_slots
        )

    def inference_state(self, items: Any) -> TrainState:
        """A state for evaluation and prediction from what a checkpoint holds."""
        self.adopt_specs(items)
        place = {
            name: self.on_device(value, self.specs[name])
            for name, value in {**items.variables, **items.model_state}.items()
        }
        return TrainState(
            self._clock(items.clock),
            {name: place[name] for name in items.variables},
            {name: place[name] for name in items.model_state},
            (),
        )

    def checkpoint_state(self, path: str, read: Callable[[], Any]) -> TrainState:
        """The state of a checkpoint, kept until another one is asked for."""
        if self._cached is None or self._cached[0] != path:
            self._cached = (path, self.inference_state(read()))
        return self._cached[1]

    def adopt_specs(self, items: Any) -> None:
        """Learns the variables a checkpoint holds; those that model_fn declared stay as declared."""
        for trainable, values in ((True, items.variables), (False, items.model_state)):
            for name, value in values.items():
                if name not in self.specs:
                    self.specs[name] = VariableSpec(
                        name, tuple(value.shape), value.dtype, _never_initialised, trainable
                    )

    def complete(self, discovery: Discovery) -> None:
        """Gives the live state what training needs and earlier modes did not declare: further variables, and optimizer
        slots.
        """
        state = self.live.ready
        missing = {
            name: spec
            for name, spec in self.specs.items()
            if name not in state.variables and name not in state.model_state
        }
        if missing:
            values = initialize(missing, self.seed_of(state), out_shardings=self.placement.variables(missing))
            variables, model_state = self._split({**state.variables, **state.model_state, **values})
            state = state._replace(variables=variables, model_state=model_state)
        if not self.live.has_slots:
            shardings = self.state_shardings(discovery)
            slots = initial_opt_state(
                discovery,
                state.variables,
                None if shardings is None else shardings.opt_state,
                scaled=scales_loss(self.config.precision),
            )
            state = state._replace(opt_state=slots)
        if state is not self.live.ready:
            self.live.carry(None)
            self.live.state, self.live.has_slots = state, True

    def close_event_files(self) -> None:
        """Closes the event files of evaluations, once no further one will follow soon."""
        while self.event_files:
            self.event_files.pop().close()

    def forget(self) -> None:
        """Drops the live state after a failure: its buffers may be gone, and the newest checkpoint is what counts."""
        self.live = LiveState()

    def seed_of(self, state: TrainState) -> int:
        """The seed of a state."""
        from estimator_core._step.state import clock_seed

        return clock_seed(state.clock)

    def _split(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        variables = {name: value for name, value in values.items() if self.specs[name].trainable}
        model_state = {name: value for name, value in values.items() if not self.specs[name].trainable}
        return variables, model_state

    def _slots(self, leaves: Mapping[str, Any], discovery: Discovery) -> Any:
        expected = flatten_opt_state(discovery.opt_state)
        shardings = self.state_shardings(discovery)
        if shardings is None:
            placed = {name: jnp.array(leaves[name], dtype=leaf.dtype, copy=True) for name, leaf in expected.items()}
        else:
            where = flatten_opt_state(shardings.opt_state)
            placed = {
                name: self.placement.put(np.asarray(leaves[name], leaf.dtype), where[name])
                for name, leaf in expected.items()
            }
        return unflatten_opt_state(discovery.opt_state, placed)

    def _clock(self, clock: Any) -> Any:
        return jnp.array(clock, copy=True) if self.placement.single else self.placement.replicate(clock)


def _never_initialised(key: Any, shape: Any, dtype: Any) -> Any:
    raise AssertionError("a variable that came out of a checkpoint is not initialised")
