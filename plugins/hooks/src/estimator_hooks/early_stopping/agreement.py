"""Agreement of all processes on one decision."""

from __future__ import annotations


def same_on_all_processes(decision: bool) -> bool:
    """Returns the decision of the first process, on every process.

    Every process must call it at the same step. Files may become visible at different times on different machines.
    """
    import jax

    if jax.process_count() == 1:
        return decision
    import numpy as np
    from jax.experimental import multihost_utils

    return bool(multihost_utils.broadcast_one_to_all(np.asarray(decision)))


def number_of_first_process(number: int | None) -> int | None:
    """Returns, on every process, the number (>= 0, or None) that the first process passes."""
    import jax

    if jax.process_count() == 1:
        return number
    import numpy as np
    from jax.experimental import multihost_utils

    agreed = int(multihost_utils.broadcast_one_to_all(np.asarray(-1 if number is None else number)))
    return None if agreed < 0 else agreed


def is_alone() -> bool:
    """Returns whether this process trains alone."""
    import jax

    return jax.process_count() == 1
