"""`TPUEstimatorSpec`: the result of the model_fn of a TPUEstimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import estimator_core as ec
from estimator_backends_tpu.host_call import HostCallHook, named_tensors
from estimator_core.errors import ModelFnError


@dataclass(frozen=True)
class TPUEstimatorSpec:
    """The definition of a model in one mode.

    Args:
        mode: the mode that model_fn was called in.
        predictions, loss, train_op, export_outputs: the same as in `estimator_core.EstimatorSpec`.
        eval_metrics: the pair `(metric_fn, tensors)`. metric_fn is called with the tensors, a list by position or a
            dict by name, and returns streaming metrics by name. The tensors are those of the global batch, all devices
            together.
        scaffold_fn: the function that returns a `Scaffold`.
        host_call: the pair `(fn, tensors)`. fn is called on the host with the tensors of a step as numpy arrays, a list
            by position or a dict by name. Its result, numbers by name or None, is written to the event file.
        training_hooks, evaluation_hooks, prediction_hooks: the hooks of the run.

    Raises:
        ModelFnError: eval_metrics or host_call have another form. `EstimatorSpec` checks the values that the mode
            requires.

    Source: `tf.compat.v1.estimator.tpu.TPUEstimatorSpec`.
    """

    mode: str
    _: KW_ONLY
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metrics: tuple[Callable[..., Mapping[str, Any]], Any] | None = None
    export_outputs: Mapping[str, Any] | None = None
    scaffold_fn: Callable[[], Any] | None = None
    host_call: tuple[Callable[..., Any], Any] | None = None
    training_hooks: Sequence[Any] = ()
    evaluation_hooks: Sequence[Any] = ()
    prediction_hooks: Sequence[Any] = ()

    def __post_init__(self) -> None:
        for name in ("eval_metrics", "host_call"):
            _check_call(name, getattr(self, name))

    def as_estimator_spec(self, *, host_call_every_n_steps: int = 1) -> ec.EstimatorSpec:
        """Returns the same as an `EstimatorSpec`. Call it inside model_fn.

        Args:
            host_call_every_n_steps: the steps between two calls of host_call.

        Raises:
            ModelFnError: the mode lacks a required value, or metric_fn returns something other than metrics.
        """
        hooks: tuple[Any, ...] = ()
        if self.host_call is not None and self.mode != ec.ModeKeys.PREDICT:
            function, tensors = self.host_call
            names = named_tensors(tensors)
            hooks = (HostCallHook(function, names, every_n_steps=host_call_every_n_steps),)
        return ec.EstimatorSpec(
            self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=self._metrics(),
            export_outputs=self.export_outputs,
            training_hooks=(*self.training_hooks, *hooks),
            evaluation_hooks=(*self.evaluation_hooks, *hooks),
            prediction_hooks=self.prediction_hooks,
            scaffold=None if self.scaffold_fn is None else self.scaffold_fn(),
        )

    def _metrics(self) -> Mapping[str, Any] | None:
        if self.eval_metrics is None or self.mode != ec.ModeKeys.EVAL:
            return None
        metric_fn, tensors = self.eval_metrics
        metrics = metric_fn(**tensors) if isinstance(tensors, Mapping) else metric_fn(*tensors)
        if not isinstance(metrics, Mapping):
            raise ModelFnError(
                f"TPUEstimatorSpec.eval_metrics: metric_fn must return a dict of streaming metrics such as "
                f"ec.metrics.mean(...), given: {metrics!r}."
            )
        return metrics


def _check_call(name: str, call: Any) -> None:
    if call is None:
        return
    if not (isinstance(call, (tuple, list)) and len(call) == 2 and callable(call[0])):
        raise ModelFnError(f"TPUEstimatorSpec.{name} must be a pair (function, tensors), given: {call!r}.")
    if not isinstance(call[1], (list, tuple, Mapping)):
        raise ModelFnError(f"TPUEstimatorSpec.{name}: the tensors must be a list or a dict, given: {call[1]!r}.")
