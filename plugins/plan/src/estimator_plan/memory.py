"""The memory of one device: the needs of the state and of the program, whether they fit, and what to change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from estimator_core.lowering import TracedStep
from estimator_plan.compiling import CompiledStep

#: The names of the memory of the host in jax.
HOST_KINDS = ("pinned_host", "unpinned_host")


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The bytes on one device, for one training step.

    Attributes:
        limit: the bytes that programs can use.
        variables, model_state, slots, batch: the bytes of each part, by its sharding. `slots` is the state of the
            optimizer. Tables in the memory of the host do not count.
        cache: the bytes that training keeps of such tables on the device, for example frequent rows and their slots.
        host: the bytes of such tables and their slots, in the memory of the host, for each device.
        whole_state: the bytes of all variables and slots on all devices together, each counted once, without tables of
            the host.
        temporary: the bytes of activations and other intermediate arrays. None if nothing was compiled.
        code: the bytes of the program itself. None if nothing was compiled.
        donated: the bytes of the state that the step overwrites in place. None if nothing was compiled.
        needed: the total of the compiled step: arguments, results that are not donated, temporaries and code. If
            nothing was compiled, a lower bound: state and batch.
        compiled: whether the figures come from a compiler.
        at_most: an upper bound of `needed` if nothing was compiled, or None without such a bound.
    """

    limit: int
    variables: int
    model_state: int
    slots: int
    batch: int
    cache: int
    host: int
    whole_state: int
    temporary: int | None
    code: int | None
    donated: int | None
    needed: int
    compiled: bool
    at_most: int | None = None

    @property
    def state(self) -> int:
        """Variables, model state, slots and caches on one device."""
        return self.variables + self.model_state + self.slots + self.cache

    @property
    def shortfall(self) -> int:
        """The missing bytes. 0 if the step fits."""
        return max(0, self.needed - self.limit)

    @property
    def fits(self) -> bool | None:
        """Whether the step fits. None if nothing was compiled, and no upper bound proves that it fits."""
        if self.compiled or self.shortfall:
            return self.shortfall == 0
        return True if self.at_most is not None and self.at_most <= self.limit else None


def measure_memory(
    step: TracedStep, compiled: CompiledStep | None, limit: int, temporaries_at_most: int | None = None
) -> Memory:
    """Returns the memory of a step.

    Args:
        step: the traced step.
        compiled: the compiled step, or None.
        limit: the bytes that programs can use on one device.
        temporaries_at_most: an upper bound of the temporaries if nothing was compiled, or None without such a bound.
    """
    parts = {
        "variables": on_one_device(step.state.variables),
        "model_state": on_one_device(step.state.model_state),
        "slots": on_one_device(step.state.opt_state),
        "batch": on_one_device(step.batch),
        "cache": on_one_device(step.carried) - on_one_device(step.state),
    }
    leaves = [leaf for leaf in jax.tree.leaves(step.state) if not in_host_memory(leaf)]
    whole = sum(bytes_of(leaf.shape, leaf.dtype) for leaf in leaves)
    host = on_one_device(step.state, host=True)
    if compiled is None:
        return Memory(
            limit=limit,
            **parts,
            host=host,
            whole_state=whole,
            temporary=None,
            code=None,
            donated=None,
            needed=sum(parts.values()),
            compiled=False,
            at_most=None if temporaries_at_most is None else sum(parts.values()) + temporaries_at_most,
        )
    if compiled.program is None:
        assert compiled.needed_bytes is not None
        needed = max(compiled.needed_bytes, limit + 1)  # the figure of the compiler is rounded
        return Memory(
            limit=limit,
            **parts,
            host=host,
            whole_state=whole,
            temporary=None,
            code=None,
            donated=None,
            needed=needed,
            compiled=True,
        )
    told = compiled.program.memory_analysis()
    needed = (
        told.argument_size_in_bytes
        + told.output_size_in_bytes
        - told.alias_size_in_bytes
        + told.temp_size_in_bytes
        + told.generated_code_size_in_bytes
    )
    return Memory(
        limit=limit,
        **parts,
        host=host,
        whole_state=whole,
        temporary=told.temp_size_in_bytes,
        code=told.generated_code_size_in_bytes,
        donated=told.alias_size_in_bytes,
        needed=needed,
        compiled=True,
    )


def advice(memory: Memory, step: TracedStep, *, precision: str, remat: str) -> tuple[str, ...]:
    """Returns the changes that would help if a step does not fit, the most effective one first. Empty if it fits.

    Args:
        memory: the memory of the step.
        step: the traced step.
        precision: the precision of the RunConfig.
        remat: the rematerialisation of the RunConfig.
    """
    if not memory.shortfall:
        return ()
    devices = step.placement.mesh.size
    found: list[tuple[int, str]] = []
    spared = memory.state - math.ceil(memory.whole_state / devices)
    if devices > 1 and spared > memory.state // 10:
        found.append(
            (
                spared,
                f"Split the state over the devices, which saves {gib(spared)} on each: --fully-sharded, or "
                'partition_rules=[(".*", ec.FullySharded())].',
            )
        )
    rest = memory.needed - memory.state
    if memory.compiled and rest > 0:
        parts = max(2, step.placement.batch_parts)
        smaller = max(parts, step.examples // 2 // parts * parts)
        if smaller < step.examples:
            found.append(
                (
                    rest // 2,
                    f"Use smaller batches (--batch-size {smaller}), or split each into micro-batches: "
                    "accumulate_steps=2.",
                )
            )
        if remat == "none":
            found.append((rest // 3, 'Compute activations again in the backward pass: remat="full" (or "dots").'))
        if precision == "float32":
            found.append((rest // 3, 'Halve the activations: precision="bfloat16".'))
    found.sort(key=lambda item: -item[0])
    lines = [line for _, line in found]
    if memory.whole_state > devices * memory.limit:
        lines.insert(
            0,
            f"The state alone, {gib(memory.whole_state)}, is more than the {devices} devices hold together: use at "
            f"least {math.ceil(memory.whole_state / memory.limit)} devices.",
        )
    return tuple(lines) or ("Use more devices, or devices with more memory.",)


def gib(size: float) -> str:
    """Returns a number of bytes in words.

    Example:
        >>> gib(3 * 2**30), gib(2**20), gib(100)
        ('3.00 GiB', '1.0 MiB', '0.1 KiB')
    """
    if size >= 2**30:
        return f"{size / 2**30:.2f} GiB"
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"


def on_one_device(tree: Any, *, host: bool = False) -> int:
    """Returns the bytes of a tree of shapes with shardings, on one device.

    Args:
        tree: the shapes.
        host: whether to count the arrays in the memory of its host, instead of those in its own memory.
    """
    leaves = (leaf for leaf in jax.tree.leaves(tree) if in_host_memory(leaf) is host)
    return sum(bytes_of(leaf.sharding.shard_shape(leaf.shape), leaf.dtype) for leaf in leaves)


def in_host_memory(leaf: Any) -> bool:
    """Returns whether an array is in the memory of the host, according to its sharding."""
    return leaf.sharding.memory_kind in HOST_KINDS


def bytes_of(shape: Sequence[int], dtype: Any) -> int:
    """Returns the bytes of an array."""
    return math.prod(shape) * jax.numpy.dtype(dtype).itemsize
