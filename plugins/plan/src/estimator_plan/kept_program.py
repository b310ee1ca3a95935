"""The compiled step of a plan, kept in a folder that a run uses as its `compile_cache`."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError, BackendUnavailableError
from estimator_core.estimator import Estimator
from estimator_core.inputs import Batch
from estimator_core.lowering import trace_step
from estimator_plan.compiling import compile_step
from estimator_plan.contracts import CompilesWithFlags
from estimator_plan.topologies import Found
from estimator_plan.training_plan import versions

RECORD = "planned.json"
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class KeptProgram:
    """The record of a compiled step in a folder.

    Attributes:
        file: the name of the file in the folder. jax derives it from a digest of the program and its compilation
            settings.
        topology: the devices, as `estimator plan --topology` names them.
        kind: the name of the device kind in jax.
        devices: the number of devices.
        mesh: the axis sizes by name.
        examples: the examples of the global batch.
        seconds: the seconds of the compilation.
        versions: the versions of jax and of the compiler.

    Example:
        >>> kept = KeptProgram(
        ...     file="jit__step-0a1b-cache",
        ...     topology="v5e:2x4",
        ...     kind="TPU v5 lite",
        ...     devices=8,
        ...     mesh={"fsdp": 8},
        ...     examples=64,
        ...     seconds=12.5,
        ...     versions={"jax": "0.10.2"},
        ... )
        >>> kept.mesh
        {'fsdp': 8}
    """

    file: str
    topology: str
    kind: str
    devices: int
    mesh: Mapping[str, int]
    examples: int
    seconds: float
    versions: Mapping[str, str]


def keep_program(
    estimator: Estimator,
    batch: Batch,
    found: Found,
    folder: str | Path,
    *,
    mesh: Mapping[str, int] | None = None,
    partition_rules: Sequence[tuple[str, Any]] | None = None,
    remat: str | None = None,
    accumulate_steps: int | None = None,
    batch_size: int | None = None,
) -> KeptProgram:
    """Compiles the training step of an Estimator for a topology, and keeps it for runs on such devices.

    A run with `RunConfig(compile_cache=folder)` loads it instead of compiling, if its program, batch, mesh, flags,
    devices and compiler are the same. Otherwise it compiles as usual. The folder may be copied to other machines.
    Loading a program runs its code, so only its owner should have write access to the folder.

    Args:
        estimator: the Estimator, for its model_fn, params and RunConfig.
        batch: one batch of its training input.
        found: the topology and its backend.
        folder: the folder for the program. It may hold other programs, and is created if it does not exist.
        mesh: the axis sizes that replace those in the RunConfig, as in `plan_training`.
        partition_rules: the rules that replace those in the RunConfig.
        remat: the value that replaces the one in the RunConfig.
        accumulate_steps: the number of micro-batches that replaces the one in the RunConfig.
        batch_size: the number of examples of the global batch. Default: the size of the batch.

    Raises:
        ArgumentError: the run would compile a different program, or the step does not fit.
        BackendUnavailableError: the compiler of the devices is not installed.
        EstimatorError: the step does not compile.
    """
    changes = {"mesh": mesh, "partition_rules": partition_rules, "remat": remat, "accumulate_steps": accumulate_steps}
    config = estimator.config.replace(
        backend="auto", **{name: value for name, value in changes.items() if value is not None}
    )
    if isinstance(found.backend, CompilesWithFlags) and found.backend.compiler_options():
        raise ArgumentError(
            f"A program for {found.topology.name} is not kept: cards choose their kernels by trying them, and a "
            "program compiled without a card has tried none. The first run compiles the program, and its "
            "`compile_cache` keeps it."
        )
    if config.steps_per_dispatch != 1 or config.debug:
        raise ArgumentError(
            "A program is kept only for single steps: leave out steps_per_dispatch and debug of the RunConfig."
        )
    try:
        devices = found.backend.topology_devices(found.topology)
    except BackendUnavailableError as error:
        raise BackendUnavailableError(f"No program is kept: {error}") from error
    step = trace_step(estimator.model_fn, config, batch, devices, batch_size=batch_size)
    if step.placement.mesh.size == 1:
        raise ArgumentError("A program is kept only for several devices: one device has another form of state.")
    with tempfile.TemporaryDirectory(prefix="estimator-plan-") as own:
        compiled = compile_step(step, cache=Path(own))
        files = sorted(Path(own).glob("*-cache"))
        if compiled.program is None:
            raise ArgumentError(f"The step does not fit on {found.topology.name}, so there is no program to keep.")
        if len(files) != 1:
            raise ArgumentError("jax cannot keep a program that calls the host, as `jax.debug.print` does.")
        kept = KeptProgram(
            file=files[0].name,
            topology=found.topology.name,
            kind=devices[0].device_kind,
            devices=len(devices),
            mesh=dict(step.placement.mesh.shape),
            examples=step.examples,
            seconds=round(compiled.seconds, 2),
            versions=versions(),
        )
        _keep(files[0], kept, Path(folder))
    return kept


def kept_programs(folder: str | Path) -> list[KeptProgram]:
    """Returns the programs that were kept in a folder. There are none if the folder has no record.

    Raises:
        ArgumentError: the record in the folder cannot be read.

    Example:
        >>> kept_programs("a/directory/that/does/not/exist")
        []
    """
    record = Path(folder) / RECORD
    if not record.is_file():
        return []
    try:
        given = json.loads(record.read_text(encoding="utf-8"))
        if given["format"] != _VERSION:
            raise ArgumentError(f"{record}: format {given['format']!r} is not known; this release reads {_VERSION}.")
        return [KeptProgram(**each) for each in given["programs"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{record}: not a record of kept programs: {error!r}.") from error


def _keep(program: Path, kept: KeptProgram, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    others = [each for each in kept_programs(folder) if each.file != kept.file]
    shutil.copyfile(program, folder / kept.file)
    record = {"format": _VERSION, "programs": [dataclasses.asdict(each) for each in (*others, kept)]}
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
