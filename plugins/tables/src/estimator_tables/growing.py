"""A table for ids that are not known before training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import estimator_core as ec
from estimator_core.errors import ArgumentError, ModelFnError, VariableError
from estimator_core.model import RowAccess
from estimator_tables.all_to_all import AllToAll
from estimator_tables.fresh_rows import FreshRows
from estimator_tables.vocabulary import (
    CANDIDATES_PER_BUCKET,
    DEFAULT_ROW,
    ROWS_PER_BUCKET,
    Vocabulary,
    grown,
    known_rows,
)

_SPLIT = AllToAll()


@dataclass(frozen=True, kw_only=True)
class GrowingTable:
    """A table whose rows belong to the ids that occur in training. They are admitted by count and evicted by age.

    Args:
        rows: the number of rows, at least 32 and a multiple of 16.
        columns: the number of values in a row.
        admit_at: the number of occurrences from which an id has its own row. Until then it has the default row, as
            unknown ids do.
        max_age: the number of training batches after which an id that did not occur may lose its row to a new one;
            None: never.
        initializer: the initializer of a row, called with `(key, (1, columns), dtype)`; None: truncated normal, stddev
            `1 / sqrt(columns)`.
        access: the way to read and update rows.

    Raises:
        ArgumentError: a number cannot be used.

    Example:
        >>> users = GrowingTable(rows=1024, columns=8, admit_at=3, max_age=10_000)
        >>> def model_fn(features, labels, mode):
        ...     rows = users.lookup("user", features["user"], mode)
    """

    rows: int
    columns: int
    admit_at: int = 1
    max_age: int | None = None
    initializer: Callable[..., jax.Array] | None = None
    access: RowAccess = _SPLIT

    def __post_init__(self) -> None:
        numbers = {"rows": self.rows, "columns": self.columns, "admit_at": self.admit_at, "max_age": self.max_age}
        for name, number in numbers.items():
            if not (isinstance(number, (int, np.integer)) or (number is None and name == "max_age")):
                raise ArgumentError(f"GrowingTable: {name} must be an integer, given: {number!r}.")
        if self.rows % ROWS_PER_BUCKET or not 2 * ROWS_PER_BUCKET <= self.rows < 2**30:
            raise ArgumentError(
                f"GrowingTable: rows must be a multiple of {ROWS_PER_BUCKET}, from {2 * ROWS_PER_BUCKET} to 2**30, "
                f"given: {self.rows}."
            )
        for name, number in numbers.items():
            if number is not None and number < 1:
                raise ArgumentError(f"GrowingTable: {name} must be at least 1, given: {number}.")
            if number is not None and number >= 2**31:
                raise ArgumentError(f"GrowingTable: {name} must be below 2**31, given: {number}.")

    def lookup(self, name: str, ids: jax.Array, mode: str) -> jax.Array:
        """Returns the rows of ids, float32[..., columns]. In TRAIN, it first counts, admits and evicts ids.

        The summary `<name>/unknown` of a training step is the share of the ids that have the default row.

        Args:
            name: the name of the variables of the table, below the active variable scope. A model_fn looks up a table
                only once: concatenate the ids of features that share it.
            ids: int32[..., 2], the result of `WideIds` for ids of 64 bits. -1 means no id, and its row is zeros.
            mode: the mode of model_fn.

        Raises:
            VariableError: the ids have another form, or the table is looked up twice.
        """
        if ids.dtype != jnp.int32 or ids.ndim < 1 or ids.shape[-1] != 2:
            raise VariableError(
                f"GrowingTable.lookup({name!r}): ids must be words, int32[..., 2], given {ids.dtype}{list(ids.shape)}. "
                "Pass host_transforms=[WideIds([...])] to the Estimator."
            )
        with ec.variable_scope(name):
            vocabulary = self._vocabulary()
            if mode == ec.ModeKeys.TRAIN:
                changed, rows, fresh = grown(
                    vocabulary, ids.reshape(-1, 2), admit_at=self.admit_at, max_age=self.max_age or 2**31 - 1
                )
                for part, value in changed._asdict().items():
                    ec.set_variable(part, value)
                try:
                    ec.summary.scalar("unknown", jnp.sum(rows == DEFAULT_ROW) / jnp.maximum(jnp.sum(rows >= 0), 1))
                except ModelFnError as error:
                    raise VariableError(
                        f"GrowingTable.lookup({name!r}): the model already has a summary {name}/unknown. A model_fn "
                        "looks up a table once, because each lookup counts a batch: concatenate the ids of the "
                        "features that share it, and split the rows."
                    ) from error
                # Rows that are assigned to their id in this step are numbered after the last row: see FreshRows.
                found = jnp.where(fresh, rows + self.rows, rows).reshape(ids.shape[:-1])
            else:
                found = known_rows(vocabulary, ids)
            access = FreshRows(self.access, name, self.initializer)

            def first_values(key: jax.Array, shape: tuple[int, int], dtype: Any) -> jax.Array:
                return access.first_rows(jnp.arange(shape[0]), shape[1], dtype)

            return ec.sparse_lookup("rows", found, (self.rows, self.columns), first_values, access=access)

    def _vocabulary(self) -> Vocabulary:
        size = self.rows // ROWS_PER_BUCKET, ROWS_PER_BUCKET + CANDIDATES_PER_BUCKET * (self.admit_at > 1)

        def state(name: str, *shape: int) -> jax.Array:
            return ec.get_variable(name, shape, jax.nn.initializers.zeros, jnp.int32, trainable=False)

        return Vocabulary(state("ids", *size, 2), state("counts", *size), state("seen", *size), state("clock"))


def known_ids(variables: Mapping[str, np.ndarray], name: str) -> dict[int, int]:
    """Returns the ids that have their own row in a growing table, with the number of the row.

    Args:
        variables: the variables of `Estimator.variables` or `ec.load_variables(path)`.
        name: the path of the table.

    Raises:
        VariableError: the table does not exist.
    """
    if f"{name}/ids" not in variables:
        tables = sorted(path.removesuffix("/ids") for path in variables if path.endswith("/ids"))
        raise VariableError(f"There is no growing table {name!r}. Tables: {tables}.")
    words, counts = (np.asarray(variables[f"{name}/{part}"])[:, :ROWS_PER_BUCKET] for part in ("ids", "counts"))
    ids = words[..., 0].astype(np.int64) << 32 | words[..., 1].view(np.uint32).astype(np.int64)
    bucket, slot = np.nonzero(counts)
    return {int(ids[b, s]): int(b * ROWS_PER_BUCKET + s) for b, s in zip(bucket, slot, strict=True)}
