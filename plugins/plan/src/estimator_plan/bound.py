"""An upper bound of the temporaries of a step that no compiler here can compile: the same step, for processors."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from estimator_core.errors import EstimatorError
from estimator_core.lowering import TracedStep
from estimator_plan.cards import between_products, has_product, more_than_processors
from estimator_plan.collectives import KINDS
from estimator_plan.hlo import Instruction, Module, read_module
from estimator_plan.lowered_text import in_float16, with_multiplications

#: Passes of the processors' compiler that change what a device holds, and that cards do not have: one reduces gradients
#: together which cards reduce one after the other, one computes products of 16 bits in 32.
_NOT_ON_CARDS = ("xla_disable_hlo_passes", "cpu-all-reduce-combiner,change-op-data-type")
#: From jax 0.11 on, cumulative sums are lowered for cards like this; the processors' compiler ends the process at it.
_ENDS_PROCESS = "chlo.scan"


def temporaries_on_processors(
    trace: Callable[[Sequence[Any]], TracedStep], count: int, workspace: int = 0
) -> int | None:
    """Bytes of temporaries on one of several CPU devices, as XLA compiles the step for them; nothing runs.

    The step is divided as on the devices of the plan. It is compiled as it is, and as it is lowered for cards, with
    float16 in the place of bfloat16, which processors store as float32. The lowest of these bounds counts:

    - Of the first program: all that processors hold. They join fewer operations into one than cards do.
    - Of both: the same, without what cards do not store. See `more_than_processors`.

    All count the arrays that cards hold while they exchange them beside other work: see `exchanged_bytes`. Arrays leave
    gaps, so a part in 64 is added.

    Args:
        trace: traces the step for devices.
        count: the number of devices.
        workspace: what a library takes for products of matrices, if the program has any.

    Returns:
        The bytes; None if this jax cannot pretend to have that many devices, or the step does not compile for them.
    """
    try:
        # The processes of a plan may have started jax already, and then nothing public adds devices to it.
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
    """Bytes of results that cards hold while they exchange them beside other work, and processors do not.

    Outside of loops that is one exchange, at most the largest. In a loop the exchanges of one round continue during the
    next one, or begin during the one before. Then such exchanges have an operand and a result more. An exchange that
    waits for a product of its round, and for which another product of that round waits, does neither.

    Returns:
        The largest single one, and those of the rounds of a loop.
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
    """A lowered program, compiled for all devices of a client."""
    options = xla.CompileOptions()
    options.num_replicas, options.num_partitions = 1, count
    options.device_assignment = xla.DeviceAssignment.create(np.arange(count).reshape(1, count))
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, count
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    options.env_option_overrides = [_NOT_ON_CARDS]
    return client.compile_and_load(text, xla.DeviceList(tuple(client.devices())), options)
