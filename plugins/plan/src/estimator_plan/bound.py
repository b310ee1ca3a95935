"""An upper bound of the temporaries of a step that no compiler here can compile: the same step, for processors."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from estimator_core.errors import EstimatorError
from estimator_core.lowering import TracedStep
from estimator_plan.compiling import compile_step


def temporaries_on_processors(trace: Callable[[Sequence[Any]], TracedStep], count: int) -> int | None:
    """Bytes of temporaries on one of several CPU devices, as XLA compiles the step for them; nothing runs.

    The step is divided as on the devices of the plan. Processors keep more at once than cards do: their compiler joins
    fewer operations into one, and computes in float32 what is bfloat16.

    Args:
        trace: traces the step for devices.
        count: the number of devices.

    Returns:
        The bytes; None if this jax cannot pretend to have that many devices, or the step does not compile for them.
    """
    try:
        # The processes of a plan may have started jax already, and then nothing public adds devices to it.
        client: Any = importlib.import_module("jaxlib.xla_client")
        devices: list[Any] = client.make_cpu_client(num_devices=count).devices()
        program = compile_step(trace(devices)).program
    except (ImportError, AttributeError, TypeError, EstimatorError):
        return None
    return None if program is None else int(program.memory_analysis().temp_size_in_bytes)
