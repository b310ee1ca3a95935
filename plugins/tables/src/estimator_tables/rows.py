"""Rows of an array, read and written in the memory where the array is: that of a device, or that of its host."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from estimator_core.model import computed_by_host, is_in_host_memory

_READ = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
_WRITE = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)


def rows_of(array: jax.Array, numbers: jax.Array) -> jax.Array:
    """Returns rows in the memory of the device, with zeros for a number out of range.

    Args:
        array: [rows, columns]. If it is in the memory of the host, only the rows are copied.
        numbers: the row numbers, int32, of any shape.

    Returns:
        The rows, [*numbers.shape, columns].
    """
    count, columns = array.shape
    inside = (numbers >= 0) & (numbers < count)
    if not is_in_host_memory(array):
        found = array.at[jnp.where(inside, numbers, count).reshape(-1)].get(mode="fill", fill_value=0)
        return found.reshape(*numbers.shape, columns)

    def read(array: jax.Array, places: jax.Array) -> jax.Array:
        return lax.gather(array, places, _READ, (1, columns), mode="promise_in_bounds")

    flat = jnp.where(inside, numbers, 0).reshape(-1, 1)
    found = jax.device_put(computed_by_host(read)(array, on_host(flat)), jax.memory.Space.Device)
    return jnp.where(inside[..., None], found.reshape(*numbers.shape, columns), 0)


def with_rows(array: jax.Array, numbers: jax.Array, rows: jax.Array) -> jax.Array:
    """Returns the array with other rows, in place if its buffer is donated. Numbers out of range are ignored.

    Args:
        array: the array, [rows, columns].
        numbers: the distinct, non-negative row numbers, int32[n].
        rows: the new rows, [n, columns].
    """
    if not is_in_host_memory(array):
        return array.at[numbers].set(rows, mode="drop")

    def write(array: jax.Array, places: jax.Array, rows: jax.Array) -> jax.Array:
        return lax.scatter(array, places, rows, _WRITE, mode="drop")

    # The host of a GPU would copy the whole array. The GPU itself can access the rows that it writes.
    by = write if jax.default_backend() == "gpu" else computed_by_host(write)
    return by(array, on_host(numbers[:, None]), on_host(rows))


def summed_by_row(numbers: jax.Array, values: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Returns each row number once, with the sum of its values. Numbers out of range are ignored.

    Args:
        numbers: the row numbers, int32[n].
        values: the values, [n, columns].
        count: the number of rows.

    Returns:
        The row numbers, int32[n], whose unused places hold `count`, and the sums.
    """
    numbers = jnp.where((numbers >= 0) & (numbers < count), numbers, count)
    rows, places = jnp.unique(numbers, size=numbers.size, fill_value=count, return_inverse=True)
    sums = jax.ops.segment_sum(values, places.reshape(-1), num_segments=numbers.size)
    return rows, jnp.where((rows < count)[:, None], sums, 0)


def applied(
    transformation: optax.GradientTransformationExtraArgs,
    rows: jax.Array,
    slots: Any,
    gradients: jax.Array,
    extra: dict[str, jax.Array],
) -> tuple[Any, Any]:
    """Returns new rows and slots from an optimizer. The bits are the same for every memory of the rows."""

    def step(rows: jax.Array, slots: Any, gradients: jax.Array, extra: dict[str, jax.Array]) -> tuple[Any, Any]:
        updates, changed = transformation.update(gradients, slots, rows, **extra)
        return optax.apply_updates(rows, updates), changed

    def by_itself(*arguments: Any) -> tuple[Any, Any]:
        # Otherwise the compiler for CPUs merges this arithmetic with the surrounding code, which then affects rounding.
        with set_xla_metadata(inlineable="false"):
            return jax.jit(step)(*arguments)

    return lax.platform_dependent(rows, slots, gradients, extra, cpu=by_itself, default=step)


def on_host(array: jax.Array) -> jax.Array:
    """Returns the array in the memory of the host."""
    return jax.device_put(array, jax.memory.Space.Host)
