"""Tests of TPUEstimator on the CPU: batch sizes, metrics, host_call, the logged loss, and refused arguments."""

import logging

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_backends_tpu import TPUConfig, TPUEstimator, TPUEstimatorSpec, TPURunConfig
from estimator_backends_tpu.host_call import HostCallHook
from estimator_core.errors import ArgumentError, ArgumentTypeError, BackendUnavailableError, ModelFnError

X = np.linspace(0, 1, 40, dtype=np.float32)
Y = 3 * X + 1


def input_fn(params, mode):
    training = mode == ec.ModeKeys.TRAIN
    make = ec.inputs.numpy_input_fn(
        {"x": X}, Y, batch_size=params["batch_size"], num_epochs=None if training else 1, shuffle=training, seed=1
    )
    return make()


def model_fn(features, labels, mode, params):
    y = features["x"] * ec.get_variable("slope", ()) + ec.get_variable("offset", ())
    if mode == ec.ModeKeys.PREDICT:
        return TPUEstimatorSpec(mode, predictions={"y": y})
    error = (y - labels) ** 2
    return TPUEstimatorSpec(
        mode,
        loss=error.mean(),
        train_op=optax.sgd(0.5),
        eval_metrics=(lambda error, weights: {"mse": ec.metrics.mean(error, weights)}, [error, jnp.ones_like(error)]),
    )


def run_config(tmp_path, **given):
    return TPURunConfig(model_dir=str(tmp_path), tf_random_seed=1, **given)


def tpu_estimator(tmp_path, function=model_fn, **given):
    sizes = {"train_batch_size": 8, "eval_batch_size": 16, "predict_batch_size": 10}
    return TPUEstimator(function, config=run_config(tmp_path), use_tpu=False, **{**sizes, **given})


def test_it_trains_evaluates_and_predicts_as_the_plain_estimator_does(tmp_path):
    estimator = tpu_estimator(tmp_path / "tpu").train(input_fn, steps=50)

    def plain_model_fn(features, labels, mode):
        spec = model_fn(features, labels, mode, {})
        return spec.as_estimator_spec()

    plain = ec.Estimator(plain_model_fn, config=ec.RunConfig(model_dir=str(tmp_path / "plain"), tf_random_seed=1))
    plain.train(lambda mode: input_fn({"batch_size": 8}, mode), steps=50)
    assert estimator.variables == plain.variables
    metrics = estimator.evaluate(input_fn)
    assert metrics["mse"] == plain.evaluate(lambda mode: input_fn({"batch_size": 16}, mode))["mse"]
    assert metrics["global_step"] == 50
    predicted = [row["y"] for row in estimator.predict(input_fn)]
    np.testing.assert_allclose(predicted, Y, atol=0.1)


def test_params_have_the_batch_size_of_the_mode_and_use_tpu(tmp_path):
    seen = {}

    def watching(features, labels, mode, params):
        seen[mode] = (params["batch_size"], features["x"].shape[0], params["use_tpu"], params["width"])
        return model_fn(features, labels, mode, params)

    estimator = tpu_estimator(tmp_path, watching, params={"width": 5}, predict_batch_size=40)
    estimator.train(input_fn, steps=1)
    estimator.evaluate(input_fn, steps=1)
    next(estimator.predict(input_fn))
    assert seen == {"train": (8, 8, False, 5), "eval": (16, 16, False, 5), "infer": (40, 40, False, 5)}
    assert estimator.params == {"width": 5, "use_tpu": False}


def test_an_input_fn_gets_its_process_s_part(tmp_path):
    from estimator_backends_tpu.batch_sizes import BatchSizes, SizedInput

    sized = SizedInput(input_fn=lambda params: params["batch_size"], sizes=BatchSizes(train=12, eval=None, infer=None))
    context = ec.inputs.InputContext(num_input_pipelines=3, input_pipeline_id=1, num_replicas_in_sync=3)
    assert sized(mode="train", params={}, input_context=context) == 4
    with pytest.raises(ArgumentError, match=r"train_batch_size 12 .* processes, 5"):
        sized(
            mode="train",
            params={},
            input_context=ec.inputs.InputContext(num_input_pipelines=5, input_pipeline_id=1, num_replicas_in_sync=5),
        )


def test_a_batch_that_the_replicas_cannot_share_is_refused():
    from estimator_core.testing import run_with_devices

    code = """
import numpy as np
from estimator_backends_tpu import TPUEstimator, TPURunConfig, TPUEstimatorSpec
import estimator_core as ec, optax
def model_fn(features, labels, mode, params):
    return TPUEstimatorSpec(mode, loss=(features["x"] * ec.get_variable("w", ())).mean(), train_op=optax.sgd(0.1))
config = TPURunConfig(mesh={"data": 4}, save_checkpoints_steps=None)
for size in (8, 6):
    estimator = TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=size)
    try:
        estimator.train(lambda params: [{"x": np.ones(params["batch_size"], np.float32)}] * 2, steps=2)
        print(size, "trained")
    except ValueError as error:
        print(error)
"""
    trained, refused = run_with_devices(4, code).splitlines()
    assert trained == "8 trained"
    assert "train_batch_size 6 must be divisible by the number of replicas, 4" in refused


def test_the_loss_is_logged_on_the_cpu_too(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="estimator_core")
    tpu_estimator(tmp_path).train(input_fn, steps=2)
    assert [message for message in caplog.messages if message.startswith("loss = ")] != []


@pytest.mark.parametrize("by_name", [False, True], ids=["list", "dict"])
@pytest.mark.parametrize(("every", "expected"), [(1, [1, 2, 3, 4, 5, 6, 7]), (3, [1, 4, 7])])
def test_host_call_sees_the_tensors_of_its_steps(tmp_path, by_name, every, expected):
    seen = []

    def on_host(loss, squares):
        assert isinstance(loss, np.ndarray)
        seen.append((float(loss), squares.shape))
        return {"host/loss": float(loss)}

    def with_host_call(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        tensors = {"squares": features["x"] ** 2, "loss": spec.loss} if by_name else [spec.loss, features["x"] ** 2]
        return TPUEstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op, host_call=(on_host, tensors))

    config = run_config(tmp_path, tpu_config=TPUConfig(experimental_host_call_every_n_steps=every))
    estimator = TPUEstimator(with_host_call, config=config, use_tpu=False, train_batch_size=8)
    losses = []

    class Losses(ec.Hook):
        def after_step(self, run, step, out):
            losses.append(float(out["loss"]))

    estimator.train(input_fn, steps=7, hooks=[Losses()])
    assert seen == [(losses[step - 1], (8,)) for step in expected]


def test_host_call_refuses_an_interval_that_is_not_a_number_of_steps():
    with pytest.raises(
        ValueError, match=r"^HostCallHook: every_n_steps must be at least 1, and a whole number, given: 0"
    ):
        HostCallHook(print, ["x"], every_n_steps=0)


def test_host_call_is_called_in_evaluation(tmp_path):
    seen = []

    def with_host_call(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        host_call = (lambda x: seen.append(x.shape), [features["x"]])
        return TPUEstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op, host_call=host_call)

    estimator = tpu_estimator(tmp_path, with_host_call).train(input_fn, steps=1)
    assert seen == [(8,)]
    seen.clear()
    estimator.evaluate(input_fn)
    assert seen == [(16,), (16,), (8,)]


def test_points_of_host_call_in_an_evaluation_are_at_the_step_of_its_weights(tmp_path):
    points = []

    def with_host_call(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        host_call = (lambda x: {"host/size": x.size}, [features["x"]])
        return TPUEstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op, host_call=host_call)

    class Points(ec.Hook):
        def after_create(self, run):
            write = run.summaries.scalar
            run.summaries.scalar = lambda tag, value, step: points.append(step) or write(tag, value, step)

    estimator = tpu_estimator(tmp_path, with_host_call).train(input_fn, steps=5)
    estimator.evaluate(input_fn, hooks=[Points()])
    assert points[:3] == [5, 5, 5]


def test_several_iterations_a_loop_train_the_same_and_no_host_call_is_missed(tmp_path):
    calls = {1: [], 4: []}

    def trained(k):
        def with_host_call(features, labels, mode, params):
            spec = model_fn(features, labels, mode, params)
            host_call = (lambda loss: calls[k].append(float(loss)), [spec.loss])
            return TPUEstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op, host_call=host_call)

        config = run_config(tmp_path / str(k), steps_per_dispatch=k)
        estimator = TPUEstimator(with_host_call, config=config, use_tpu=False, train_batch_size=8)
        return estimator.train(input_fn, steps=8).variables

    one, four = trained(1), trained(4)
    np.testing.assert_allclose(one["slope"], four["slope"], rtol=1e-6)
    np.testing.assert_allclose(calls[1], calls[4], rtol=1e-6)
    assert len(calls[4]) == 8


def test_a_tpu_that_is_not_there_is_an_error_with_its_reason(tmp_path):
    estimator = TPUEstimator(model_fn, config=run_config(tmp_path), train_batch_size=8)
    assert estimator.config.backend == "tpu"
    with pytest.raises(BackendUnavailableError, match="'tpu' was requested"):
        estimator.train(input_fn, steps=1)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"config": ec.RunConfig()}, ArgumentTypeError, "TPURunConfig"),
        ({"params": {"batch_size": 3}}, ArgumentError, "reserved keys but existed in params"),
        ({"params": {"context": 3}}, ArgumentError, "reserved keys"),
        ({"train_batch_size": 0}, ArgumentError, "train_batch_size"),
        ({"eval_batch_size": 2.5}, ArgumentError, "eval_batch_size"),
        ({"eval_on_tpu": False}, ArgumentError, "eval_on_tpu"),
        ({"export_to_cpu": False}, ArgumentError, "every platform"),
        ({"embedding_config_spec": object()}, ArgumentError, "sparse_lookup"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(given, error, words):
    with pytest.raises(error, match=words):
        TPUEstimator(model_fn, **{"config": TPURunConfig(), "use_tpu": False, **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"eval_metrics": {"mse": 1}}, "eval_metrics must be a pair"),
        ({"eval_metrics": (len, 3)}, "list or a dict"),
        ({"host_call": (3, [])}, "host_call must be a pair"),
    ],
)
def test_pairs_of_another_form_are_refused(given, words):
    with pytest.raises(ModelFnError, match=words):
        TPUEstimatorSpec("train", loss=0.0, train_op=optax.sgd(0.1), **given)


def test_a_metric_fn_that_gives_no_metrics_is_named(tmp_path):
    def wrong(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return TPUEstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op, eval_metrics=(lambda x: 3.0, [spec.loss]))

    estimator = tpu_estimator(tmp_path, wrong).train(input_fn, steps=1)
    with pytest.raises(ModelFnError, match="metric_fn must return a dict"):
        estimator.evaluate(input_fn)
