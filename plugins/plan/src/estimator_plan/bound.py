"""An upper bound of the temporaries of a step without the compiler of its devices: the step is compiled for CPUs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from estimator_core.errors import EstimatorError
from estimator_core.lowering import TracedStep
from estimator_plan.collectives import KINDS
from estimator_plan.gpu_memory import between_products, has_product, more_than_processors
from estimator_plan.hlo import Instruction, Module, read_module
from estimator_plan.lowered_text import in_float16, with_multiplications

#: Passes of the CPU compiler that change what a device holds, and that do not exist for GPUs. One joins reductions of
#: gradients that GPUs do one after the other. The other computes products of 16 bits in 32 bits.
_NOT_ON_CARDS = ("xla_disable_hlo_passes", "cpu-all-reduce-combiner,change-op-data-type")
#: From jax 0.11 on, cumulative sums are lowered to this operation for GPUs. The CPU compiler ends the process at it.
_ENDS_PROCESS = "chlo.scan"


def temporaries_on_processors(
    trace: Callable[[Sequence[Any]], TracedStep], count: int, workspace: int = 0
) -> int | None:
    """Returns the bytes of temporaries on one of several CPU devices, as XLA compiles the step for them; nothing runs.

    The step is divided as on the devices of the plan. It is compiled as it is, and as it is lowered for GPUs, with
    float16 instead of bfloat16, which CPUs store as float32. The lowest of these bounds counts:

    - For the first program: all bytes that CPUs hold. CPUs join fewer operations into one than GPUs.
    - For both programs: the same, without the arrays that GPUs do not store. See `more_than_processors`.

    All bounds include the arrays that GPUs hold during exchanges that overlap with other work: see `exchanged_bytes`.
    Arrays leave gaps in the memory, so 1/64 is added.

    Args:
        trace: the function that traces the step for devices.
        count: the number of devices.
        workspace: the bytes that a library takes for products of matrices, if the program has any.

    Returns:
        The bytes. None if this jax cannot simulate that many devices, or the step does not compile for them.
    """
    try:
        # A plan may have started jax already, and then no public function adds devices to it.
        xla: Any = importlib.import_module("jaxlib.xla_client")
        client: Any = xla.make_cpu_client(num_devices=count)
        step = trace(client.devices())
    except (ImportError, AttributeError, TypeError, EstimatorError):
        return None
    found: list[int] = []
    for for_cards in (False, True):
        try:
            with step.placement.context():
                text = step.traced.lower().as_text()
                if for_cards:
                    lowered = step.traced.lower(lowering_platforms=("cuda",)).as_text()
                    text = text if _ENDS_PROCESS in lowered else lowered
            text = with_multiplications(text)
            program = _compiled(xla, client, in_float16(text) if for_cards else text, count)
            module = read_module(program.hlo_modules()[0].to_string())
            size = int(program.get_compiled_memory_stats().temp_size_in_bytes)
        except (AttributeError, TypeError, ValueError, NotImplementedError, jax.errors.JaxRuntimeError):
            continue
        size += workspace if has_product(module) else 0
        once, rounds = exchanged_bytes(module)
        found.append(size + more_than_processors(module) + rounds + size // 64)
        if not for_cards:
            found.append(size + once + rounds + size // 64)
    return min(found, default=None)


def exchanged_bytes(module: Module) -> tuple[int, int]:
    """Returns the bytes of results that only GPUs hold, during exchanges that overlap with other work.

    Outside of loops there is one such exchange, at most the largest. In a loop, an exchange of one round may overlap
    with the next or the previous round, and then needs one more operand and result. An exchange between two products of
    the same round does not.

    Returns:
        The size of the largest single exchange, and the size of those in the rounds of a loop.
    """
    once, rounds = 0, 0
    for name in dict.fromkeys(name for name, _ in module.executions()):
        sizes = {each.name: _size(each) for each in module.computations[name].values() if each.opcode in KINDS}
        once = max([once, *sizes.values()])
        if name != module.entry:
            inside = between_products(module, name)
            rounds = max(rounds, 2 * sum(size for each, size in sizes.items() if each not in inside))
    return once, rounds


def _size(instruction: Instruction) -> int:
    return sum(array.bytes for array in instruction.arrays)


def _compiled(xla: Any, client: Any, text: str, count: int) -> Any:
    """Compiles a lowered program for all devices of a client."""
    options = xla.CompileOptions()
    options.num_replicas, options.num_partitions = 1, count
    options.device_assignment = xla.DeviceAssignment.create(np.arange(count).reshape(1, count))
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, count
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    options.env_option_overrides = [_NOT_ON_CARDS]
    return client.compile_and_load(text, xla.DeviceList(tuple(client.devices())), options)
