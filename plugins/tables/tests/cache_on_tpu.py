"""Compiles a look-up and an update of a table with a cache for TPU v5e chips that are not available. Needs libtpu.

    python cache_on_tpu.py

It prints the bytes on each chip and on its host.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import topologies

from estimator_tables import AllToAll
from estimator_tables.cache import WAYS, CachedSlots, CachedTable

ROWS, COLUMNS, IDS = 400_000, 128, 8192


def compiled(chips: int, cached_rows: int) -> dict[str, Any]:
    """The compiled look-up and update, with Adam."""
    devices = topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[:chips]
    mesh = jax.sharding.Mesh(np.array(devices), ("data",))
    split, whole = (jax.NamedSharding(mesh, jax.P(*axes)) for axes in (["data"], []))
    host = jax.NamedSharding(mesh, jax.P("data"), memory_kind="pinned_host")

    def shaped(where: Any, *shape: int, dtype: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=where)

    access = AllToAll(memory="pinned_host", cached_rows=cached_rows)
    optimizer = optax.with_extra_args_support(optax.adam(0.1))
    table = shaped(host, ROWS, COLUMNS)
    slots: Any = jax.tree.map(
        lambda leaf: shaped(host, *leaf.shape) if leaf.ndim else shaped(whole, dtype=leaf.dtype),
        jax.eval_shape(optimizer.init, table),
    )
    if cached_rows:
        sets = (chips * cached_rows // WAYS, WAYS)
        ids, until = (shaped(split, *sets, dtype=jnp.int32) for _ in range(2))
        rows = [shaped(split, chips * cached_rows, COLUMNS) for _ in range(3)]
        table = CachedTable(table, rows[0], ids, until, shaped(split, chips, dtype=jnp.int32))
        slots = CachedSlots(slots, tuple(rows[1:]))
    where = jax.tree.map(lambda leaf: leaf.sharding, (table, slots))
    wanted, gradients = shaped(split, IDS, dtype=jnp.int32), shaped(split, IDS, COLUMNS)
    with jax.set_mesh(mesh):
        read: Any = jax.jit(access.read, out_shardings=split)
        update: Any = jax.jit(
            lambda *state: access.update(optimizer, *state), donate_argnums=(0, 1), out_shardings=where
        )
        return {
            "look-up": read.lower(table, wanted).compile(),
            "update": update.lower(table, slots, wanted, gradients).compile(),
        }


def main() -> None:
    for chips in (1, 4):
        for cached_rows in (0, 16_384):
            for name, program in compiled(chips, cached_rows).items():
                memory = program.memory_analysis()
                print(
                    f"{chips} chips, {cached_rows} cached rows, {name}: {memory.argument_size_in_bytes:,} bytes on the "
                    f"chip, {memory.temp_size_in_bytes:,} temporary, {memory.host_argument_size_in_bytes:,} on the "
                    f"host, {memory.host_alias_size_in_bytes:,} updated in place",
                    flush=True,
                )


if __name__ == "__main__":
    main()
