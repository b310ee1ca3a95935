"""An Estimator with its inputs and settings, run by schedule names."""

from __future__ import annotations

import inspect
import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.estimator import Estimator
from estimator_core.specs import (
    EvalSpec,
    TrainSpec,
    check_exporters,
    check_hooks,
    check_input_fn,
    check_listeners,
    check_steps,
)
from estimator_core.train_eval import Evaluations, new_checkpoints, rehearse, train
from estimator_experiment.evaluations import evaluations_of

_log = logging.getLogger("estimator_core")


class Experiment:
    """Everything that a training job needs. Its methods are the schedules of `learn_runner.run`.

    Args:
        estimator: the Estimator.
        train_input_fn, eval_input_fn: the inputs.
        eval_metrics: must be None, because metrics belong to model_fn.
        train_steps: the global step at which training ends. None: training ends with the input.
        eval_steps: the number of batches of an evaluation. None (the default): the whole input. (tf.contrib.learn:
            100.)
        train_hooks, eval_hooks: the hooks. `train_monitors` is the old name of `train_hooks`.
        eval_delay_secs: the seconds to wait before `evaluate` and `continuous_eval` in a separate process.
        continuous_eval_throttle_secs: the minimum number of seconds between the starts of two evaluations of
            `continuous_eval`.
        min_eval_frequency: the number of steps between evaluations in `train_and_evaluate`. 0: only at the end. None:
            at every checkpoint. An evaluation that is due at the step of a checkpoint evaluates that checkpoint.
        export_strategies: exporters, which run after evaluations of checkpoints.
        train_steps_per_iteration: the number of steps of one round of `continuous_train_and_eval`, which ends at a
            multiple of this number. Default: a tenth of train_steps, or 1000.
        checkpoint_and_export: whether to evaluate and export at each checkpoint, into `eval_intermediate_export`.
        saving_listeners: the checkpoint listeners.

    Source: `tf.contrib.learn.Experiment`.
    """

    def __init__(
        self,
        estimator: Estimator,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: None = None,
        train_steps: int | None = None,
        eval_steps: int | None = None,
        train_monitors: Sequence[Any] | None = None,
        eval_hooks: Sequence[Any] | None = None,
        *,
        train_hooks: Sequence[Any] | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Sequence[Any] | None = None,
    ) -> None:
        if not isinstance(estimator, Estimator):
            raise ArgumentTypeError(f"`estimator` must have type `ec.Estimator`. Got: {type(estimator)}.")
        if eval_metrics is not None:
            raise ArgumentError(
                "`eval_metrics` must be None: return eval_metric_ops from model_fn, or use ec.add_metrics."
            )
        check_input_fn(train_input_fn)
        check_input_fn(eval_input_fn)
        for name, value in (
            ("train_steps", train_steps),
            ("eval_steps", eval_steps),
            ("train_steps_per_iteration", train_steps_per_iteration),
        ):
            check_steps(name, value)
        if min_eval_frequency is not None and min_eval_frequency != 0:
            check_steps("min_eval_frequency", min_eval_frequency)
        for name, value in (
            ("eval_delay_secs", eval_delay_secs),
            ("continuous_eval_throttle_secs", continuous_eval_throttle_secs),
        ):
            if not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0:
                raise ArgumentError(f"Must specify {name} >= 0, given: {value!r}.")
        self._estimator = estimator
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._train_steps, self._eval_steps = train_steps, eval_steps
        self._train_hooks = [*check_hooks(train_monitors, "train_monitors"), *check_hooks(train_hooks, "train_hooks")]
        self._eval_hooks = check_hooks(eval_hooks, "eval_hooks")
        self._eval_delay_secs, self._throttle_secs = eval_delay_secs, continuous_eval_throttle_secs
        self._min_eval_frequency = min_eval_frequency
        self._exporters = check_exporters(export_strategies)
        self._steps_per_iteration = train_steps_per_iteration
        self._checkpoint_and_export = checkpoint_and_export
        self._listeners = check_listeners(saving_listeners)

    @property
    def estimator(self) -> Estimator:
        """The Estimator."""
        return self._estimator

    @property
    def train_input_fn(self) -> Callable[..., Any]:
        """The training input."""
        return self._train_input_fn

    @property
    def eval_input_fn(self) -> Callable[..., Any]:
        """The evaluation input."""
        return self._eval_input_fn

    @property
    def train_hooks(self) -> list[Any]:
        """The hooks of the training runs."""
        return list(self._train_hooks)

    @property
    def eval_hooks(self) -> list[Any]:
        """The hooks of the evaluations."""
        return list(self._eval_hooks)

    @property
    def train_steps(self) -> int | None:
        """The global step at which training ends."""
        return self._train_steps

    @property
    def eval_steps(self) -> int | None:
        """The number of batches of an evaluation."""
        return self._eval_steps

    def extend_train_hooks(self, hooks: Sequence[Any]) -> None:
        """Adds hooks to later training runs."""
        self._train_hooks.extend(check_hooks(hooks, "hooks"))

    def reset_export_strategies(self, export_strategies: Any = None) -> Any:
        """Replaces the exporters and returns the previous ones."""
        old, self._exporters = self._exporters, check_exporters(export_strategies)
        return old

    def train(self, delay_secs: float | None = None) -> Estimator:
        """Trains up to `train_steps`. A worker first waits `5 * task_id` seconds, at most 60."""
        self._sleep(min(60.0, 5.0 * (self._estimator.config.task_id or 0)) if delay_secs is None else delay_secs)
        return self._estimator.train(
            self._train_input_fn, hooks=self._train_hooks, max_steps=self._train_steps, saving_listeners=self._listeners
        )

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> dict[str, Any]:
        """Evaluates once. Results are written to `eval_one_pass` unless a name is given."""
        self._sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        return self._evaluate("one_pass" if name is None else name)

    def continuous_eval(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: Callable[..., bool] | None = None,
        name: str = "continuous",
    ) -> dict[str, Any] | None:
        """Evaluates each new checkpoint until `train_steps` has been evaluated or the predicate returns False.

        The evaluator of a cluster also ends when training has ended earlier, for example through early stopping.
        """
        return self._continuous_eval(
            self._eval_input_fn,
            delay_secs,
            throttle_delay_secs,
            evaluate_checkpoint_only_once,
            continuous_eval_predicate_fn,
            name,
            self._exporters,
        )

    def continuous_eval_on_train_data(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        continuous_eval_predicate_fn: Callable[..., bool] | None = None,
        name: str = "continuous_on_train_data",
    ) -> dict[str, Any] | None:
        """Evaluates each new checkpoint, as `continuous_eval` does, but on training data and without exports."""
        return self._continuous_eval(
            self._train_input_fn, delay_secs, throttle_delay_secs, True, continuous_eval_predicate_fn, name, ()
        )

    def train_and_evaluate(self) -> tuple[dict[str, Any] | None, list[Any]]:
        """Trains, evaluates in between and at the end, and exports evaluated checkpoints. Returns `(metrics, exports)`.

        If TF_CONFIG names a chief, the evaluator is a separate process, which evaluates the checkpoints. Chief and
        workers train and return `(None, [])`.
        """
        config = self._estimator.config
        if config.task_type == "evaluator":
            return self.continuous_eval(), []
        if "chief" in config.cluster.cluster:
            self.train(delay_secs=0)
            return None, []
        train_spec, spec = self.specs()
        rehearse(self._estimator, train_spec, [spec])
        every = None if self._checkpoint_and_export else self._min_eval_frequency
        evaluations = evaluations_of(self._estimator, spec, every)
        train(self._estimator, train_spec, evaluations)
        evaluations.finish()
        return evaluations.metrics[spec.name], evaluations.exports[spec.name]

    def specs(self) -> tuple[TrainSpec, EvalSpec]:
        """Returns the specs of `train_and_evaluate`."""
        train_spec = TrainSpec(
            self._train_input_fn, max_steps=self._train_steps, hooks=self._train_hooks, saving_listeners=self._listeners
        )
        name = "intermediate_export" if self._checkpoint_and_export else None
        return train_spec, self._spec(self._eval_input_fn, name, self._exporters)

    def continuous_train_and_eval(
        self, continuous_eval_predicate_fn: Callable[..., bool] | None = None
    ) -> tuple[dict[str, Any] | None, list[Any]]:
        """Alternates training and an evaluation, until `train_steps` or until the predicate returns False.

        A training has `train_steps_per_iteration` steps. A restart after a kill has the same rounds, and repeats the
        missing evaluation of the last round.
        """
        per_round = self._steps_per_iteration or (max(1, self._train_steps // 10) if self._train_steps else 1000)
        results = self._results_of_last_round(per_round)
        while (self._train_steps is None or (results or {}).get("global_step", 0) < self._train_steps) and _goes_on(
            continuous_eval_predicate_fn, results, None
        ):
            self._estimator.train(
                self._train_input_fn,
                hooks=self._train_hooks,
                max_steps=self._next_stop(per_round, results),
                saving_listeners=self._listeners,
            )
            results = self._evaluate(None)
            if self._estimator.stop_reason == "the input is empty":
                break
        return results, self._export(results)

    def _results_of_last_round(self, per_round: int) -> dict[str, Any] | None:
        """Returns the results of a round whose last step an earlier call made; None within a round.

        A kill after the last save of a round prevents its end and its evaluation. The processes of a run know only the
        step, so the evaluation is repeated even if it was done.
        """
        done = self._done()
        if not done or (done % per_round and done != self._train_steps):
            return None
        self._estimator.train(
            self._train_input_fn, hooks=self._train_hooks, max_steps=done, saving_listeners=self._listeners
        )
        return self._evaluate(None)

    def test(self) -> tuple[dict[str, Any], list[Any]]:
        """Tests whether the parts fit each other, with one training step, one evaluation batch and an export."""
        self._estimator.train(self._train_input_fn, hooks=self._train_hooks, steps=1, saving_listeners=self._listeners)
        results = self._estimator.evaluate(self._eval_input_fn, steps=1, hooks=self._eval_hooks, name="one_pass")
        return results, self._export(results, "one_pass")

    def run_std_server(self) -> None:
        """Raises an error, because there are no parameter servers.

        Raises:
            ArgumentError: always. The message names the replacement.
        """
        raise ArgumentError(
            "There is no parameter server: shard the state over all processes with RunConfig(mesh=..., "
            "partition_rules=...), and start no 'ps' tasks."
        )

    def _evaluate(self, name: str | None) -> dict[str, Any]:
        return self._estimator.evaluate(self._eval_input_fn, steps=self._eval_steps, hooks=self._eval_hooks, name=name)

    def _export(self, results: dict[str, Any] | None, name: str | None = None) -> list[Any]:
        """Exports the newest checkpoint as `train_and_evaluate` exports its last one: in one process, also to a URL."""
        if not self._exporters or self._estimator.latest_checkpoint() is None:
            return []
        evaluations = Evaluations(self._estimator, [self._spec(self._eval_input_fn, name, self._exporters)])
        if results is not None:
            evaluations.metrics[name] = results
        evaluations.finish()
        return evaluations.exports[name]

    def _spec(self, input_fn: Callable[..., Any], name: str | None, exporters: Sequence[Any]) -> EvalSpec:
        return EvalSpec(input_fn, steps=self._eval_steps, name=name, hooks=self._eval_hooks, exporters=exporters)

    def _continuous_eval(
        self,
        input_fn: Any,
        delay_secs: float | None,
        throttle_secs: float | None,
        only_once: bool,
        predicate: Callable[..., bool] | None,
        name: str,
        exporters: Sequence[Any],
    ) -> dict[str, Any] | None:
        self._sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        throttle = self._throttle_secs if throttle_secs is None else throttle_secs
        last_step = math.inf if self._train_steps is None else self._train_steps
        results: dict[str, Any] | None = None
        evaluations = Evaluations(self._estimator, [self._spec(input_fn, name, exporters)])
        if not only_once:
            _log.info("continuous_eval: a checkpoint has the same results each time, so each is evaluated once.")
        beside = self._estimator.config.task_type == "evaluator"
        found = new_checkpoints(self._estimator, stop=lambda step: step >= last_step, with_run=beside)
        for path, step in found:
            began = time.monotonic()
            if not _goes_on(predicate, results, path):
                break
            if not evaluations.of_checkpoint(path, final=step >= last_step):
                continue
            results = evaluations.metrics[name]
            if step < last_step:
                self._sleep(throttle - (time.monotonic() - began))
        else:
            if beside:
                evaluations.export_final()  # training may have ended earlier
        evaluations.wait()
        return results

    def _next_stop(self, per_round: int, results: dict[str, Any] | None) -> int:
        done = self._done() if results is None else int(results["global_step"])
        end = (done // per_round + 1) * per_round  # independent of the step at which a kill stopped the round
        return end if self._train_steps is None else min(end, self._train_steps)

    def _done(self) -> int:
        newest = self._estimator.latest_checkpoint()
        return 0 if newest is None else int(newest.rpartition("/")[2])

    @staticmethod
    def _sleep(seconds: float) -> None:
        if seconds > 0:
            _log.info("Waiting %.1f seconds.", seconds)
            time.sleep(seconds)


def _goes_on(predicate: Callable[..., bool] | None, results: dict[str, Any] | None, path: str | None) -> bool:
    if predicate is None:
        return True
    return predicate(results, path) if len(inspect.signature(predicate).parameters) > 1 else predicate(results)
