"""The mistakes that record_errors.py records, made with this framework under the same names."""

import json
import tempfile
from unittest import mock

import jax.numpy as jnp
import numpy as np
import optax

import estimator_core as ec
from tests.parity.core_scenario import input_fn, rows

TRAIN, EVAL, PREDICT = ec.ModeKeys.TRAIN, ec.ModeKeys.EVAL, ec.ModeKeys.PREDICT
data = input_fn({"epochs": None}, [], "data")
x, y = rows(4)


def good(features, labels, mode, params=None):
    output = features["x"] @ ec.get_variable("w", (2, 1))
    if mode == PREDICT:
        return ec.EstimatorSpec(mode, predictions={"y": output})
    loss = jnp.mean(jnp.square(output - labels))
    return ec.EstimatorSpec(mode, predictions={"y": output}, loss=loss, train_op=optax.sgd(0.1))


def made(model_fn=good, **options):
    settings = {"default_hooks": False, "allow_untrained": options.pop("allow_untrained", False)}
    config = options.pop("config", None) or ec.RunConfig(**settings)
    return ec.Estimator(model_fn, options.pop("model_dir", None) or tempfile.mkdtemp(), config, **options)


def trained(**options):
    return made(**options).train(data, steps=1)


def returning(**changes):
    def model_fn(features, labels, mode):
        spec = good(features, labels, mode)
        fields = {"predictions": spec.predictions, "loss": spec.loss, "train_op": spec.train_op}
        return ec.EstimatorSpec(mode, **{**fields, **changes})

    return model_fn


class Sub(ec.Estimator):
    def train(self):
        pass


def no_features(labels, mode):
    pass


def unexpected(features, labels, mode, foo):
    pass


def without_params(features, labels, mode):
    return good(features, labels, mode)


def without_labels(features, mode):
    return good(features, None, mode)


CONSTRUCTOR = {
    "model_fn_none": lambda: ec.Estimator(None),
    "model_fn_without_features": lambda: ec.Estimator(no_features),
    "model_fn_unexpected_argument": lambda: ec.Estimator(unexpected),
    "model_fn_without_params_but_params": lambda: ec.Estimator(without_params, params={"a": 1}),
    "model_fn_without_params_but_empty_params": lambda: ec.Estimator(without_params, params={}),
    "config_wrong_type": lambda: ec.Estimator(good, config="x"),
    "model_dirs_differ": lambda: ec.Estimator(good, model_dir="a", config=ec.RunConfig(model_dir="b")),
    "subclass_overrides": lambda: Sub(good),
    "params_wrong_type": lambda: ec.Estimator(good, params=1),
    "warm_start_wrong_type": lambda: made(warm_start_from=1),
    "warm_start_empty": lambda: ec.WarmStartSettings(""),
    "warm_start_missing": lambda: made(warm_start_from="/nonexist").train(data, steps=1),
}


def train(model_fn=good, **arguments):
    return lambda: made(model_fn).train(**{"input_fn": data, "steps": 1, **arguments})


TRAINING = {
    "train_steps_and_max_steps": train(max_steps=1),
    "train_steps_0": train(steps=0),
    "train_steps_negative": train(steps=-1),
    "train_max_steps_0": train(steps=None, max_steps=0),
    "train_max_steps_negative": train(steps=None, max_steps=-1),
    "train_hook_wrong_type": train(hooks=["a"]),
    "train_hooks_not_a_list": train(hooks=1),
    "train_listener_wrong_type": train(saving_listeners=["a"]),
    "train_input_fn_not_callable": train(input_fn=1),
    "train_input_fn_three_values": train(input_fn=lambda: (1, 2, 3)),
    "train_input_fn_unknown_argument": train(input_fn=lambda foo: None),
    "train_labels_not_taken": train(without_labels),
    "train_spec_is_a_dict": train(lambda features, labels, mode: {"loss": 1}),
    "train_spec_is_none": train(lambda features, labels, mode: None),
    "train_no_train_op": train(returning(train_op=None)),
    "train_no_loss": train(returning(loss=None)),
    "train_neither_loss_nor_train_op": train(returning(loss=None, train_op=None)),
    "train_loss_vector": train(returning(loss=np.ones(2, np.float32))),
    "train_loss_shape_1": train(returning(loss=np.ones(1, np.float32))),
    "train_loss_a_number": train(returning(loss=1.0)),
    "train_loss_text": train(returning(loss="loss")),
    "train_op_a_number": train(returning(train_op=1)),
    "train_returned_hook_wrong_type": train(returning(training_hooks=["a"])),
    "train_returned_chief_hook_wrong_type": train(returning(training_chief_hooks=["a"])),
    "train_returned_scaffold_wrong_type": train(returning(scaffold="a")),
    "train_returned_export_outputs_wrong_type": train(returning(export_outputs=["a"])),
    "train_returned_other_mode": train(lambda features, labels, mode: good(features, labels, mode)._replace(mode=EVAL)),
    "train_other_shape_than_checkpoint": lambda: retrained(width=2),
    "train_variable_not_in_checkpoint": lambda: retrained(extra=True),
}


def retrained(width=1, extra=False):
    def other(features, labels, mode):
        output = jnp.sum(features["x"] @ ec.get_variable("w", (2, width)), 1, keepdims=True)
        if extra:
            output += ec.get_variable("extra", (1,))
        return ec.EstimatorSpec(mode, loss=jnp.mean(jnp.square(output - labels)), train_op=optax.sgd(0.1))

    model_dir = tempfile.mkdtemp()
    made(model_dir=model_dir).train(data, steps=1)
    made(other, model_dir=model_dir).train(data, steps=1)


def spec(mode, **fields):
    return lambda: ec.EstimatorSpec(mode, **fields)


one = np.float32(1)
SPECS = {
    "spec_train_empty": spec(TRAIN),
    "spec_train_loss_only": spec(TRAIN, loss=one),
    "spec_eval_empty": spec(EVAL),
    "spec_predict_empty": spec(PREDICT),
    "spec_mode_unknown": spec("unknown", loss=one),
    "spec_predictions_a_number": spec(PREDICT, predictions=1.0),
    "spec_predictions_dict_of_numbers": spec(PREDICT, predictions={"a": 1.0}),
    "spec_predictions_empty_dict": spec(PREDICT, predictions={}),
    "spec_metrics_a_list": spec(EVAL, loss=one, eval_metric_ops=[1]),
    "spec_metrics_a_number": spec(EVAL, loss=one, eval_metric_ops={"a": 1}),
    "spec_metrics_one_of_two": spec(EVAL, loss=one, eval_metric_ops={"a": (1,)}),
    "spec_metrics_not_tensors": spec(EVAL, loss=one, eval_metric_ops={"a": ("b", "c")}),
    "spec_evaluation_hooks_wrong_type": spec(EVAL, loss=one, evaluation_hooks=["a"]),
    "spec_prediction_hooks_wrong_type": spec(PREDICT, predictions=np.ones(1), prediction_hooks=["a"]),
    "spec_export_outputs_not_a_dict": spec(PREDICT, predictions=np.ones(1), export_outputs=["a"]),
    "spec_replace_mode": lambda: spec(PREDICT, predictions=np.ones(1))()._replace(mode=EVAL),
}


def metric_named(name):
    def model_fn(features, labels, mode):
        return good(features, labels, mode)._replace(eval_metric_ops={name: ec.metrics.mean(labels)})

    return model_fn


def evaluate(model_fn=good, **arguments):
    return lambda: made(model_fn, allow_untrained=True).evaluate(**{"input_fn": data, "steps": 1, **arguments})


def predict(predictions=None, **arguments):
    def model_fn(features, labels, mode):
        return (
            ec.EstimatorSpec(mode, predictions=predictions(features)) if predictions else good(features, labels, mode)
        )

    source = input_fn({}, [], "data")
    return lambda: list(made(model_fn, allow_untrained=True).predict(source, **arguments))


EVALUATION = {
    "evaluate_steps_0": evaluate(steps=0),
    "evaluate_steps_negative": evaluate(steps=-1),
    "evaluate_hook_wrong_type": evaluate(hooks=["a"]),
    "evaluate_metric_named_loss": evaluate(metric_named("loss")),
    "evaluate_metric_named_global_step": evaluate(metric_named("global_step")),
    "evaluate_checkpoint_missing": evaluate(checkpoint_path="/nonexist/model.ckpt-1"),
    "evaluate_untrained": lambda: made().evaluate(data, steps=1),
    "predict_untrained": lambda: next(made().predict(data)),
    "predict_hook_wrong_type": predict(hooks=["a"]),
    "predict_keys_unknown": predict(predict_keys=["zz"]),
    "predict_lengths_differ": predict(lambda features: {"a": features["x"], "b": features["x"][:1]}),
    "predict_scalar": predict(lambda features: {"a": jnp.sum(features["x"])}),
    "variable_names_untrained": lambda: made().get_variable_names(),
    "variable_value_untrained": lambda: made().get_variable_value("w"),
    "variable_value_unknown": lambda: trained().get_variable_value("zz"),
    "add_metrics_unexpected_argument": lambda: ec.add_metrics(made(), lambda foo: {}),
    "add_metrics_not_an_estimator": lambda: ec.add_metrics("a", lambda labels: {}),
}


class NamedExporter:
    def __init__(self, name):
        self.name = name

    def export(self, *arguments):
        return None


def eval_spec(**options):
    return ec.EvalSpec(data, **options)


def train_spec(**options):
    return ec.TrainSpec(data, **options)


def with_task(task_type):
    cluster = {"cluster": {"chief": ["h:1"], "ps": ["h:2"]}, "task": {"type": task_type, "index": 0}}
    with mock.patch.dict("os.environ", TF_CONFIG=json.dumps(cluster)):
        made(config=ec.RunConfig()).train(data, steps=1)


DRIVER = {
    "train_spec_input_fn_not_callable": lambda: ec.TrainSpec(1),
    "train_spec_max_steps_0": lambda: train_spec(max_steps=0),
    "train_spec_hook_wrong_type": lambda: train_spec(hooks=["a"]),
    "train_spec_listener_wrong_type": lambda: train_spec(saving_listeners=["a"]),
    "eval_spec_input_fn_not_callable": lambda: ec.EvalSpec(1),
    "eval_spec_steps_0": lambda: eval_spec(steps=0),
    "eval_spec_name_not_text": lambda: eval_spec(name=1),
    "eval_spec_hook_wrong_type": lambda: eval_spec(hooks=["a"]),
    "eval_spec_exporter_wrong_type": lambda: eval_spec(exporters=3),
    "eval_spec_exporters_wrong_type": lambda: eval_spec(exporters=[3]),
    "eval_spec_exporters_same_name": lambda: eval_spec(exporters=[NamedExporter("a"), NamedExporter("a")]),
    "eval_spec_exporter_without_name": lambda: eval_spec(exporters=NamedExporter("")),
    "eval_spec_delay_negative": lambda: eval_spec(start_delay_secs=-1),
    "eval_spec_throttle_negative": lambda: eval_spec(throttle_secs=-1),
    "both_estimator_wrong_type": lambda: ec.train_and_evaluate("a", train_spec(), eval_spec()),
    "both_train_spec_wrong_type": lambda: ec.train_and_evaluate(made(), "a", eval_spec()),
    "both_eval_spec_wrong_type": lambda: ec.train_and_evaluate(made(), train_spec(), "a"),
    "both_eval_spec_list": lambda: ec.train_and_evaluate(made(), train_spec(max_steps=1), [ec.EvalSpec(data, steps=1)]),
    "train_as_ps": lambda: with_task("ps"),
    "train_as_evaluator": lambda: with_task("evaluator"),
}

numpy_input_fn = ec.inputs.numpy_input_fn
INPUTS = {
    "numpy_shuffle_missing": lambda: numpy_input_fn({"x": x}, y),
    "numpy_shuffle_text": lambda: numpy_input_fn({"x": x}, y, shuffle="yes"),
    "numpy_x_empty": lambda: numpy_input_fn({}, y, shuffle=False)(),
    "numpy_x_list": lambda: numpy_input_fn([1, 2], y, shuffle=False)(),
    "numpy_x_none": lambda: numpy_input_fn(None, y, shuffle=False)(),
    "numpy_lengths_differ": lambda: numpy_input_fn({"x": x}, y[:2], shuffle=False)(),
    "numpy_feature_lengths_differ": lambda: numpy_input_fn({"x": x, "z": x[:2]}, y, shuffle=False)(),
    "numpy_y_empty_dict": lambda: numpy_input_fn({"x": x}, {}, shuffle=False)(),
    "numpy_x_and_y_share_a_key": lambda: numpy_input_fn({"x": x}, {"x": y}, shuffle=False)(),
}

MISTAKES = {**CONSTRUCTOR, **TRAINING, **SPECS, **EVALUATION, **DRIVER, **INPUTS}
