"""Optional parts of a backend beside `TopologyBackend`, for devices that need flags or store arrays differently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable


@runtime_checkable
class CompilesWithFlags(Protocol):
    """A backend whose runs set flags of the compiler. A plan compiles with the same flags.

    Example:
        >>> class Cards:
        ...     def compiler_options(self):
        ...         return {"xla_gpu_enable_latency_hiding_scheduler": True}
        >>> isinstance(Cards(), CompilesWithFlags)
        True
    """

    def compiler_options(self) -> Mapping[str, str | bool]:
        """Returns the flags that a run would set, by name, without dashes."""
        ...


@runtime_checkable
class BoundedByProcessors(Protocol):
    """A backend whose devices hold no more than CPUs do, apart from a workspace.

    If its compiler is not installed, a plan compiles the step for CPUs, and uses the result as an upper bound. A
    backend without this attribute has no such bound.

    Attributes:
        workspace_bytes: the bytes that a library of matrix products takes on each device while it computes a product.

    Example:
        >>> class Cards:
        ...     workspace_bytes = 32 * 2**20
        >>> isinstance(Cards(), BoundedByProcessors), isinstance(object(), BoundedByProcessors)
        (True, False)
    """

    workspace_bytes: int
