"""`train_and_evaluate`: one training run with its evaluations and exports."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from estimator_core._cluster import TaskType
from estimator_core._continuous_eval import evaluate_continuously, new_checkpoints
from estimator_core._estimator_internals import check_slices, rehearsal, rehearse, train_within, training_batches
from estimator_core._evaluations import Evaluations
from estimator_core._loop.checkpointing import has_policy
from estimator_core._loop.hook_calls import has_state
from estimator_core.errors import ArgumentError, ArgumentTypeError, InputError
from estimator_core.estimator import Estimator
from estimator_core.specs import EvalSpec, TrainSpec

__all__ = [
    "Evaluations",
    "check_specs",
    "new_checkpoints",
    "rehearsal",
    "rehearse",
    "train",
    "train_and_evaluate",
    "training_batches",
]

_log = logging.getLogger("estimator_core")


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec | Sequence[EvalSpec]
) -> tuple[Any, Any]:
    """Trains, evaluates and exports at every checkpoint.

    It also evaluates and exports at the end, whatever ended training.

    Evaluation uses the state in memory and does not advance the training input. It does not need a checkpoint, so
    `EvalSpec(every_steps=...)` can evaluate more often. A run that has already ended is evaluated and exported once
    more.

    Args:
        estimator: the Estimator.
        train_spec: a TrainSpec.
        eval_spec: an EvalSpec, or several with different names.

    Returns:
        `(metrics, exports)`: the metrics of the last evaluation, and the newest path that each exporter wrote in this
        call (None if it wrote nothing), in order. With several EvalSpecs, both are dicts by name (None is the key of
        the unnamed one).

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used; raised before anything is done.
        EstimatorError: a plugin found a fault that would stop the run later; raised before anything is written. For
            example, estimator-experiment tries inputs, model and exports.

    Source: `tf.estimator.train_and_evaluate`.
    """
    specs = check_specs(estimator, train_spec, eval_spec)
    if estimator.config.task_type == "evaluator":
        return _as_asked(evaluate_continuously(estimator, specs, max_steps=train_spec.max_steps), eval_spec)
    rehearse(estimator, train_spec, specs)
    evaluations = Evaluations(estimator, specs)
    if TaskType.CHIEF in estimator.config.cluster.cluster:  # a separate process evaluates; a master evaluates itself
        if any(spec.every_steps for spec in specs):
            _log.warning(
                "EvalSpec.every_steps has no effect here: TF_CONFIG names a chief, so the evaluator is a separate "
                "process, which sees only checkpoints."
            )
        train_within(estimator, train_spec, None)
        return _as_asked(evaluations, eval_spec)
    train(estimator, train_spec, evaluations)
    evaluations.finish()
    return _as_asked(evaluations, eval_spec)


def train(estimator: Estimator, spec: TrainSpec, evaluations: Evaluations) -> None:
    """Trains and evaluates at checkpoints. This is `train_and_evaluate` without its checks and its final evaluation.

    Args:
        estimator: the Estimator.
        spec: the TrainSpec.
        evaluations: the evaluations, which are called at every checkpoint. The caller must call their `finish()` after
            training has ended.

    Raises:
        InputError: the training input had no batches, and there is no checkpoint of an earlier run.
    """
    train_within(estimator, spec, evaluations)
    if estimator.latest_checkpoint() is None:
        raise InputError(
            "Nothing was trained, so there is nothing to evaluate: the training input had no batch "
            f"({estimator.stop_reason})."
        )


def check_specs(estimator: object, train_spec: object, eval_spec: object) -> list[EvalSpec]:
    """Returns the EvalSpecs as a list. Refuses arguments that `train_and_evaluate` cannot use.

    Args:
        estimator: see `train_and_evaluate`.
        train_spec: see `train_and_evaluate`.
        eval_spec: see `train_and_evaluate`.

    Raises:
        ArgumentError, ArgumentTypeError: an argument cannot be used, or the specs do not fit together.

    Example:
        >>> check_specs(None, None, None)
        Traceback (most recent call last):
        estimator_core.errors.ArgumentTypeError: `estimator` must have type `ec.Estimator`. Got: <class 'NoneType'>.
    """
    if not isinstance(estimator, Estimator):
        raise ArgumentTypeError(f"`estimator` must have type `ec.Estimator`. Got: {type(estimator)}.")
    if not isinstance(train_spec, TrainSpec):
        raise ArgumentTypeError(f"`train_spec` must have type `ec.TrainSpec`. Got: {type(train_spec)}.")
    specs: list[Any] = list(eval_spec) if isinstance(eval_spec, (list, tuple)) else [eval_spec]
    if not specs or not all(isinstance(spec, EvalSpec) for spec in specs):
        raise ArgumentTypeError(
            f"`eval_spec` must have type `ec.EvalSpec`, or be a list of them. Got: {type(eval_spec)}."
        )
    names = [spec.name for spec in specs]
    if len(set(names)) != len(names):
        raise ArgumentError(
            f"Several EvalSpecs must have different names, since each has its own directory; given: {names}."
        )
    exporters = [exporter.name for spec in specs for exporter in spec.exporters]
    if len(set(exporters)) != len(exporters):
        raise ArgumentError(
            "`exporters` must have unique names over all EvalSpecs, since each has its own directory. All exporter "
            f"names: {exporters}."
        )
    if not has_policy(estimator.config):
        raise ArgumentError(
            "train_and_evaluate evaluates at checkpoints. Please set one of the RunConfig.save_checkpoints_steps or "
            "RunConfig.save_checkpoints_secs."
        )
    remembering = {id(hook) for hook in train_spec.hooks if has_state(hook)}
    for hook in (hook for spec in specs for hook in spec.hooks if id(hook) in remembering):
        raise ArgumentError(
            f"A {type(hook).__name__} is in the hooks of both TrainSpec and EvalSpec, but its state belongs to one "
            "call. Give each spec its own hook."
        )
    for spec in specs:
        check_slices(estimator, spec)
    return specs


def _as_asked(evaluations: Evaluations, eval_spec: object) -> tuple[Any, Any]:
    if isinstance(eval_spec, EvalSpec):
        return evaluations.metrics.get(eval_spec.name), evaluations.exports[eval_spec.name]
    return dict(evaluations.metrics), dict(evaluations.exports)
