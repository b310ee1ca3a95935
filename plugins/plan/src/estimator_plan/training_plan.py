"""The plan of a training step: everything that is known about it before a device is used."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from estimator_core.backends import Topology
from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError, BackendUnavailableError
from estimator_core.estimator import Estimator
from estimator_core.inputs import Batch
from estimator_core.lowering import TracedStep, trace_step
from estimator_plan.bound import temporaries_on_processors
from estimator_plan.collectives import Collective, find_collectives
from estimator_plan.communication_advice import advice_to_send_less
from estimator_plan.compiling import CompiledStep, compile_step, program_text
from estimator_plan.contracts import BoundedByProcessors, CompilesWithFlags
from estimator_plan.flops import count_flops
from estimator_plan.hlo import read_module
from estimator_plan.host_tables import HostRows, has_host_memory, host_rows
from estimator_plan.layout import layout_of
from estimator_plan.memory import Memory, advice, measure_memory
from estimator_plan.roofline import Roofline, roofline
from estimator_plan.stand_ins import stand_ins
from estimator_plan.topologies import Found
from estimator_plan.traffic import memory_traffic

_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """The needs of one training step on devices that need not exist.

    Attributes:
        topology: the devices.
        mesh: the axis sizes by name.
        examples: the examples of the global batch.
        flops: the operations of a step by dtype, of all devices together. Loops count as often as they run.
        sharing: the number of devices that share these operations.
        compiler_flops: the count of the compiler for one device, in which the body of a loop counts once. None: no
            count.
        memory: the memory of one device.
        advice: the changes that help if the step does not fit.
        collectives: the collectives of a step. None if nothing was compiled.
        traffic: the bytes between one device and its memory in a step. None if nothing was compiled.
        host_rows: the rows of tables that are sent between a device and its host. None without tables there.
        times: the roofline.
        compile_seconds: the seconds of the compilation. None if nothing was compiled.
        versions: the versions of the compiler.
        notes: the parts that the figures leave out.
    """

    topology: Topology
    mesh: Mapping[str, int]
    examples: int
    flops: Mapping[str, float]
    sharing: int
    compiler_flops: float | None
    memory: Memory
    advice: tuple[str, ...]
    collectives: tuple[Collective, ...] | None
    traffic: int | None
    host_rows: HostRows | None
    times: Roofline
    compile_seconds: float | None
    versions: Mapping[str, str]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the plan as JSON values. `format` increases when a key changes its meaning."""
        memory, times = self.memory, self.times
        return {
            "format": _VERSION,
            "topology": dataclasses.asdict(self.topology),
            "mesh": dict(self.mesh),
            "examples": self.examples,
            "flops": {"total": sum(self.flops.values()), "by_dtype": dict(self.flops), "compiler": self.compiler_flops},
            "memory": {
                **dataclasses.asdict(memory),
                "state": memory.state,
                "fits": memory.fits,
                "shortfall": memory.shortfall,
            },
            "advice": list(self.advice),
            "collectives": _listed(self.collectives),
            "traffic": self.traffic,
            "host_rows": None if self.host_rows is None else dataclasses.asdict(self.host_rows),
            "seconds": {
                **dataclasses.asdict(times),
                "at_least": times.at_least,
                "at_most": times.at_most,
                "bound_by": times.bound_by,
                "utilisation": times.utilisation,
            },
            "compile_seconds": self.compile_seconds,
            "versions": dict(self.versions),
            "notes": list(self.notes),
        }


def plan_training(
    estimator: Estimator,
    batch: Batch,
    found: Found,
    *,
    mesh: Mapping[str, int] | None = None,
    partition_rules: Sequence[tuple[str, Any]] | None = None,
    remat: str | None = None,
    accumulate_steps: int | None = None,
    batch_size: int | None = None,
) -> TrainingPlan:
    """Plans the training step of an Estimator on a topology. Writes nothing, computes nothing, needs no device.

    If the compiler for the devices is not installed, the plan has all figures that need no compiler, and a note.

    Args:
        estimator: the Estimator, for its model_fn, params and RunConfig. Its state is not used.
        batch: one batch of its training input.
        found: the topology and its backend, as `find_topology` returns them.
        mesh: axis sizes that replace those in the RunConfig. Without either, batches are split over all devices.
        partition_rules: the rules that replace those in the RunConfig.
        remat: the value that replaces the one in the RunConfig.
        accumulate_steps: the number of micro-batches that replaces the one in the RunConfig.
        batch_size: the number of examples of the global batch. Default: the size of the batch.

    Raises:
        ArgumentError: the mesh does not fit the devices.
        EstimatorError: the step does not compile, for a reason other than memory.
    """
    topology = found.topology
    config = _config(
        estimator.config,
        mesh=mesh,
        partition_rules=partition_rules,
        remat=remat,
        accumulate_steps=accumulate_steps,
    )
    if batch_size is not None and batch_size < 1:
        raise ArgumentError(f"batch_size should be >= 1, given: {batch_size}.")
    notes: list[str] = []
    try:
        devices, compiles = found.backend.topology_devices(topology), True
    except BackendUnavailableError as error:
        devices, compiles = stand_ins(topology), False
        notes.append(f"Nothing was compiled: {error} Temporaries, traffic and collectives are not known.")
    if len(devices) != topology.device_count:
        raise ArgumentError(
            f"{topology.name} has {len(devices)} devices, but its backend says {topology.device_count}."
        )

    def traced_for(devices: Sequence[Any]) -> TracedStep:
        return trace_step(estimator.model_fn, config, batch, devices, batch_size=batch_size)

    step = traced_for(devices)
    if compiles and step.lookups and not has_host_memory(devices):
        on_processors = traced_for(stand_ins(topology))
        if host_rows(on_processors) is not None:
            step, compiles = on_processors, False
            notes.append(
                f"Nothing was compiled: the compiler for {topology.name} does not support host memory here, and a "
                "table is in host memory. Temporaries, traffic and collectives are not known."
            )
    bound = None
    backend: object = found.backend
    if not compiles and isinstance(backend, BoundedByProcessors):
        bound = temporaries_on_processors(traced_for, topology.device_count, backend.workspace_bytes)
    counted = count_flops(step.traced.jaxpr)
    options = backend.compiler_options() if compiles and isinstance(backend, CompilesWithFlags) else None
    compiled = compile_step(step, options) if compiles else None
    memory = measure_memory(step, compiled, topology.figures.memory_bytes, bound)
    collectives, traffic = _of_program(compiled, step, topology, options, notes)
    sharing = _busy_devices(step)
    if step.examples % step.placement.batch_parts:
        notes.append(
            f"A batch of {step.examples} is not divisible by {step.placement.batch_parts}: every device computes all "
            "of it."
        )
    return TrainingPlan(
        topology=topology,
        mesh=dict(step.placement.mesh.shape),
        examples=step.examples,
        flops=dict(counted.by_dtype),
        sharing=sharing,
        compiler_flops=_compiler_flops(compiled),
        memory=memory,
        advice=(
            *advice(memory, step, precision=config.precision, remat=config.remat),
            *advice_to_send_less(collectives, step),
        ),
        collectives=collectives,
        traffic=traffic,
        host_rows=host_rows(step),
        times=roofline(counted.by_dtype, traffic, collectives, topology.figures, sharing),
        compile_seconds=None if compiled is None else compiled.seconds,
        versions=versions(),
        notes=(*notes, *counted.notes, *step.placement.rules.notes),
    )


def _listed(collectives: Sequence[Collective] | None) -> list[dict[str, Any]] | None:
    return None if collectives is None else [dataclasses.asdict(each) for each in collectives]


def _config(config: RunConfig, **given: Any) -> RunConfig:
    changes = {name: value for name, value in given.items() if value is not None}
    return config.replace(backend="auto", debug=False, **changes)


def _busy_devices(step: TracedStep) -> int:
    """Returns the number of devices that share the work of a step. All of them compute a batch that does not divide."""
    parts = step.placement.batch_parts
    return step.placement.mesh.size if step.examples % parts == 0 else step.placement.mesh.size // parts


def _of_program(
    compiled: CompiledStep | None,
    step: TracedStep,
    topology: Topology,
    options: Mapping[str, str | bool] | None,
    notes: list[str],
) -> tuple[tuple[Collective, ...] | None, int | None]:
    if compiled is None or compiled.program is None:
        return None, None
    try:
        text = program_text(step, compiled.program, options)
    except jax.errors.JaxRuntimeError as error:  # libtpu is newer than jaxlib, which reads its programs
        notes.append(f"Traffic and collectives are not known: jaxlib cannot read the compiled program ({error}).")
        return None, None
    module = read_module(text)
    collectives = find_collectives(module, layout_of(step.placement.mesh, topology))
    traffic = memory_traffic(module)
    notes.extend(module.notes)
    return collectives, traffic


def _compiler_flops(compiled: CompiledStep | None) -> float | None:
    if compiled is None or compiled.program is None:
        return None
    told = compiled.program.cost_analysis()
    return None if told is None else told.get("flops")


def versions() -> dict[str, str]:
    """Returns the versions of jax and of the installed compilers."""
    import importlib.metadata

    found: dict[str, str] = {}
    for name in ("jax", "jaxlib", "libtpu", "jax-cuda13-plugin"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
