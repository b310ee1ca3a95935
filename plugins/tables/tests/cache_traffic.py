"""Counts the bytes of rows that travel between host and device, in a step with Adam: look-up and update.

    python cache_traffic.py

It prints a table for ids that follow Zipf's law, with caches of several sizes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax

from estimator_tables import AllToAll, all_to_all, cache, rows

ROWS, COLUMNS, IDS = 1_000_000, 16, 8192


def drawn(steps: int, exponent: float, *, count: int = ROWS, ids: int = IDS) -> np.ndarray:
    """Ids, int32[steps, ids], drawn by Zipf's law from all rows."""
    chances = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    ends = np.cumsum(chances / chances.sum())
    return np.searchsorted(ends[:-1], np.random.default_rng(7).random((steps, ids))).astype(np.int32)


def counting(travelled: Counter[str]) -> Any:
    """Returns two contexts. Programs in them count the bytes of rows of tables in the memory of the host."""

    def noting(name: str, function: Any) -> Any:
        def counted(array: jax.Array, numbers: jax.Array, *rest: jax.Array) -> jax.Array:
            if jax.typeof(array).memory_space == jax.memory.Space.Host:
                size = numbers.size * array.shape[1] * array.dtype.itemsize
                jax.debug.callback(lambda _: travelled.update({name: size}), numbers.reshape(-1)[0])
            return function(array, numbers, *rest)

        return counted

    read, written = noting("read", rows.rows_of), noting("written", rows.with_rows)
    return mock.patch.multiple(cache, rows_of=read, with_rows=written), mock.patch.multiple(
        all_to_all, rows_of=read, with_rows=written
    )


def bytes_of(ids: np.ndarray, cached_rows: int, *, after: int, count: int = ROWS) -> Counter[str]:
    """The bytes of rows and slots that travel in all steps from step `after` on."""
    access = AllToAll(memory="pinned_host", cached_rows=cached_rows)
    optimizer = optax.with_extra_args_support(optax.adam(0.01))
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    where = jax.NamedSharding(mesh, jax.P(), memory_kind="pinned_host")
    table: Any = jnp.zeros((count, COLUMNS))
    slots: Any = optimizer.init(table)
    table, slots = jax.tree.map(lambda leaf: jax.device_put(leaf, where) if leaf.ndim else leaf, (table, slots))
    if access.carried is not None:
        table, slots = access.carried.opened(table, slots)
    travelled: Counter[str] = Counter()

    def step(table: Any, slots: Any, ids: jax.Array) -> Any:
        gradients = access.read(table, ids) + 1
        return access.update(optimizer, table, slots, ids, gradients)

    in_cache, in_access = counting(travelled)
    with in_cache, in_access:
        run = jax.jit(step, donate_argnums=(0, 1))
        for number, each in enumerate(ids):
            if number == after:
                jax.block_until_ready(table)
                jax.effects_barrier()
                travelled.clear()
            table, slots = run(table, slots, jnp.asarray(each))
        jax.block_until_ready(table)
        jax.effects_barrier()
    return travelled


def main() -> None:
    steps, measured = 200, 20
    for exponent in (1.05, 0.9):
        ids = drawn(steps, exponent)
        distinct = np.mean([np.unique(each).size for each in ids])
        for cached_rows in (0, 16_384, 65_536):
            found = bytes_of(ids, cached_rows, after=steps - measured)
            line = [f"{found[name] / measured:,.0f}" for name in ("read", "written")]
            print(exponent, f"distinct {distinct:.0f}", cached_rows, *line, flush=True)


if __name__ == "__main__":
    main()
