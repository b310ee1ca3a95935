"""Streaming metrics: pytrees that merge exactly and are computed at the end."""

from typing import TYPE_CHECKING

from estimator_core import _moved
from estimator_core._metrics.base import Metric, TotalsMetric
from estimator_core._metrics.directions import less_is_better
from estimator_core._metrics.example_weights import applying_example_weights, example_weights
from estimator_core._metrics.mean import Mean, accuracy, mean
from estimator_core._metrics.merging import (
    HostMetric,
    check_same_structure,
    compute_metrics,
    merge_metrics,
    on_host,
    split_host_metrics,
)
from estimator_core._metrics.totals import bucket_totals, total, total_value
from estimator_core._metrics.weighting import padding_mask, same_shape, weigh

__all__ = [
    "HostMetric",
    "Mean",
    "Metric",
    "TotalsMetric",
    "accuracy",
    "applying_example_weights",
    "bucket_totals",
    "check_same_structure",
    "compute_metrics",
    "example_weights",
    "less_is_better",
    "mean",
    "merge_metrics",
    "on_host",
    "padding_mask",
    "same_shape",
    "split_host_metrics",
    "total",
    "total_value",
    "weigh",
]

if not TYPE_CHECKING:
    __getattr__ = _moved.names_of("metrics")
