"""Tests of the names of outputs: what hooks may refer to in each mode, and what a batch may lack (traps 16 and 20)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.builtin_hooks import NanTensorHook

X = np.ones((8, 3), np.float32)
Y = np.zeros(8, np.float32)


def full_batches() -> Any:
    return iter([({"x": X}, Y)] * 3)


def with_a_ragged_batch() -> Any:
    return iter([({"x": X}, Y), ({"x": X}, Y), ({"x": X[:5]}, Y[:5])])


class Holder(ec.Hook):
    """Keeps the values it receives."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Fetch(ec.Hook):
    """Fetches one output and records its shapes."""

    def __init__(self, name: str, seen: list[Any]) -> None:
        self.output, self.seen = name, seen

    def begin(self, run: Any) -> None:
        run.fetch(self.output)

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.seen.append((step, out[self.output].shape))


class Values(ec.Hook):
    """Requests an output of every step."""

    def __init__(self, name: str) -> None:
        self.output, self.seen = name, []

    def begin(self, run: Any) -> None:
        run.follow(self.output)

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        assert len(values[self.output]) == len(steps)
        self.seen.extend(steps)


def model(hooks: Callable[[Any, str], list[Any]] = lambda value, mode: []) -> Callable[..., Any]:
    """Returns a model_fn whose spec has hooks in every mode. A function of an array of the trace and the mode makes
    them.
    """

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        y = features["x"] @ ec.get_variable("w", (3,))
        ec.tensor("errors", y)
        if mode == ec.ModeKeys.TRAIN:
            ec.summary.scalar("of_full_batches" if y.shape[0] == 8 else "of_ragged_batches", jnp.mean(y))
        field = {"train": "training_hooks", "eval": "evaluation_hooks", "infer": "prediction_hooks"}[mode]
        return ec.EstimatorSpec(
            mode,
            predictions={"y": y},
            loss=None if mode == ec.ModeKeys.PREDICT else jnp.mean(y**2),
            train_op=optax.sgd(0.1),
            **{field: hooks(y, mode)},
        )

    return model_fn


def run(estimator: ec.Estimator, mode: str, **arguments: Any) -> Any:
    if mode == "train":
        return estimator.train(full_batches, steps=2, **arguments)
    if mode == "eval":
        return estimator.evaluate(full_batches, **arguments)
    return list(estimator.predict(full_batches, **arguments))


MODES = ["train", "eval", "infer"]


@pytest.mark.parametrize("mode", MODES)
def test_a_hook_that_keeps_a_traced_array_is_named(make_estimator: Any, mode: str) -> None:
    holding = model(lambda value, now: [Holder(value)] if now == mode else [])
    with pytest.raises(ec.EstimatorError, match="hook Holder keeps a traced array in 'value'"):
        run(make_estimator(holding, allow_untrained=True), mode)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_hooks_of_the_spec_may_fetch(make_estimator: Any, mode: str) -> None:
    seen: list[Any] = []
    estimator = make_estimator(model(lambda value, now: [Fetch("errors", seen)] if now == mode else []))
    estimator.train(full_batches, steps=2)
    run(estimator, mode)
    assert {shape for _, shape in seen} == {(8,)}
    traced = estimator.trace_counts
    run(estimator, mode)
    assert estimator.trace_counts == traced


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_hook_may_fetch_a_histogram_that_nobody_writes(make_estimator: Any, mode: str) -> None:
    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        weight = ec.get_variable("weight", (3,), lambda key, shape, dtype: jnp.zeros(shape, dtype))
        errors = features["x"] @ weight - labels
        ec.summary.histogram("spread", errors)
        return ec.EstimatorSpec(mode, loss=jnp.mean(errors**2), train_op=optax.sgd(0.1))

    seen: list[Any] = []
    estimator = make_estimator(model_fn, save_summary_steps=None)
    estimator.train(full_batches, steps=1)
    run(estimator, mode, hooks=[Fetch("spread", seen)])
    assert {shape for _, shape in seen} == {(8,)}


@pytest.mark.parametrize("mode", MODES)
def test_a_fetch_that_no_step_gives_is_refused(make_estimator: Any, mode: str) -> None:
    estimator, seen = make_estimator(model()).train(full_batches, steps=1), list[Any]()

    class Sees(ec.Hook):
        def after_step(self, run: Any, step: int, out: Any) -> None:
            seen.append(step)

    with pytest.raises(ec.EstimatorError, match="no output 'yy'"):
        run(estimator, mode, hooks=[Sees(), Fetch("yy", [])])
    assert seen == [], "refused before the first step"


def test_summaries_may_depend_on_the_shape_of_the_batch(make_estimator: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "estimator_core")
    hook = Values("of_full_batches")
    estimator = make_estimator(model(), log_step_count_steps=1, save_summary_steps=1)
    estimator.train(with_a_ragged_batch, hooks=[hook])
    assert hook.seen == [1, 2]
    assert ["of_full_batches" in row for row in estimator.history.train] == [True, True, False]
    assert len([record for record in caplog.records if "Values" in record.getMessage()]) == 1
    assert len([record for record in caplog.records if "SummarySaverHook: step 3 has no" in record.getMessage()]) == 1


@pytest.mark.parametrize("mode", ["eval", "infer"])
def test_values_of_every_batch_are_handed_over(make_estimator: Any, mode: str) -> None:
    name = "loss" if mode == "eval" else "y"
    hook = Values(name)
    run(make_estimator(model()).train(full_batches, steps=1), mode, hooks=[hook])
    assert hook.seen == [1, 2, 3]


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_a_named_value_that_a_hook_follows_comes_with_every_step(make_estimator: Any, mode: str) -> None:
    """This includes outputs that a step returns only on request: in an evaluation, all except the loss."""
    hook = Values("errors")
    run(make_estimator(model()).train(full_batches, steps=1), mode, hooks=[hook])
    assert hook.seen == ([2, 3] if mode == "train" else [1, 2, 3])


@pytest.mark.parametrize("mode", MODES)
def test_values_whose_shapes_differ_come_in_calls_of_their_own(make_estimator: Any, mode: str) -> None:
    """The last batch is short."""
    shapes: list[Any] = []

    class Follows(Values):
        def on_values(self, run: Any, steps: range, values: Any) -> None:
            shapes.extend((step, value.shape) for step, value in zip(steps, values["y"], strict=True))

    estimator = make_estimator(model()).train(full_batches, steps=1)
    call = {"train": estimator.train, "eval": estimator.evaluate, "infer": estimator.predict}[mode]
    called = call(with_a_ragged_batch, hooks=[Follows("y")])
    assert called is estimator or list(called)
    first = 2 if mode == "train" else 1
    assert shapes == [(first, (8,)), (first + 1, (8,)), (first + 2, (5,))]


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_values_of_examples_are_watched(make_estimator: Any, mode: str) -> None:
    """The step is named, whatever the place of the value in its batch."""
    bad = X.copy()
    bad[5] = np.nan
    estimator = make_estimator(model()).train(full_batches, steps=1)
    call = estimator.train if mode == "train" else estimator.evaluate
    step = 3 if mode == "train" else 2
    with pytest.raises(ec.errors.NanLossDuringTrainingError, match=f"errors is nan at step {step}"):
        call(lambda: iter([({"x": X}, Y), ({"x": bad}, Y), ({"x": X}, Y)]), hooks=[NanTensorHook("errors")])


def test_large_values_that_hooks_follow_are_not_kept_for_long(make_estimator: Any) -> None:
    calls: list[int] = []

    class Follows(Values):
        def on_values(self, run: Any, steps: range, values: Any) -> None:
            calls.append(len(steps))

    def large(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        loss = jnp.mean((features["x"] @ ec.get_variable("w", (3,))) ** 2)
        ec.tensor("large", jnp.full((1 << 20, 4), loss))
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1))

    estimator = make_estimator(large).train(full_batches, steps=1)
    estimator.evaluate(lambda: iter([({"x": X}, Y)] * 20), hooks=[Follows("large")])
    assert sum(calls) == 20
    assert max(calls) <= 4


def test_a_hook_that_follows_costs_one_trace_and_none_for_the_loss(make_estimator: Any) -> None:
    estimator = make_estimator(model()).train(full_batches, steps=1)
    estimator.evaluate(full_batches)
    assert estimator.trace_counts["eval"] == 1
    estimator.evaluate(full_batches, hooks=[Values("loss")])
    assert estimator.trace_counts["eval"] == 1
    other = make_estimator(model()).train(full_batches, steps=1)
    other.evaluate(full_batches, hooks=[Values("errors")])
    assert other.trace_counts["eval"] == 1


def test_metrics_of_training_are_outputs_of_every_step(make_estimator: Any, train_input: Any) -> None:
    hook = Values("mean_prediction")
    estimator = make_estimator(log_step_count_steps=2).train(train_input, hooks=[hook], steps=4)
    assert hook.seen == [1, 2, 3, 4]
    assert all("mean_prediction" in row for row in estimator.history.train)


class FollowsInOrder(ec.Hook):
    """Records the values and the steps of its calls in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[tuple[str, int]] = []

    def begin(self, run: Any) -> None:
        run.follow(self.name)

    def on_values(self, run: Any, steps: range, values: Any) -> None:
        self.calls += [("value", step) for step, _ in zip(steps, values[self.name], strict=True)]

    def next_step(self, step: int) -> int:
        return step + 2

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.calls.append(("step", step))


def test_values_up_to_a_step_come_before_the_hook_is_called_there(make_estimator: Any, train_input: Any) -> None:
    hook = FollowsInOrder("loss")
    make_estimator().train(train_input, hooks=[hook], steps=5)
    values, steps = [("value", step) for step in range(1, 6)], [("step", 2), ("step", 4)]
    assert hook.calls == [*values[:2], steps[0], *values[2:4], steps[1], values[4]]


def test_a_gap_in_the_values_of_every_step_is_told_once_a_hook(
    make_estimator: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Batches of four rows have no `of_full_batches`, so two hooks with four gaps log two lines."""
    caplog.set_level(logging.WARNING, "estimator_core")
    sizes = [8, 4, 8, 4, 8, 4, 8, 4]
    hooks = [FollowsInOrder("of_full_batches"), FollowsInOrder("of_full_batches")]
    make_estimator(model(), save_summary_steps=None).train(
        lambda: [({"x": np.ones((size, 3), np.float32)}, np.ones(size, np.float32)) for size in sizes], hooks=hooks
    )
    for hook in hooks:
        assert [step for what, step in hook.calls if what == "value"] == [1, 3, 5, 7]
    told = [line for line in caplog.messages if "wants values of every step" in line]
    assert len(told) == 2
    assert all("step 2 has no output 'of_full_batches'" in line for line in told)


def test_a_name_to_follow_that_no_step_gives_is_refused(make_estimator: Any, train_input: Any) -> None:
    with pytest.raises(ec.EstimatorError, match=r"hook FollowsInOrder.*no output 'los'\. Did you mean 'loss'"):
        make_estimator().train(train_input, hooks=[FollowsInOrder("los")], steps=1)


class LookAtAccuracy(ec.Hook):
    """Records the kind and the value of the output "accuracy"."""

    def after_create(self, run: Any) -> None:
        self.kind = run.output_kinds["accuracy"]
        run.fetch("accuracy")

    def after_step(self, run: Any, step: int, out: Any) -> None:
        self.shown = np.asarray(out["accuracy"]).tolist()


def with_two_accuracies(kind: str) -> Callable[..., ec.EstimatorSpec]:
    """A model with the summary 7 of this kind and the metric 3, both with the name "accuracy"."""

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        loss = (features["x"] @ ec.get_variable("w", (3,))).mean()
        getattr(ec.summary, kind)("accuracy", "seven" if kind == "text" else loss * 0 + 7.0)
        metrics = {"accuracy": ec.metrics.mean(loss * 0 + 3.0)}
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(0.1), eval_metric_ops=metrics)

    return model_fn


@pytest.mark.parametrize("kind", ["scalar", "histogram"])
def test_a_summary_of_training_is_not_replaced_by_a_metric_of_its_name(make_estimator: Any, kind: str) -> None:
    """Models for TensorFlow write the curve of an accuracy by hand, and the summary must survive."""
    look, estimator = LookAtAccuracy(), make_estimator(with_two_accuracies(kind))
    estimator.train(full_batches, steps=2, hooks=[look])
    assert (look.kind, look.shown) == (kind, 7.0)
    assert estimator.evaluate(full_batches)["accuracy"] == 3.0


@pytest.mark.parametrize("kind", ["histogram", "text"])
def test_a_summary_that_nobody_writes_does_not_hide_a_metric_of_its_name(make_estimator: Any, kind: str) -> None:
    look = LookAtAccuracy()
    estimator = make_estimator(with_two_accuracies(kind), save_summary_steps=None, log_step_count_steps=1)
    estimator.train(full_batches, steps=2, hooks=[look])
    assert (look.kind, look.shown) == ("metric", 3.0)
    assert [row["accuracy"] for row in estimator.history.train] == [3.0, 3.0]
