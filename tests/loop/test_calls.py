"""Tests of the arguments and results of train, evaluate and predict."""

from __future__ import annotations

import itertools
import json
import tracemalloc
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._loop.device_state import DeviceState
from estimator_core._loop.run import LoopRun


class StopAfter(ec.Hook):
    def __init__(self, step: int) -> None:
        self.step = step

    def next_step(self, step: int) -> int | None:
        return step + 1

    def after_step(self, run: Any, step: int, out: Any) -> None:
        if step >= self.step:
            run.request_stop("enough")


def test_steps_add_up_and_max_steps_is_absolute(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator()
    estimator.train(train_input, steps=4).train(train_input, steps=4)
    assert estimator.latest_checkpoint().endswith("/8")
    log: list[Any] = []
    estimator.train(lambda: log.append("input_fn called"), max_steps=8)
    assert log == []
    assert estimator.stop_reason == "max_steps (8) was reached before"
    assert make_estimator().train(train_input, max_steps=9).latest_checkpoint().endswith("/9")


def test_a_finished_run_names_the_hyperparameters_that_it_was_not_trained_with(
    make_estimator: Any, train_input: Any
) -> None:
    first = {"rate": 0.1, "units": (3, 4), "nan": float("nan"), "names": {"a", "b"}, "fn": lambda: 0}
    make_estimator(params=first).train(train_input, max_steps=4)
    same = make_estimator(params={**first, "fn": lambda: 1}).train(train_input, max_steps=4)
    assert same.stop_reason == "max_steps (4) was reached before"
    other = make_estimator(params={"rate": 0.5, "units": [3, 5], "more": 1}).train(train_input, max_steps=4)
    assert other.stop_reason == (
        "max_steps (4) was reached before, with other hyperparameters: rate was 0.1 and is 0.5, "
        "units was [3, 4] and is [3, 5], nan was NaN and is not set, "
        'names was ["a", "b"] and is not set, more was not set and is 1. Nothing was trained with the new ones. '
        "To train with them, choose another model_dir, or more steps to continue this run"
    )
    assert make_estimator(params={"rate": 0.5}).train(train_input, max_steps=5).stop_reason == "reached step 5"


def test_a_run_that_continues_tells_which_hyperparameters_changed(
    make_estimator: Any, train_input: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="estimator_core")
    for rate, max_steps in ((0.1, 2), (0.1, 4), (0.5, 6)):
        assert "other hyperparameters" not in caplog.text
        make_estimator(params={"rate": rate}).train(train_input, max_steps=max_steps)
    assert "Training continues from step 4 with other hyperparameters: rate was 0.1 and is 0.5." in caplog.text


def test_a_finished_run_compares_nested_hyperparameters_in_any_order_and_shows_where_they_differ(
    make_estimator: Any, train_input: Any
) -> None:
    widths = {f"layer_{number}": number for number in range(20)}
    make_estimator(params={"widths": widths}).train(train_input, max_steps=4)
    turned = make_estimator(params={"widths": dict(reversed(widths.items()))}).train(train_input, max_steps=4)
    assert turned.stop_reason == "max_steps (4) was reached before"
    other = make_estimator(params={"widths": {**widths, "layer_9": 10}}).train(train_input, max_steps=4)
    assert 'layer_8": 8, "layer_9": 9} and is ...' in other.stop_reason
    assert '"layer_9": 10}. Nothing was trained' in other.stop_reason


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (
            [{"max_steps": 3}, {"max_steps": 25}],
            [0, 3, 13, 23, 25],
        ),  # case 47: the cadence counts from the step of the start
        ([{"max_steps": 20}], [0, 10, 20]),
        ([{"steps": 5}], [0, 5]),
    ],
)
def test_checkpoint_steps(
    make_estimator: Any, train_input: Any, steps_saved: Any, calls: Any, expected: list[int]
) -> None:
    for call in calls:
        make_estimator(keep_checkpoint_max=None).train(train_input, **call)
    assert steps_saved(make_estimator()) == expected


@pytest.mark.parametrize(("keep", "expected"), [(2, [6, 7]), (0, list(range(8))), (None, list(range(8)))])
def test_retention(
    make_estimator: Any, train_input: Any, steps_saved: Any, keep: int | None, expected: list[int]
) -> None:
    estimator = make_estimator(keep_checkpoint_max=keep, save_checkpoints_steps=1).train(train_input, max_steps=7)
    assert steps_saved(estimator) == expected  # case 51


def test_request_stop_saves_where_it_stopped(make_estimator: Any, train_input: Any, steps_saved: Any) -> None:
    estimator = make_estimator().train(train_input, hooks=[StopAfter(7)], max_steps=100)
    assert steps_saved(estimator) == [0, 7]  # case 52
    assert estimator.stop_reason == "enough"


def test_no_checkpoints_when_switched_off(
    make_estimator: Any, train_input: Any, eval_input: Any, steps_saved: Any
) -> None:
    estimator = make_estimator(save_checkpoints_steps=None).train(train_input, steps=3)
    assert steps_saved(estimator) == []
    assert estimator.evaluate(eval_input)["global_step"] == 3  # the state in memory
    assert estimator.train(train_input, steps=2).evaluate(eval_input)["global_step"] == 5


def test_an_empty_input_makes_no_step(make_estimator: Any, caplog: pytest.LogCaptureFixture) -> None:
    estimator = make_estimator().train(lambda: iter([]))
    assert "made no steps" in caplog.text
    assert estimator.stop_reason == "the input is empty"


def test_loss_is_the_mean_over_batches_unless_asked_for_examples(make_estimator: Any, tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        bias = ec.get_variable("b", (), lambda key, shape, dtype: np.zeros(shape, dtype))
        return ec.EstimatorSpec(mode, loss=((features + bias) ** 2).mean(), train_op=__import__("optax").sgd(0.0))

    data = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    for kind, batch_size, expected in (("batch_mean", 3, 31 / 3), ("batch_mean", 2, 7.5), ("example_mean", 3, 7.5)):
        estimator = ec.Estimator(
            model_fn,
            config=ec.RunConfig(model_dir=str(tmp_path / f"{kind}{batch_size}"), eval_loss=kind, default_hooks=False),
        )
        estimator.train(lambda: iter([data]), steps=1)
        input_fn = ec.inputs.numpy_input_fn(data, batch_size=batch_size, num_epochs=1, shuffle=False)
        assert estimator.evaluate(input_fn)["loss"] == pytest.approx(expected)  # case 50: 10.3333


def test_evaluate_counts_every_example_once(make_estimator: Any, train_input: Any, data: Any) -> None:
    estimator = make_estimator().train(train_input, steps=3)
    results = [
        estimator.evaluate(
            ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=size, num_epochs=1, shuffle=False)
        )["mean_prediction"]
        for size in (1, 7, 16, 40, 64)
    ]
    assert results == pytest.approx([results[0]] * 5, rel=1e-6)
    padded = ec.inputs.numpy_input_fn({"x": data.x}, data.y, batch_size=16, num_epochs=1, shuffle=False, ragged="pad")
    assert estimator.evaluate(padded)["mean_prediction"] == pytest.approx(results[0], rel=1e-6)


def test_evaluate_writes_events_and_records(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make_estimator().train(train_input, steps=3)
    metrics = estimator.evaluate(eval_input, name="held_out", steps=2)
    assert list(metrics) == ["global_step", "loss", "mean_prediction"]
    assert estimator.eval_dir("held_out").endswith("eval_held_out")
    record = json.loads((Path(estimator.eval_dir("held_out")) / "metrics.jsonl").read_text())
    assert record["global_step"] == 3
    assert record["metrics"]["loss"] == pytest.approx(metrics["loss"])
    assert ec.read_eval_metrics(estimator.eval_dir("held_out"))[3]["loss"] == pytest.approx(metrics["loss"])


def test_predict_gives_examples_or_batches(make_estimator: Any, train_input: Any, eval_input: Any, data: Any) -> None:
    estimator = make_estimator().train(train_input, steps=3)
    rows = list(estimator.predict(eval_input))
    assert len(rows) == 40
    assert set(rows[0]) == {"y", "twice"}
    assert rows[0]["y"].shape == ()
    whole = list(estimator.predict(eval_input, predict_keys=["y"], yield_single_examples=False))
    assert [batch["y"].shape for batch in whole] == [(16,), (16,), (8,)]
    assert np.array_equal(np.concatenate([batch["y"] for batch in whole]), [row["y"] for row in rows])
    values = estimator.variables
    np.testing.assert_allclose([row["y"] for row in rows], data.x @ values["w"] + values["b"], rtol=1e-5)


@pytest.mark.parametrize("batches_per_dispatch", [1, 3])
@pytest.mark.parametrize("name", ["twice", "half", "first", "none", "bare"])
def test_predictions_that_are_not_as_many_as_examples_are_refused(
    tmp_path: Path, name: str, batches_per_dispatch: int
) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = features["x"] * ec.get_variable("w", (), jax.nn.initializers.ones)
        forms = {"half": y[::2], "first": y[:1], "none": y[:0]}
        wrong = forms.get(name, jnp.concatenate([y, y]))
        return ec.EstimatorSpec(mode, predictions=wrong if name == "bare" else {name: wrong, "y": wrong})

    data = np.arange(10, dtype=np.float32)

    def batches() -> Any:
        return iter([{"x": data[:4]}, {"x": data[4:8]}, {"x": data[8:]}])

    config = ec.RunConfig(str(tmp_path), batches_per_dispatch=batches_per_dispatch, allow_untrained=True)
    estimator = ec.Estimator(model_fn, config=config)
    size = {"half": 2, "first": 1, "none": 0}.get(name, 8)
    told = rf"{'predictions' if name == 'bare' else name} has {size} predictions for a batch of 4 examples"
    advice = "Use" if name == "bare" else "Leave such predictions out with predict_keys, or use"
    with pytest.raises(ec.errors.ModelFnError, match=rf"^{told}: .*\. {advice} yield_single_examples=False"):
        next(estimator.predict(batches))
    assert len(list(estimator.predict(batches, yield_single_examples=False))) == 3


def test_keys_of_predictions_may_be_pairs_and_none_asks_for_all(tmp_path: Path) -> None:
    """A head made of several heads names its predictions by (head, key)."""

    def model_fn(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
        y = features["x"] * ec.get_variable("w", (), jax.nn.initializers.ones)
        found = {("first", "y"): y, ("second", "y"): -y}
        return ec.EstimatorSpec(mode, predictions=found, loss=jnp.mean(y), train_op=optax.sgd(0.0))

    batches = [{"x": np.arange(2, dtype=np.float32)}]
    estimator = ec.Estimator(model_fn, model_dir=str(tmp_path)).train(lambda: batches, steps=1)
    for single in (True, False):
        for keys, expected in (([("second", "y")], {("second", "y")}), ([], {("first", "y"), ("second", "y")})):
            row = next(estimator.predict(lambda: batches, predict_keys=keys, yield_single_examples=single))
            assert set(row) == expected
            iterated = estimator.predict(lambda: batches, predict_keys=iter(keys), yield_single_examples=single)
            assert set(next(iterated)) == expected
    with pytest.raises(ec.errors.ArgumentError, match=r"\('third', 'y'\).*do not exist"):
        next(estimator.predict(lambda: batches, predict_keys=[("third", "y")]))


def test_predict_is_lazy_and_keeps_its_snapshot(make_estimator: Any, train_input: Any, data: Any) -> None:
    opened: list[int] = []

    def input_fn() -> Any:
        opened.append(1)
        return iter([{"x": data.x[:8]}, {"x": data.x[:8]}, {"x": data.x[:8]}, {"x": data.x[:8]}, {"x": data.x[:8]}])

    estimator = make_estimator().train(train_input, steps=3)
    predictions = estimator.predict(input_fn, yield_single_examples=False)
    assert opened == []
    first = next(predictions)["y"]
    estimator.train(train_input, steps=5)  # trap 22: donation must not reach the generator's weights
    rest = [batch["y"] for batch in predictions]
    assert all(np.array_equal(first, other) for other in rest)
    assert not np.array_equal(next(estimator.predict(input_fn, yield_single_examples=False))["y"], first)


def test_two_predictions_interleave(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    estimator = make_estimator().train(train_input, steps=3)
    one, other = estimator.predict(eval_input), estimator.predict(eval_input)
    assert all(a["y"] == b["y"] for a, b in zip(one, other, strict=True))


def test_an_abandoned_prediction_leaves_no_thread(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    import threading

    before = set(threading.enumerate())
    predictions = make_estimator(prefetch=4).train(train_input, steps=3).predict(eval_input)
    next(predictions)
    predictions.close()
    assert [thread for thread in threading.enumerate() if thread not in before and thread.is_alive()] == []


def test_variables_are_copies(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator().train(train_input, steps=2)
    values = estimator.variables
    values["w"][:] = 99
    assert not np.array_equal(estimator.variables["w"], values["w"])
    assert estimator.get_variable_names() == ["b", "w"]
    kept = estimator.get_variable_value("w").copy()
    estimator.train(train_input, steps=2)
    assert not np.array_equal(estimator.get_variable_value("w"), kept)


def test_one_variable_is_copied_alone(make_estimator: Any, train_input: Any) -> None:
    size = 16 * 2**20

    def with_a_big_variable(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        big = ec.get_variable("big", (size // 4,), jax.nn.initializers.zeros)
        small = ec.get_variable("small", (), jax.nn.initializers.ones)
        predictions = small * features["x"][:, 0] + big[0]
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions=predictions)
        return ec.EstimatorSpec(mode, loss=jnp.mean((labels - predictions) ** 2), train_op=optax.sgd(0.1))

    estimator = make_estimator(with_a_big_variable).train(train_input, steps=1)
    estimator.get_variable_value("small")  # modules that are imported late are not counted
    tracemalloc.start()
    try:
        value = estimator.get_variable_value("small")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 4
    again = make_estimator(with_a_big_variable)  # reads the checkpoint
    assert value == again.get_variable_value("small") != 1
    assert again.get_variable_names() == estimator.get_variable_names() == ["big", "small"]


def test_predict_before_training_then_train(
    make_estimator: Any, train_input: Any, eval_input: Any, tmp_path: Path
) -> None:
    estimator = make_estimator(allow_untrained=True, model_dir=tmp_path / "a")
    before = next(estimator.predict(eval_input))["y"]
    trained = estimator.train(train_input, steps=3).variables
    plain = make_estimator(model_dir=tmp_path / "b").train(train_input, steps=3).variables
    assert all(
        np.array_equal(trained[name], plain[name]) for name in plain
    )  # trap 15: first values depend on paths alone
    assert before != next(estimator.predict(eval_input))["y"]


def test_another_process_own_checkpoint_is_noticed(make_estimator: Any, train_input: Any, eval_input: Any) -> None:
    reader = make_estimator()
    writer = make_estimator().train(train_input, steps=3)
    assert reader.evaluate(eval_input)["global_step"] == 3
    writer.train(train_input, steps=4)
    assert reader.evaluate(eval_input)["global_step"] == 7


def test_params_are_copied(make_estimator: Any, train_input: Any) -> None:
    params = {"learning_rate": 0.05, "nested": [1]}

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        params["nested"].append(2)
        assert params["nested"] == [1, 2]
        weights = ec.get_variable("w", (3,))
        return ec.EstimatorSpec(
            mode, loss=((features["x"] @ weights - labels) ** 2).mean(), train_op=__import__("optax").sgd(0.1)
        )

    estimator = make_estimator(model_fn, params=params).train(train_input, steps=2)
    assert params == {"learning_rate": 0.05, "nested": [1]}
    estimator.params["nested"].append(3)
    assert estimator.params == params


def test_the_run_is_recorded(make_estimator: Any, train_input: Any) -> None:
    estimator = make_estimator(params={"learning_rate": 0.5}).train(train_input, steps=2)
    record = json.loads((Path(estimator.model_dir) / "run.json").read_text())
    assert record["hparams"] == {"learning_rate": 0.5}
    assert record["run_config"]["save_checkpoints_steps"] == 10
    assert {"python", "jax", "estimator-core"} <= set(record["versions"])
    assert record["call"] == {"first_step": 0, "last_step": 2}


def test_hyperparameters_of_any_library_are_recorded_by_name(make_estimator: Any, train_input: Any) -> None:
    """The core has no HParams class: any object with `values()` and `to_json()` is treated as one."""

    class Parameters(types.SimpleNamespace):
        def values(self) -> dict[str, Any]:
            return dict(vars(self))

        def to_json(self) -> str:
            return json.dumps(vars(self))

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        loss = ((features["x"] @ ec.get_variable("w", (3,)) - labels) ** 2).mean()
        return ec.EstimatorSpec(mode, loss=loss, train_op=optax.sgd(params.rate))

    estimator = make_estimator(model_fn, params=Parameters(rate=0.5, layers=[8, 4]))
    estimator.train(train_input, steps=2)
    record = json.loads((Path(estimator.model_dir) / "run.json").read_text())
    assert record["hparams"] == {"rate": 0.5, "layers": [8, 4]}


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Smallest:
    """A metric whose initial value must not be zeros."""

    value: Any

    def merge(self, other: Any) -> Any:
        return Smallest(value=jnp.minimum(self.value, other.value))

    def compute(self) -> float:
        return float(np.min(self.value))


def with_metric(make: Any) -> Any:
    """Returns a model_fn with one metric of the features."""

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        loss = jnp.mean((features["x"] @ ec.get_variable("w", (3,)) - labels) ** 2)
        return ec.EstimatorSpec(
            mode, loss=loss, train_op=optax.sgd(0.0), eval_metric_ops={"metric": make(features["x"])}
        )

    return model_fn


def test_the_first_batch_is_not_merged_with_zeros(make_estimator: Any, data: Any) -> None:
    model_fn = with_metric(lambda x: Smallest(value=10 + jnp.min(x)))
    batches = [({"x": data.x[start : start + 8]}, data.y[start : start + 8]) for start in (0, 8)]
    estimator = make_estimator(model_fn).train(lambda: batches)
    assert estimator.evaluate(lambda: batches)["metric"] == pytest.approx(10 + data.x[:16].min())


def test_a_metric_that_changes_between_batches_is_named_in_an_evaluation(make_estimator: Any, data: Any) -> None:
    model_fn = with_metric(lambda x: Smallest(value=x[:, 0]))
    batches = [({"x": data.x[:size]}, data.y[:size]) for size in (8, 6)]
    estimator = make_estimator(model_fn).train(lambda: batches[:1])
    with pytest.raises(ec.EstimatorError, match=r"metric 'metric' \(Smallest\): its field 'value' was float32\[8\]"):
        estimator.evaluate(lambda: batches)


def test_evaluations_may_have_batches_of_another_form(make_estimator: Any) -> None:
    def model_fn(features: Any, mode: str, params: Any) -> ec.EstimatorSpec:
        predicted = features["x"] * ec.get_variable("w", (), jax.nn.initializers.ones)
        metrics = {"mean": ec.metrics.mean(predicted, features.get("weight"))}
        if "weight" in features:
            metrics["weighted"] = ec.metrics.mean(predicted * features["weight"])
        return ec.EstimatorSpec(mode, loss=predicted.mean(), train_op=optax.sgd(0.0), eval_metric_ops=metrics)

    x = np.arange(1, 5, dtype=np.float32)
    plain = ec.inputs.numpy_input_fn({"x": x}, batch_size=2, shuffle=False)
    weighted = ec.inputs.numpy_input_fn({"x": x, "weight": x}, batch_size=2, shuffle=False)
    estimator = make_estimator(model_fn).train(plain, steps=1)
    for _ in range(2):
        assert estimator.evaluate(weighted) == pytest.approx(
            {"mean": 3.0, "weighted": 7.5, "loss": 2.5, "global_step": 1}
        )
        assert estimator.evaluate(plain) == pytest.approx({"mean": 2.5, "loss": 2.5, "global_step": 1})


def test_every_call_knows_the_part_of_the_input_that_it_draws(make_estimator: Any) -> None:
    run = LoopRun(make_estimator(lambda features, params: None)._context("train"), DeviceState())
    assert run.input_part == (0, 1)
    context = ec.inputs.InputContext(num_input_pipelines=2, input_pipeline_id=1)
    run.open(lambda: [{"x": np.zeros(8)}], context).close()
    assert run.input_part == (1, 2)
    assert run.input_rows(8).tolist() == [4, 5, 6, 7]


def test_a_slow_input_is_told_once_and_not_for_every_evaluation(
    make_estimator: Any, train_input: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("estimator_core._loop.batches._SLOW", itertools.count())
    monkeypatch.setattr("estimator_core._loop.batches.QUICK_DRAW_SECS", 0.0)
    caplog.set_level("INFO", logger="estimator_core")
    estimator = make_estimator().train(train_input, steps=12)
    for _ in range(2):
        estimator.evaluate(train_input, steps=12)
    assert caplog.text.count("Drawing a batch takes") == 1
