"""The handling of metrics in the evaluation step: it merges them, or passes their arrays to the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core._metrics.example_weights import mask_for_metrics
from estimator_core.errors import ArgumentError, ModelFnError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jax import Array
    from jax.typing import ArrayLike

    from estimator_core._metrics.base import Metric


class HostChunk(NamedTuple):
    """The arrays of one batch, and which of its rows are examples (None: all)."""

    arrays: dict[str, Array | np.ndarray]
    mask: Array | np.ndarray | None


class _SameFunction:
    """Wraps the function of a metric, so that trees are equal even though each trace of model_fn creates a new
    function.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameFunction) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[str, str]:
        kind = type(self.fn)
        return getattr(self.fn, "__module__", kind.__module__), getattr(self.fn, "__qualname__", kind.__qualname__)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class HostMetric:
    """A metric of whole arrays. `on_host` creates it.

    The evaluation step returns it batch by batch and never accumulates it on the device, because merging appends
    arrays.
    """

    chunks: tuple[HostChunk, ...]
    function: _SameFunction = field(metadata={"static": True})

    def merge(self, other: Self) -> Self:
        """Returns the arrays of both, in this order."""
        return type(self)(chunks=self.chunks + other.chunks, function=self.function)

    def compute(self) -> float | np.ndarray:
        """Returns `fn(**arrays)`. Each array is the concatenation of all batches without padding."""
        columns = {
            name: np.concatenate([_rows(chunk, name) for chunk in self.chunks]) for name in self.chunks[0].arrays
        }
        value = self.function.fn(**columns)
        return float(value) if np.ndim(value) == 0 else np.asarray(value)


def on_host(fn: Callable[..., Any], **arrays: ArrayLike) -> HostMetric:
    """Returns a metric that `fn` computes on the host from the whole evaluation.

    Args:
        fn: the function that is called once, with one numpy array per keyword: all batches in order, without padded
            rows. It returns a number or an array.
        **arrays: the arrays, each [batch, ...]. The trailing axes must be the same in all batches.

    Raises:
        ArgumentError: there are no arrays, an array has no batch axis, or the batch axes differ in size.

    Example:
        >>> import numpy as np
        >>> import estimator_core.metrics as metrics
        >>> batches = [np.array([1.0, 9.0]), np.array([2.0])]
        >>> first, second = (metrics.on_host(lambda values: np.median(values), values=batch) for batch in batches)
        >>> first.merge(second).compute()
        2.0
    """
    columns = {name: jnp.asarray(array) for name, array in arrays.items()}
    if not columns:
        raise ArgumentError(
            "on_host: no array was given. Pass what the function needs by keyword: on_host(fn, labels=labels)."
        )
    sizes = {name: array.shape[0] if array.ndim else None for name, array in columns.items()}
    if None in sizes.values() or len(set(sizes.values())) > 1:
        shapes = {name: array.shape for name, array in columns.items()}
        raise ArgumentError(f"on_host: every array needs the batch as its leading axis; got the shapes {shapes}.")
    mask = mask_for_metrics()
    rows = next(iter(sizes.values()))
    if mask is not None and mask.shape[0] != rows:
        raise ArgumentError(
            f"on_host: this batch is padded to {mask.shape[0]} rows, but the arrays have {rows}, so the padding "
            "cannot be left out. "
            "Keep the batch as the leading axis."
        )
    chunk = HostChunk(arrays=dict[str, Any](columns), mask=None if mask is None else mask > 0)
    return HostMetric(chunks=(chunk,), function=_SameFunction(fn))


def _rows(chunk: HostChunk, name: str) -> np.ndarray:
    rows = np.asarray(chunk.arrays[name])
    return rows if chunk.mask is None else rows[np.asarray(chunk.mask)]


def merge_metrics(accumulated: Mapping[str, Metric], new: Mapping[str, Metric]) -> dict[str, Metric]:
    """Merges two dictionaries of metrics with the same names. Traceable unless one of them is a HostMetric.

    Example:
        >>> import numpy as np
        >>> from estimator_core._metrics.mean import mean
        >>> from estimator_core._metrics.merging import merge_metrics
        >>> merged = merge_metrics({"loss": mean(np.float32(1))}, {"loss": mean(np.float32(2))})
        >>> merged["loss"].compute()
        1.5
    """
    return {name: metric.merge(new[name]) for name, metric in accumulated.items()}


def split_host_metrics(metrics: Mapping[str, Metric]) -> tuple[dict[str, Metric], dict[str, HostMetric]]:
    """Splits metrics into those that the device accumulates and those whose arrays the step returns for each batch."""
    on_device: dict[str, Metric] = {}
    on_host: dict[str, HostMetric] = {}
    for name, metric in metrics.items():
        if isinstance(metric, HostMetric):
            on_host[name] = metric
        else:
            on_device[name] = metric
    return on_device, on_host


def compute_metrics(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """Returns the value of each metric. All states are copied from the device at once."""
    fetched: dict[str, Metric] = jax.device_get(dict(metrics))
    return {name: metric.compute() for name, metric in fetched.items()}


def check_same_structure(old: Mapping[str, Metric], new: Mapping[str, Metric]) -> None:
    """Refuses metrics whose names, tree structure, shapes or dtypes differ from those of an earlier batch.

    Works on arrays, tracers and `jax.ShapeDtypeStruct`s. HostMetrics may differ in the sizes of their arrays.

    Raises:
        ModelFnError: something differs. The message names the metric, the field and both forms.
    """
    if missing := set(old) ^ set(new):
        raise ModelFnError(
            f"eval_metric_ops differ between batches: {sorted(missing)} came with some batches and not with others. "
            "Return the same metrics for every batch."
        )
    for name, metric in old.items():
        if not isinstance(metric, HostMetric):
            _check_metric(name, metric, new[name])


def _check_metric(name: str, old: Metric, new: Metric) -> None:
    cure = (
        "A metric must have the same structure for every batch: sum over the batch, or use ec.metrics.on_host for "
        "whole arrays."
    )
    if type(old) is not type(new):
        raise ModelFnError(
            f"metric {name!r} was a {type(old).__name__} for an earlier batch and is a {type(new).__name__} now. {cure}"
        )
    before, after = _described_fields(old), _described_fields(new)
    for part in sorted(set(before) | set(after)):
        if before.get(part) != after.get(part):
            raise ModelFnError(
                f"metric {name!r} ({type(old).__name__}): its field {part!r} was {before.get(part, 'absent')} for "
                f"an earlier batch and is {after.get(part, 'absent')} now. {cure}"
            )
    if jax.tree.structure(old) != jax.tree.structure(new):
        raise ModelFnError(
            f"metric {name!r} ({type(old).__name__}): a static field changed: {old!r} for an earlier batch, {new!r} "
            f"now. {cure}"
        )


def _described_fields(metric: Metric) -> dict[str, str]:
    leaves: list[tuple[Any, Any]] = jax.tree_util.tree_leaves_with_path(metric)
    return {jax.tree_util.keystr(path).lstrip("."): f"{leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves}
