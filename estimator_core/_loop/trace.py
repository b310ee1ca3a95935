"""Training steps that other code runs: traced for devices that need not exist, or run by a population.

`estimator_core.lowering` exports both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from estimator_core._backends import Devices, Placement
from estimator_core._backends.contract import CPUBackend
from estimator_core._inputs.contract import Batch, InputPosition
from estimator_core._loop.programs import Programs, state_shardings
from estimator_core._loop.run import LoopRun
from estimator_core._model.variables import VariableSpec
from estimator_core._step import Discovery, TrainState, bind_model_fn
from estimator_core._step.carried import CarriedTables
from estimator_core._step.sparse import forms_of
from estimator_core.config import RunConfig
from estimator_core.errors import HookError
from estimator_core.hooks import Run
from estimator_core.modes import ModeKeys


@dataclass(frozen=True)
class _Lent(CPUBackend):
    """The backend of programs that are traced for devices on which nothing can run.

    Like that of the CPU, it has nothing to initialise and knows no figures.
    """

    lent: Sequence[Any]
    name = "lent"

    def devices(self) -> Sequence[Any]:
        return self.lent


@dataclass(frozen=True, kw_only=True)
class TracedStep:
    """The trace of a training step.

    Attributes:
        traced: the result of `jax.jit(step).trace(...)`.
        state: the shapes, dtypes and shardings of the train state.
        carried: the shapes, dtypes and shardings of the argument of the program: the state with tables in their
            training form.
        lookups: the shapes of the rows that a step looks up, `"<table>#<n>"` by row-sparse lookup.
        batch: the shapes, dtypes and shardings of features, labels and the padding mask.
        placement: the mesh and its rules.
        examples: the number of examples of the global batch.
    """

    traced: Any
    state: TrainState
    carried: TrainState
    lookups: Mapping[str, Any]
    batch: Any
    placement: Placement
    examples: int


def trace_step(
    model_fn: Callable[..., Any],
    config: RunConfig,
    batch: Batch,
    devices: Sequence[object],
    *,
    batch_size: int | None = None,
) -> TracedStep:
    """Traces the training step that an Estimator would run on these devices.

    Args:
        model_fn: the model_fn with params bound, like `Estimator.model_fn`.
        config: the RunConfig, with the mesh, partition rules, precision and accumulation. Without a mesh, batches are
            split over all devices.
        batch: one batch, of which only shapes and dtypes are used.
        devices: the devices of a topology (`jax.experimental.topologies`), or objects with the attributes of a jax
            device: `id`, `process_index`, `platform`, `device_kind`, `num_cores`. Nothing runs on them.
        batch_size: the number of examples of the global batch, instead of that of `batch`.

    Raises:
        ArgumentError: the devices do not fill the mesh.
        ModelFnError: model_fn breaks its contract.

    Example:
        >>> import estimator_core as ec, jax.numpy as jnp, optax
        >>> def model_fn(features, mode):
        ...     weights = ec.get_variable("weights", (4,))
        ...     return ec.EstimatorSpec(mode, loss=jnp.sum(features["x"] @ weights), train_op=optax.sgd(0.1))
        >>> estimator = ec.Estimator(model_fn, model_dir="unused")
        >>> inputs = ec.inputs.numpy_input_fn({"x": np.zeros((32, 4), np.float32)}, batch_size=8, shuffle=False)
        >>> batch = estimator.first_batch(inputs)
        >>> step = trace_step(estimator.model_fn, estimator.config, batch, jax.devices()[:1], batch_size=1024)
        >>> step.batch[0]["x"].shape, step.state.variables["weights"].shape
        ((1024, 4), (4,))
    """
    config = config.replace(backend=_Lent.name, mesh=config.mesh or {"data": -1}, compile_cache=None)
    lent, programs = Devices(config, lambda config: _Lent(devices)), Programs(bind_model_fn(model_fn, None, config))
    placement = lent.placement
    examples = batch_size or batch.size
    shapes = _resized(batch, examples)
    discovery = programs.discovery(lent, ModeKeys.TRAIN, shapes)
    with placement.context():
        state = _abstract_state(placement, discovery)
        tables = CarriedTables(forms_of(discovery.tables))
        carried = tables.pack(state)
        step = programs.train_step(lent, frozenset(), tables)
        inputs = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=placement.batch_sharding(leaf.shape)),
            (shapes.features, shapes.labels, shapes.weights),
        )
        jitted: Any = step.step
        traced = jitted.trace(carried, *inputs)
    rows = {key: shape for key, (shape, _) in discovery.lookups.items()}
    return TracedStep(
        traced=traced, state=state, carried=carried, lookups=rows, batch=inputs, placement=placement, examples=examples
    )


def _abstract_state(placement: Placement, discovery: Discovery) -> TrainState:
    """Shapes, dtypes and shardings of the state of this model, for its placement."""

    def shapes(specs: Mapping[str, VariableSpec]) -> dict[str, Any]:
        return {name: jax.ShapeDtypeStruct(spec.shape, spec.dtype) for name, spec in specs.items()}

    clock = jax.ShapeDtypeStruct((4,), np.dtype(np.uint32))
    state = TrainState(clock, shapes(discovery.trainable), shapes(discovery.model_state), discovery.opt_state)
    shardings = state_shardings(placement, discovery) or jax.tree.map(lambda leaf: placement.replicated, state)
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), state, shardings
    )


def _resized(batch: Batch, examples: int) -> Batch:
    """Returns shapes and dtypes of a batch with this number of examples."""

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        leaf = np.asarray(leaf) if not hasattr(leaf, "shape") else leaf
        return jax.ShapeDtypeStruct((examples, *leaf.shape[1:]), leaf.dtype)

    features, labels, weights = jax.tree.map(shape, (batch.features, batch.labels, batch.weights))
    return Batch(features, labels, {}, examples, _NOWHERE, weights)


_NOWHERE = InputPosition(fingerprint="", examples=0, batches=0, exhausted=False, source_state=None)


def land(run: Run, state: TrainState, position: InputPosition | None) -> None:
    """Moves a training run to a state that other code trained from the state of the run.

    A hook calls it in `after_create`. The run then continues from there, and saves and records as if it had run the
    steps itself.

    Args:
        run: the run.
        state: a tree like `run.state`. Its clock contains the step.
        position: the position of the input after the last batch of that step.

    Raises:
        HookError: the state does not belong to this run, or it belongs to an earlier step.
    """
    if not isinstance(run, LoopRun) or run.step != run.first_step:
        raise HookError("land must be called in `after_create` of a training run, before its first step.")
    known, step = run.live.ready, int(np.asarray(state.clock)[0])
    if jax.tree.map(np.shape, state) != jax.tree.map(np.shape, known):
        raise HookError("The state to land with differs in its names or shapes from the state of the run.")
    if step <= run.step:
        raise HookError(f"The run is at step {run.step}; it cannot continue at step {step}.")
    run.live.land(state, step, position)
    run.step = step
