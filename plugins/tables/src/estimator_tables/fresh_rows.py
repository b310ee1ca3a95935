"""The access of a table whose rows get initial values when they are assigned to another id."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax

from estimator_core.model import CarriedForm, RowAccess
from estimator_tables.cache import CachedTable, overwritten
from estimator_tables.rows import with_rows


@dataclass(frozen=True)
class FreshRows:
    """Reads and updates rows as another access does, but resets the rows and slots that another id receives.

    An id of at least the number of rows represents such a row: row 3 of 10, if reassigned in this step, is 13. Initial
    values depend on the name of the table and the number of the row, so they can be drawn again without any state.

    Attributes:
        access: the access that reads and updates the rows.
        name: the name of the table.
        initializer: the initializer of a row, called with `(key, (1, columns), dtype)`; None: truncated normal, stddev
            `1 / sqrt(columns)`.
    """

    access: RowAccess
    name: str
    initializer: Callable[..., jax.Array] | None

    @property
    def sharding(self) -> tuple[str | tuple[str, ...] | None, ...] | None:
        """The sharding of the access."""
        return self.access.sharding

    @property
    def memory(self) -> str | None:
        """The memory of the access."""
        return self.access.memory

    @property
    def carried(self) -> CarriedForm | None:
        """The carried form of the access."""
        return getattr(self.access, "carried", None)

    def first_rows(self, rows: jax.Array, columns: int, dtype: Any) -> jax.Array:
        """Returns the initial values by row number, [..., columns]."""
        initializer = self.initializer or jax.nn.initializers.truncated_normal(1 / math.sqrt(columns))
        key = jax.random.key(zlib.crc32(self.name.encode()))

        def first(row: jax.Array) -> jax.Array:
            return initializer(jax.random.fold_in(key, row), (1, columns), dtype)[0]

        return jax.vmap(first)(rows.reshape(-1)).reshape(*rows.shape, columns)

    def summaries(self, table: Any) -> dict[str, jax.Array]:
        """Returns the summaries of the access."""
        return getattr(self.access, "summaries", lambda _: {})(table)

    def read(self, table: Any, ids: jax.Array) -> jax.Array:
        """Reads rows: see `RowAccess`."""
        count, columns = table.shape
        fresh, rows = ids >= count, jnp.where(ids >= count, ids - count, ids)
        first = lax.cond(
            fresh.any(),
            lambda: self.first_rows(rows, columns, jnp.float32).astype(table.dtype),  # as `update` draws them
            lambda: jnp.zeros((*ids.shape, columns), table.dtype),
        )
        return jnp.where(fresh[..., None], first, self.access.read(table, rows))

    def update(
        self,
        transformation: optax.GradientTransformationExtraArgs,
        table: Any,
        opt_state: Any,
        ids: jax.Array,
        gradients: jax.Array,
        **extra: jax.Array,
    ) -> tuple[Any, Any]:
        """Updates rows: see `RowAccess`."""
        count, columns = table.shape
        fresh = ids >= count

        def given_away(_: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
            table, opt_state = state
            first = self.first_rows(ids - count, columns, table.dtype)
            places = jnp.where(fresh, ids - count, count)
            if isinstance(table, CachedTable):
                return overwritten(table, opt_state, places, first, transformation.init(first))

            def begun(old: jax.Array, new: jax.Array) -> jax.Array:
                return with_rows(old, places, new) if old.shape == table.shape else old

            return begun(table, first), jax.tree.map(begun, opt_state, transformation.init(first))

        # A loop that runs once or not at all: XLA updates its state in place, but copies the state of a `cond`.
        table, opt_state = lax.fori_loop(0, fresh.any().astype(jnp.int32), given_away, (table, opt_state))
        return self.access.update(
            transformation, table, opt_state, jnp.where(fresh, ids - count, ids), gradients, **extra
        )
