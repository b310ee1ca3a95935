"""The early stopping functions, with the signatures of tf.estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.hooks import Hook
from estimator_hooks.early_stopping.criteria import Better, NoImprovement, Rule, ThresholdCrossed
from estimator_hooks.early_stopping.metric_hook import MetricStoppingHook
from estimator_hooks.early_stopping.predicate_hook import StopOnPredicateHook


def make_early_stopping_hook(
    estimator: Any,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = None,
    run_every_steps: int | None = None,
) -> Hook:
    """Returns a hook that stops training when `should_stop_fn()` is true.

    Args:
        estimator: the Estimator that trains.
        should_stop_fn: a function without arguments, called at every interval.
        run_every_secs: the seconds between calls. Default: 60, unless `run_every_steps` is set.
        run_every_steps: the steps between calls. Required with several processes.

    Raises:
        ArgumentTypeError: `estimator` is not an Estimator, or `should_stop_fn` is not a function.
        ArgumentError: both intervals are set.

    Source: `tf.estimator.experimental.make_early_stopping_hook`.
    """
    check_estimator(estimator)
    return StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)


def stop_if_higher_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = None,
    run_every_steps: int | None = None,
    *,
    eval_name: str | None = None,
    restore_best: bool = False,
) -> Hook:
    """Returns a hook that stops training when a metric is higher than a threshold.

    Args:
        estimator: the Estimator that trains. The hook reads its recorded evaluations.
        metric_name: the name of the metric in the evaluation results.
        threshold: the value to exceed.
        eval_dir: the directory of the evaluation. Default: that of the evaluation `eval_name`.
        min_steps: the first step whose evaluations count. Earlier evaluations are ignored.
        run_every_secs: the seconds between checks. Default: 60, unless `run_every_steps` is set.
        run_every_steps: the steps between checks. Required with several processes.
        eval_name: the `name` of the EvalSpec whose evaluations count.
        restore_best: whether training ends with the weights and the model state of the best evaluation, whatever ends
            it. The last checkpoint, the last evaluation and the final export use them. The optimizer state remains that
            of the last step.

    Raises:
        ArgumentTypeError: `estimator` is not an Estimator.
        ArgumentError: both intervals are set, or both `eval_dir` and `eval_name`.
        HookError: the newest evaluation does not have the metric; raised in the run.

    Source: `tf.estimator.experimental.stop_if_higher_hook`.
    """
    rule = ThresholdCrossed(better="higher", threshold=threshold, min_steps=min_steps)
    return _hook(estimator, metric_name, rule, eval_dir, run_every_secs, run_every_steps, eval_name, restore_best)


def stop_if_lower_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = None,
    run_every_steps: int | None = None,
    *,
    eval_name: str | None = None,
    restore_best: bool = False,
) -> Hook:
    """Returns a hook that stops training when a metric is lower than a threshold; see `stop_if_higher_hook`.

    Source: `tf.estimator.experimental.stop_if_lower_hook`.
    """
    rule = ThresholdCrossed(better="lower", threshold=threshold, min_steps=min_steps)
    return _hook(estimator, metric_name, rule, eval_dir, run_every_secs, run_every_steps, eval_name, restore_best)


def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = None,
    run_every_steps: int | None = None,
    *,
    eval_name: str | None = None,
    restore_best: bool = False,
) -> Hook:
    """Returns a hook that stops training when a metric has not increased for a number of steps.

    `max_steps_without_increase` is the number of steps between the best evaluation and a later one that is not better.
    The other arguments are those of `stop_if_higher_hook`.

    Source: `tf.estimator.experimental.stop_if_no_increase_hook`.
    """
    rule = _no_improvement("higher", max_steps_without_increase, min_steps)
    return _hook(estimator, metric_name, rule, eval_dir, run_every_secs, run_every_steps, eval_name, restore_best)


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = None,
    run_every_steps: int | None = None,
    *,
    eval_name: str | None = None,
    restore_best: bool = False,
) -> Hook:
    """Returns a hook that stops training when a metric has not decreased for a number of steps.

    `max_steps_without_decrease` is the number of steps between the best evaluation and a later one that is not better.
    The other arguments are those of `stop_if_higher_hook`.

    Source: `tf.estimator.experimental.stop_if_no_decrease_hook`.
    """
    rule = _no_improvement("lower", max_steps_without_decrease, min_steps)
    return _hook(estimator, metric_name, rule, eval_dir, run_every_secs, run_every_steps, eval_name, restore_best)


def check_estimator(estimator: Any) -> None:
    """Raises ArgumentTypeError if `estimator` is not an Estimator."""
    if not callable(getattr(estimator, "eval_dir", None)):
        raise ArgumentTypeError(f"`estimator` must have type `estimator_core.Estimator`. Got: {type(estimator)}")


def _no_improvement(better: Better, max_steps: Any, min_steps: int) -> NoImprovement:
    name = f"max_steps_without_{'decrease' if better == 'lower' else 'increase'}"
    if isinstance(max_steps, bool) or not isinstance(max_steps, (int, float, np.number)):
        raise ArgumentTypeError(f"{name} must be a number of steps, given: {max_steps!r}.")
    if not max_steps > 0:
        raise ArgumentError(f"{name} must be > 0, given: {max_steps}")
    return NoImprovement(better=better, max_steps=cast("int", max_steps), min_steps=min_steps)


def _hook(
    estimator: Any,
    metric_name: str,
    rule: Rule,
    eval_dir: str | None,
    run_every_secs: float | None,
    run_every_steps: int | None,
    eval_name: str | None,
    restore_best: bool,
) -> Hook:
    check_estimator(estimator)
    if eval_dir is not None and eval_name is not None:
        raise ArgumentError("Only one of `eval_dir` and `eval_name` must be set.")
    return MetricStoppingHook(
        estimator.eval_dir(eval_name) if eval_dir is None else eval_dir,
        metric_name,
        rule,
        run_every_secs=run_every_secs,
        run_every_steps=run_every_steps,
        restore_best=restore_best,
    )
