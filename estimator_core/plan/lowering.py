"""The training step of an Estimator, traced and compiled for devices that are not there."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from estimator_core._backends import Available, Devices, Placement, Topology
from estimator_core._inputs.batch import Batch
from estimator_core._inputs.position import InputPosition
from estimator_core._loop.programs import Programs, state_shardings
from estimator_core._step import Discovery, TrainState, bind_model_fn
from estimator_core.config import RunConfig
from estimator_core.errors import EstimatorError
from estimator_core.modes import ModeKeys


@dataclass(frozen=True)
class StandIn:
    """A device of which only the figures are known: enough to trace a program, not to compile one."""

    id: int
    process_index: int
    device_kind: str
    platform: str = "stand_in"
    num_cores: None = None


def stand_ins(topology: Topology) -> list[StandIn]:
    """Stand-ins for all devices of a topology, where its compiler is not installed."""
    per_host = max(1, topology.device_count // topology.host_count)
    return [StandIn(index, index // per_host, topology.figures.kind) for index in range(topology.device_count)]


@dataclass(frozen=True)
class _Lent:
    """The backend of programs that are traced for devices on which nothing can run."""

    lent: Sequence[Any]
    name = "lent"

    def probe(self) -> Available:
        return Available(priority=0, summary="devices to compile for")

    def initialize(self) -> None:
        pass

    def devices(self) -> Sequence[Any]:
        return self.lent

    def peak_flops(self, device_kind: str, dtype: str) -> float | None:
        return None

    def memory_bytes(self, device_kind: str) -> int | None:
        return None


@dataclass(frozen=True, kw_only=True)
class TracedStep:
    """A training step, traced.

    Attributes:
        traced: what `jax.jit(step).trace(...)` gave.
        state: shapes, dtypes and shardings of the train state.
        batch: the same of features, labels and the padding mask.
        placement: the mesh and its rules.
        examples: of the global batch.
    """

    traced: Any
    state: TrainState
    batch: Any
    placement: Placement
    examples: int


@dataclass(frozen=True, kw_only=True)
class CompiledStep:
    """A training step, compiled.

    Attributes:
        program: what `lowered.compile()` gave; None where the compiler found that it does not fit.
        seconds: that lowering and compiling took.
        needed_bytes: what the compiler said it needs of a device's memory, where it does not fit.
    """

    program: Any
    seconds: float
    needed_bytes: int | None = None


def trace_step(
    model_fn: Callable[..., Any],
    config: RunConfig,
    batch: Batch,
    devices: Sequence[Any],
    *,
    batch_size: int | None = None,
) -> TracedStep:
    """Traces the training step that an Estimator would run on these devices.

    Args:
        model_fn: with params bound, as `Estimator.model_fn`.
        config: mesh, partition rules, precision, accumulation and so on; without a mesh, batches are split over all.
        batch: one batch; only its shapes and dtypes count.
        devices: of a topology, or stand-ins.
        batch_size: examples of the global batch, in the place of the batch's own.

    Raises:
        ArgumentError: the devices do not fill the mesh.
        ModelFnError: model_fn breaks its contract.
    """
    config = config.replace(backend=_Lent.name, mesh=config.mesh or {"data": -1}, compile_cache=None)
    lent, programs = Devices(config, lambda config: _Lent(devices)), Programs(bind_model_fn(model_fn, None, config))
    placement = lent.placement
    examples = batch_size or batch.size
    shapes = _resized(batch, examples)
    discovery = programs.discovery(lent, ModeKeys.TRAIN, shapes)
    with placement.context():
        step = programs.train_step(lent, frozenset())
        state = _abstract_state(placement, discovery)
        inputs = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=placement.batch_sharding(leaf.shape)),
            (shapes.features, shapes.labels, shapes.weights),
        )
        jitted: Any = step.step
        traced = jitted.trace(state, *inputs)
    return TracedStep(traced=traced, state=state, batch=inputs, placement=placement, examples=examples)


def compile_step(step: TracedStep) -> CompiledStep:
    """Compiles a traced step for its devices; a program that does not fit is no error.

    Raises:
        EstimatorError: the compiler fails otherwise.
    """
    began = time.monotonic()
    with step.placement.context(), _no_compile_cache():
        try:
            program = step.traced.lower().compile()
        except jax.errors.JaxRuntimeError as error:
            needed = needed_bytes(str(error))
            if needed is None:
                raise EstimatorError(f"the training step does not compile for these devices: {error}") from error
            return CompiledStep(program=None, seconds=time.monotonic() - began, needed_bytes=needed)
    return CompiledStep(program=program, seconds=time.monotonic() - began)


def needed_bytes(message: str) -> int | None:
    """What a compiler that ran out of memory says it needs; None for another error.

    Example:
        >>> needed_bytes("RESOURCE_EXHAUSTED: the total memory required (32.00G) exceeds available HBM (15.75G)")
        34359738368
        >>> needed_bytes("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 23.5G of 15.75G hbm.")
        25232932864
    """
    if "RESOURCE_EXHAUSTED" not in message:
        return None
    found = re.search(r"\(([\d.]+)([KMGT]?)\) exceeds", message) or re.search(r"Used ([\d.]+)([KMGT]?)", message)
    return None if found is None else int(float(found[1]) * 1024 ** " KMGT".index(found[2] or " "))


def _abstract_state(placement: Placement, discovery: Discovery) -> TrainState:
    """Shapes, dtypes and shardings of the state of this model, for its placement."""
    specs = {**discovery.trainable, **discovery.model_state}
    shardings = state_shardings(placement, discovery)
    whole = placement.replicated

    def shaped(name: str) -> jax.ShapeDtypeStruct:
        known = (placement.variables({name: specs[name]}) or {}).get(name, whole)
        return jax.ShapeDtypeStruct(specs[name].shape, specs[name].dtype, sharding=known)

    slots: Mapping[str, Any] = discovery.opt_state
    if shardings is None:
        opt_state = jax.tree.map(lambda leaf: _leaf(leaf, whole), slots)
    else:
        opt_state = jax.tree.map(_leaf, slots, shardings.opt_state)
    return TrainState(
        jax.ShapeDtypeStruct((4,), np.dtype(np.uint32), sharding=whole),
        {name: shaped(name) for name in discovery.trainable},
        {name: shaped(name) for name in discovery.model_state},
        opt_state,
    )


def _leaf(leaf: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)


def _resized(batch: Batch, examples: int) -> Batch:
    """Shapes and dtypes of a batch with so many examples."""

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        leaf = np.asarray(leaf) if not hasattr(leaf, "shape") else leaf
        return jax.ShapeDtypeStruct((examples, *leaf.shape[1:]), leaf.dtype)

    features, labels, weights = jax.tree.map(shape, (batch.features, batch.labels, batch.weights))
    return Batch(features, labels, {}, examples, _NOWHERE, weights)


_NOWHERE = InputPosition(fingerprint="", examples=0, batches=0, exhausted=False, source_state=None)


@contextlib.contextmanager
def _no_compile_cache() -> Any:
    """A compiled program from the cache took no time to compile, and may lack its text."""
    kept = jax.config.jax_enable_compilation_cache  # type: ignore[attr-defined]
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", kept)
