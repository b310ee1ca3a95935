"""What the evaluation step does with the metrics of a model_fn: merge them, and refuse those that change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from estimator_core._metrics.on_host import HostMetric
from estimator_core.errors import ModelFnError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from estimator_core._metrics.base import Metric


def merge_metrics(accumulated: Mapping[str, Metric], new: Mapping[str, Metric]) -> dict[str, Metric]:
    """Merges two dictionaries of metrics with the same names; traceable unless one of them is a HostMetric.

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
    """Metrics the device accumulates, and metrics whose arrays the step hands out each batch."""
    on_device: dict[str, Metric] = {}
    on_host: dict[str, HostMetric] = {}
    for name, metric in metrics.items():
        if isinstance(metric, HostMetric):
            on_host[name] = metric
        else:
            on_device[name] = metric
    return on_device, on_host


def compute_metrics(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """The value of each metric; copies all states from the device at once."""
    fetched: dict[str, Metric] = jax.device_get(dict(metrics))
    return {name: metric.compute() for name, metric in fetched.items()}


def check_same_structure(old: Mapping[str, Metric], new: Mapping[str, Metric]) -> None:
    """Refuses metrics whose names, tree structure, shapes or dtypes differ from those of an earlier batch.

    Works on arrays, tracers and `jax.ShapeDtypeStruct`s. HostMetrics may differ in the sizes of their arrays.

    Raises:
        ModelFnError: names the metric, the field and both forms.
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
    for field in sorted(set(before) | set(after)):
        if before.get(field) != after.get(field):
            raise ModelFnError(
                f"metric {name!r} ({type(old).__name__}): its field {field!r} was {before.get(field, 'absent')} for "
                f"an earlier batch and is {after.get(field, 'absent')} now. {cure}"
            )
    if jax.tree.structure(old) != jax.tree.structure(new):
        raise ModelFnError(
            f"metric {name!r} ({type(old).__name__}): a static field changed: {old!r} for an earlier batch, {new!r} "
            f"now. {cure}"
        )


def _described_fields(metric: Metric) -> dict[str, str]:
    leaves: list[tuple[Any, Any]] = jax.tree_util.tree_leaves_with_path(metric)
    return {jax.tree_util.keystr(path).lstrip("."): f"{leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves}
