"""An upper bound of the temporaries of a step that no compiler here can compile: the same step, for processors."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from estimator_core.errors import EstimatorError
from estimator_core.lowering import TracedStep
from estimator_plan.collectives import KINDS
from estimator_plan.hlo import Instruction, Module, read_module

#: Passes of the processors' compiler that change what a device holds, and that cards do not have: one reduces gradients
#: together which cards reduce one after the other, one computes products of 16 bits in 32.
_NOT_ON_CARDS = ("xla_disable_hlo_passes", "cpu-all-reduce-combiner,change-op-data-type")
#: Names for arrays that are stored elsewhere, and loops, whose arrays their bodies name.
_NO_ARRAY = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call")


def temporaries_on_processors(trace: Callable[[Sequence[Any]], TracedStep], count: int) -> int | None:
    """Bytes of temporaries on one of several CPU devices, as XLA compiles the step for them; nothing runs.

    The step is divided as on the devices of the plan. It is compiled in two ways, and the lower bound of both counts:

    - As it is. Processors keep more at once than cards do: they join fewer operations into one, and store as float32
      what is bfloat16.
    - As it is lowered for cards, with float16 in the place of bfloat16. Processors store float16 as it is. Cards may
      hold one array more than they do, so the largest one counts twice.

    Both count the arrays that cards hold while they exchange them beside other work: see `exchanged_bytes`.

    Args:
        trace: traces the step for devices.
        count: the number of devices.

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
                lowered = step.traced.lower(lowering_platforms=("cuda",)) if for_cards else step.traced.lower()
            text: str = lowered.as_text()
            program = _compiled(xla, client, in_float16(text) if for_cards else text, count)
            module = read_module(program.hlo_modules()[0].to_string())
            size = int(program.get_compiled_memory_stats().temp_size_in_bytes)
        except (AttributeError, TypeError, ValueError, NotImplementedError, jax.errors.JaxRuntimeError):
            continue
        found.append(size + exchanged_bytes(module) + (largest_array(module) if for_cards else 0))
    return min(found, default=None)


def in_float16(text: str) -> str:
    """A lowered program with float16 in the place of bfloat16.

    Example:
        >>> in_float16("%0 = stablehlo.convert %bf16 : (tensor<8xf32>) -> tensor<8xbf16>")
        '%0 = stablehlo.convert %bf16 : (tensor<8xf32>) -> tensor<8xf16>'
    """
    return re.sub(r"(?<=[<x])bf16(?=[>,])", "f16", text)


def exchanged_bytes(module: Module) -> int:
    """Bytes of results that cards hold while they exchange them beside other work, and processors do not.

    Outside of loops that is one exchange, at most the largest. In a loop the exchanges of one round continue during the
    next one. Then all of its exchanges have an operand and a result more.
    """
    single, loops = 0, 0
    for name in dict.fromkeys(name for name, _ in module.executions()):
        sizes = [_size(each) for each in module.computations[name].values() if each.opcode in KINDS]
        single = max([single, *sizes])
        loops = max(loops, 0 if name == module.entry else 2 * sum(sizes))
    return single + loops


def largest_array(module: Module) -> int:
    """Bytes of the largest array that one operation of the program computes. Stacks of a loop do not count."""
    largest = 0
    for name in dict.fromkeys(name for name, _ in module.executions()):
        for each in module.computations[name].values():
            inside = module.computations.get(each.called("calls") or "", {}).values()
            stacks = any(part.opcode == "dynamic-update-slice" for part in (each, *inside))
            constant = any(part.root and part.opcode == "broadcast" for part in inside) or each.opcode == "broadcast"
            if each.opcode not in _NO_ARRAY and not stacks and not constant:
                largest = max([largest, *(array.bytes for array in each.arrays)])
    return largest


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
