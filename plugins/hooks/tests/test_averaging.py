"""Tests of the average of the weights in real runs: evaluations, checkpoints, predictions, and resumes use it."""

import tracemalloc
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

import estimator_core as ec
import estimator_hooks as eh
from estimator_core.errors import HookError
from plugins.hooks.tests import small_model


def averaging() -> optax.GradientTransformation:
    return optax.chain(optax.sgd(0.1), eh.ema_of_weights(0.9))


def test_evaluation_uses_the_average_and_training_goes_on_with_the_weights(tmp_path: Path):
    plain = small_model.make_estimator(tmp_path / "plain", averaging())
    plain.train(small_model.train_input_fn(), max_steps=40)
    estimator = small_model.make_estimator(tmp_path / "ema", averaging())
    hook = eh.AveragedWeightsEvaluatorHook(estimator, small_model.eval_input_fn(), name="ema", every_n_iter=20)
    estimator.train(small_model.train_input_fn(), max_steps=40, hooks=[hook])
    jax.tree.map(np.testing.assert_array_equal, estimator.variables, plain.variables)
    recorded = ec.read_eval_metrics(estimator.eval_dir("ema"))
    assert list(recorded) == [0, 20, 40]
    path = eh.write_averaged_checkpoint(tmp_path / "ema", tmp_path / "averaged")
    again = plain.evaluate(small_model.eval_input_fn(), checkpoint_path=path, name="again")
    assert again["loss"] == pytest.approx(recorded[40]["loss"], rel=1e-6)
    assert again["loss"] != pytest.approx(plain.evaluate(small_model.eval_input_fn())["loss"], rel=1e-3)
    averages = eh.load_averaged_variables(tmp_path / "ema")
    assert set(averages) == {"dense/kernel", "dense/bias"}
    logits = next(plain.predict(small_model.eval_input_fn(), checkpoint_path=path, yield_single_examples=False))[
        "logits"
    ]
    expected = small_model.X[:64] @ averages["dense/kernel"] + averages["dense/bias"]
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_a_resumed_run_has_the_same_average(tmp_path: Path):
    small_model.make_estimator(tmp_path / "a", averaging()).train(small_model.train_input_fn(), max_steps=40)
    for steps in (20, 40):
        small_model.make_estimator(tmp_path / "b", averaging()).train(small_model.train_input_fn(), max_steps=steps)
    one, other = eh.load_averaged_variables(tmp_path / "a"), eh.load_averaged_variables(tmp_path / "b")
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_without_an_average(tmp_path: Path):
    estimator = small_model.make_estimator(tmp_path)
    hook = eh.AveragedWeightsEvaluatorHook(estimator, small_model.eval_input_fn(), name="ema")
    with pytest.raises(HookError, match="keeps no average of the weights"):
        estimator.train(small_model.train_input_fn(), max_steps=2, hooks=[hook])
    estimator.train(small_model.train_input_fn(), max_steps=2)
    with pytest.raises(HookError, match="holds no average of the weights"):
        eh.load_averaged_variables(tmp_path)


def of_16_bits(features: Any, labels: Any, mode: str) -> ec.EstimatorSpec:
    y = features["x"] * ec.get_variable("w", (), jax.nn.initializers.ones, jnp.bfloat16)
    metrics = {"y": ec.metrics.mean(y.astype(jnp.float32))}
    tx = optax.chain(optax.sgd(0.0625), eh.ema_of_weights(0.999))
    return ec.EstimatorSpec(mode, loss=(y.mean() - 3).astype(jnp.float32), train_op=tx, eval_metric_ops=metrics)


def test_weights_of_16_bits_are_evaluated_and_written_as_such(tmp_path: Path):
    data = ec.inputs.numpy_input_fn({"x": np.ones(8, jnp.bfloat16)}, np.zeros(8), batch_size=1, shuffle=False)
    estimator = ec.Estimator(of_16_bits, str(tmp_path), ec.RunConfig(tf_random_seed=1))
    estimator.train(data, hooks=[eh.AveragedWeightsEvaluatorHook(estimator, data, name="ema")])
    average = eh.load_averaged_variables(tmp_path)["w"]
    expected = 1.0
    for step in range(8):
        expected += 0.001 * (1 - 0.0625 * (step + 1) - expected)
    np.testing.assert_allclose(average, expected, rtol=1e-5)
    written = ec.load_variables(eh.write_averaged_checkpoint(tmp_path, tmp_path / "averaged"))["w"]
    assert (average.dtype, written.dtype) == (np.float32, jnp.bfloat16)
    assert ec.read_eval_metrics(estimator.eval_dir("ema"))[8]["y"] == written


def of_tables(*, dense: bool):
    def model_fn(features: dict, labels: np.ndarray, mode: str) -> ec.EstimatorSpec:
        rows = ec.sparse_lookup("table", features["id"], (8, 1), jax.nn.initializers.ones)[:, 0]
        y = rows * ec.get_variable("scale", (), jax.nn.initializers.ones) if dense else rows
        metrics = {"y": ec.metrics.mean(y)}
        return ec.EstimatorSpec(mode, loss=((y - labels) ** 2).mean(), train_op=averaging(), eval_metric_ops=metrics)

    return model_fn


def test_tables_have_no_average_and_keep_their_newest_rows(tmp_path: Path):
    data = ec.inputs.numpy_input_fn({"id": np.arange(4)}, np.zeros(4, np.float32), batch_size=2, shuffle=False)
    estimator = ec.Estimator(of_tables(dense=True), str(tmp_path), ec.RunConfig(tf_random_seed=1))
    hook = eh.AveragedWeightsEvaluatorHook(estimator, data, name="ema")
    estimator.train(data, hooks=[hook])
    averages = eh.load_averaged_variables(tmp_path)
    assert list(averages) == ["scale"]
    path = eh.write_averaged_checkpoint(tmp_path, tmp_path / "averaged")
    variables = ec.load_variables(path)
    np.testing.assert_array_equal(variables["table"], estimator.variables["table"])
    expected = averages["scale"] * estimator.variables["table"][:4].mean()
    assert ec.read_eval_metrics(estimator.eval_dir("ema"))[2]["y"] == pytest.approx(expected, rel=1e-6)


def test_nothing_but_tables_has_no_average(tmp_path: Path):
    data = ec.inputs.numpy_input_fn({"id": np.arange(4)}, np.zeros(4, np.float32), batch_size=2, shuffle=False)
    estimator = ec.Estimator(of_tables(dense=False), str(tmp_path), ec.RunConfig(tf_random_seed=1))
    hook = eh.AveragedWeightsEvaluatorHook(estimator, data, name="ema")
    with pytest.raises(HookError, match=r"All its variables are tables of ec.sparse_lookup"):
        estimator.train(data, hooks=[hook])
    estimator.train(data)
    with pytest.raises(HookError, match=r"holds no average of the weights. All its variables are tables"):
        eh.load_averaged_variables(tmp_path)


def test_writing_a_checkpoint_of_averages_copies_them_once(tmp_path: Path):
    """The store copies what it saves. Averages of the dtype of their variable are not copied before."""
    table = np.ones((4, 1 << 20), np.float32)
    items = ec.checkpoint.CheckpointItems(
        clock=np.array([1, 0, 0, 0], np.uint32), variables={"w": table}, opt_state={"0/ema_of_weights/w": table + 1}
    )
    with ec.checkpoint.CheckpointStore(tmp_path / "run") as store:
        store.save(1, items)
    eh.load_averaged_variables(tmp_path / "run")  # imports
    tracemalloc.start()
    try:
        path = eh.write_averaged_checkpoint(tmp_path / "run", tmp_path / "averaged")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * table.nbytes
    np.testing.assert_array_equal(ec.load_variables(path)["w"], table + 1)


class Fails(eh.Hook):
    def after_create(self, run: Any) -> None:
        raise ZeroDivisionError


@pytest.mark.parametrize("hook_class", [eh.InMemoryEvaluatorHook, eh.AveragedWeightsEvaluatorHook])
def test_a_call_that_ends_after_its_first_evaluation_does_not_repeat_it_when_resumed(
    hook_class: Any, tmp_path: Path
) -> None:
    estimator = small_model.make_estimator(tmp_path, averaging())

    def train(*hooks: Any) -> None:
        evaluates = hook_class(estimator, small_model.eval_input_fn(), name="memory", every_n_iter=10)
        estimator.train(small_model.train_input_fn(), max_steps=10, hooks=[evaluates, *hooks])

    with pytest.raises(ZeroDivisionError):
        train(Fails())
    train()
    files = sorted(Path(estimator.eval_dir("memory")).glob("*tfevents*"))
    events = [event for file in files for event in EventFileLoader(str(file)).Load()]
    written = [event.step for event in events for value in event.summary.value if value.tag == "loss"]
    assert written == [0, 10]
