"""`add_metrics`: returns an Estimator with further evaluation metrics."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from estimator_core import with_model_fn
from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.estimator import Estimator
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec

_log = logging.getLogger("estimator_core")
_ALLOWED = ("features", "labels", "predictions", "config")


def add_metrics(estimator: Estimator, metric_fn: Callable[..., Any]) -> Estimator:
    """Returns a new Estimator with the same model_dir and further evaluation metrics.

    Args:
        estimator: the Estimator to extend. It does not change.
        metric_fn: accepts any of `features, labels, predictions, config` by name and returns a dict of streaming
            metrics. It replaces metrics of the same name, with a warning.

    Raises:
        ArgumentError: metric_fn requires other arguments.

    Example:
        >>> import estimator_core as ec
        >>> def model_fn(features, mode):
        ...     return ec.EstimatorSpec(mode, predictions=features["x"] * ec.get_variable("slope", ()))
        >>> estimator = ec.Estimator(model_fn, "runs/slope")
        >>> ec.add_metrics(estimator, lambda labels: {"label_mean": ec.metrics.mean(labels)}).model_dir
        'runs/slope'

    Source: `tf.estimator.add_metrics`.
    """
    if not isinstance(estimator, Estimator):
        raise ArgumentTypeError(f"`estimator` must have type `ec.Estimator`. Got: {type(estimator)}.")
    if not callable(metric_fn):
        raise ArgumentTypeError(f"metric_fn must be a function, given: {metric_fn!r}.")
    names = list(inspect.signature(metric_fn).parameters)
    unknown = [name for name in names if name not in _ALLOWED]
    if unknown:
        raise ArgumentError(
            f"metric_fn ({getattr(metric_fn, '__qualname__', metric_fn)}) has following not expected args: {unknown}. "
            f"Allowed: {list(_ALLOWED)}."
        )
    inner = estimator.model_fn

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec: EstimatorSpec = inner(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        values = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        before, added = spec.eval_metric_ops or {}, metric_fn(**{name: values[name] for name in names})
        replaced = sorted(set(before) & set(added))
        if replaced:
            _log.warning("add_metrics: the metrics %s of metric_fn replace those of the model.", replaced)
        return replace(spec, eval_metric_ops={**before, **added})

    return with_model_fn(estimator, model_fn)
