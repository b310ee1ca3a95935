"""Streaming metrics: pytrees that merge exactly and compute at the end."""

from estimator_core._metrics.base import Metric, TotalsMetric
from estimator_core._metrics.example_weights import applying_example_weights, example_weights
from estimator_core._metrics.mean import Mean, accuracy, mean
from estimator_core._metrics.merging import check_same_structure, compute_metrics, merge_metrics, split_host_metrics
from estimator_core._metrics.on_host import HostChunk, HostMetric, on_host
from estimator_core._metrics.totals import bucket_totals, merge_totals, total, total_value
from estimator_core._metrics.weighting import fit_weights, padding_mask, same_shape, weigh

__all__ = [
    "HostChunk",
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
    "fit_weights",
    "mean",
    "merge_metrics",
    "merge_totals",
    "on_host",
    "padding_mask",
    "same_shape",
    "split_host_metrics",
    "total",
    "total_value",
    "weigh",
]
