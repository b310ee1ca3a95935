"""Records how tf.estimator refuses wrong use: for each named mistake the type and the message of the error, or null."""

import json
import os
import tempfile

from tf_recording import error_of, tf, write
from tf_scenario import input_fn, rows

estimator = tf.estimator
TRAIN, EVAL, PREDICT = estimator.ModeKeys.TRAIN, estimator.ModeKeys.EVAL, estimator.ModeKeys.PREDICT
data = input_fn({"epochs": None}, [], "data")


def good(features, labels, mode, params=None):
    w = tf.compat.v1.get_variable("w", [2, 1])
    y = tf.matmul(features["x"], w)
    if mode == PREDICT:
        return estimator.EstimatorSpec(mode, predictions={"y": y})
    loss = tf.reduce_mean(tf.square(y - labels))
    step = tf.compat.v1.train.get_global_step()
    train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return estimator.EstimatorSpec(mode, predictions={"y": y}, loss=loss, train_op=train_op)


def made(model_fn=good, **options):
    return estimator.Estimator(model_fn, model_dir=options.pop("model_dir", None) or tempfile.mkdtemp(), **options)


def returning(**changes):
    """A model_fn whose EstimatorSpec has some fields changed; a callable is called with (features, labels)."""

    def model_fn(features, labels, mode):
        spec = good(features, labels, mode)
        fields = {"predictions": spec.predictions, "loss": spec.loss, "train_op": spec.train_op}
        for name, value in changes.items():
            fields[name] = value(features, labels) if callable(value) else value
        return estimator.EstimatorSpec(mode, **fields)

    return model_fn


class Sub(estimator.Estimator):
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
    "model_fn_none": lambda: estimator.Estimator(None),
    "model_fn_without_features": lambda: estimator.Estimator(no_features),
    "model_fn_unexpected_argument": lambda: estimator.Estimator(unexpected),
    "model_fn_without_params_but_params": lambda: estimator.Estimator(without_params, params={"a": 1}),
    "model_fn_without_params_but_empty_params": lambda: estimator.Estimator(without_params, params={}),
    "config_wrong_type": lambda: estimator.Estimator(good, config="x"),
    "model_dirs_differ": lambda: estimator.Estimator(good, model_dir="a", config=estimator.RunConfig(model_dir="b")),
    "subclass_overrides": lambda: Sub(good),
    "params_wrong_type": lambda: estimator.Estimator(good, params=1),
    "warm_start_wrong_type": lambda: made(warm_start_from=1),
    "warm_start_empty": lambda: estimator.WarmStartSettings(""),
    "warm_start_missing": lambda: made(warm_start_from="/nonexist").train(data, steps=1),
}
TRAINING = {
    "train_steps_and_max_steps": lambda: made().train(data, steps=1, max_steps=1),
    "train_steps_0": lambda: made().train(data, steps=0),
    "train_steps_negative": lambda: made().train(data, steps=-1),
    "train_max_steps_0": lambda: made().train(data, max_steps=0),
    "train_max_steps_negative": lambda: made().train(data, max_steps=-1),
    "train_hook_wrong_type": lambda: made().train(data, steps=1, hooks=["a"]),
    "train_hooks_not_a_list": lambda: made().train(data, steps=1, hooks=1),
    "train_listener_wrong_type": lambda: made().train(data, steps=1, saving_listeners=["a"]),
    "train_input_fn_not_callable": lambda: made().train(1, steps=1),
    "train_input_fn_three_values": lambda: made().train(lambda: (1, 2, 3), steps=1),
    "train_input_fn_list_of_one": lambda: made().train(lambda: [{"x": tf.zeros([2, 2])}], steps=1),
    "train_input_fn_unknown_argument": lambda: made().train(lambda foo: None, steps=1),
    "train_labels_not_taken": lambda: made(without_labels).train(data, steps=1),
    "train_spec_is_a_dict": lambda: made(lambda features, labels, mode: {"loss": 1}).train(data, steps=1),
    "train_spec_is_none": lambda: made(lambda features, labels, mode: None).train(data, steps=1),
    "train_no_train_op": lambda: made(returning(train_op=None)).train(data, steps=1),
    "train_no_loss": lambda: made(returning(loss=None)).train(data, steps=1),
    "train_neither_loss_nor_train_op": lambda: made(returning(loss=None, train_op=None)).train(data, steps=1),
    "train_loss_vector": lambda: made(returning(loss=lambda f, la: tf.constant([1.0, 2.0]))).train(data, steps=1),
    "train_loss_shape_1": lambda: made(returning(loss=lambda f, la: tf.constant([1.0]))).train(data, steps=1),
    "train_loss_a_number": lambda: made(returning(loss=1.0)).train(data, steps=1),
    "train_loss_text": lambda: made(returning(loss="loss")).train(data, steps=1),
    "train_op_a_number": lambda: made(returning(train_op=1)).train(data, steps=1),
    "train_returned_hook_wrong_type": lambda: made(returning(training_hooks=["a"])).train(data, steps=1),
    "train_returned_chief_hook_wrong_type": lambda: made(returning(training_chief_hooks=["a"])).train(data, steps=1),
    "train_returned_scaffold_wrong_type": lambda: made(returning(scaffold="a")).train(data, steps=1),
    "train_returned_export_outputs_wrong_type": lambda: made(returning(export_outputs=["a"])).train(data, steps=1),
    "train_returned_other_mode": lambda: made(
        lambda features, labels, mode: good(features, labels, mode)._replace(mode=EVAL)
    ).train(data, steps=1),
    "train_other_shape_than_checkpoint": lambda: retrained(width=2),
    "train_variable_not_in_checkpoint": lambda: retrained(extra=True),
}


def retrained(width=1, extra=False):
    """Trains a model, then one with another variable shape or one more variable in the same model_dir."""

    def other(features, labels, mode):
        w = tf.compat.v1.get_variable("w", [2, width])
        y = tf.reduce_sum(tf.matmul(features["x"], w), 1, keepdims=True)
        if extra:
            y += tf.compat.v1.get_variable("extra", [1])
        loss = tf.reduce_mean(tf.square(y - labels))
        step = tf.compat.v1.train.get_global_step()
        train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    model_dir = tempfile.mkdtemp()
    made(model_dir=model_dir).train(data, steps=1)
    made(other, model_dir=model_dir).train(data, steps=1)


def spec(mode, **fields):
    """An EstimatorSpec made inside a graph; a callable field is called there."""
    with tf.Graph().as_default():
        return estimator.EstimatorSpec(mode, **{k: v() if callable(v) else v for k, v in fields.items()})


def loss():
    return tf.constant(1.0)


SPECS = {
    "spec_train_empty": lambda: spec(TRAIN),
    "spec_train_loss_only": lambda: spec(TRAIN, loss=loss),
    "spec_eval_empty": lambda: spec(EVAL),
    "spec_predict_empty": lambda: spec(PREDICT),
    "spec_mode_unknown": lambda: spec("unknown", loss=loss),
    "spec_predictions_a_number": lambda: spec(PREDICT, predictions=1.0),
    "spec_predictions_dict_of_numbers": lambda: spec(PREDICT, predictions={"a": 1.0}),
    "spec_predictions_empty_dict": lambda: spec(PREDICT, predictions={}),
    "spec_metrics_a_list": lambda: spec(EVAL, loss=loss, eval_metric_ops=[1]),
    "spec_metrics_a_number": lambda: spec(EVAL, loss=loss, eval_metric_ops={"a": 1}),
    "spec_metrics_one_of_two": lambda: spec(EVAL, loss=loss, eval_metric_ops={"a": (1,)}),
    "spec_metrics_not_tensors": lambda: spec(EVAL, loss=loss, eval_metric_ops={"a": ("b", "c")}),
    "spec_metrics_keras_not_updated": lambda: spec(EVAL, loss=loss, eval_metric_ops={"a": tf.keras.metrics.Mean()}),
    "spec_evaluation_hooks_wrong_type": lambda: spec(EVAL, loss=loss, evaluation_hooks=["a"]),
    "spec_prediction_hooks_wrong_type": lambda: spec(PREDICT, predictions=loss, prediction_hooks=["a"]),
    "spec_export_outputs_not_a_dict": lambda: spec(PREDICT, predictions=loss, export_outputs=["a"]),
    "spec_export_output_wrong_type": lambda: spec(PREDICT, predictions=loss, export_outputs={"a": 1}),
    "spec_export_outputs_without_default": lambda: spec(
        PREDICT,
        predictions=loss,
        export_outputs=lambda: {name: estimator.export.PredictOutput({"a": loss()}) for name in "ab"},
    ),
    "spec_replace_mode": lambda: spec(PREDICT, predictions=loss)._replace(mode=EVAL),
}


def trained():
    one = made()
    one.train(data, steps=1)
    return one


def metric_named(name):
    def model_fn(features, labels, mode):
        return good(features, labels, mode)._replace(eval_metric_ops={name: tf.compat.v1.metrics.mean(labels)})

    return model_fn


EVALUATION = {
    "evaluate_steps_0": lambda: made().evaluate(data, steps=0),
    "evaluate_steps_negative": lambda: made().evaluate(data, steps=-1),
    "evaluate_hook_wrong_type": lambda: made().evaluate(data, steps=1, hooks=["a"]),
    "evaluate_metric_named_loss": lambda: made(metric_named("loss")).evaluate(data, steps=1),
    "evaluate_metric_named_global_step": lambda: made(metric_named("global_step")).evaluate(data, steps=1),
    "evaluate_checkpoint_missing": lambda: made().evaluate(data, steps=1, checkpoint_path="/nonexist/model.ckpt-1"),
    "evaluate_untrained": lambda: made().evaluate(data, steps=1),
    "predict_untrained": lambda: next(made().predict(data)),
    "predict_hook_wrong_type": lambda: next(made().predict(data, hooks=["a"])),
    "predict_keys_unknown": lambda: next(made().predict(data, predict_keys=["zz"])),
    "predict_lengths_differ": lambda: list(
        made(
            lambda features, labels, mode: estimator.EstimatorSpec(
                mode, predictions={"a": features["x"], "b": features["x"][:1]}
            )
        ).predict(input_fn({}, [], "data"))
    ),
    "predict_scalar": lambda: list(
        made(
            lambda features, labels, mode: estimator.EstimatorSpec(
                mode, predictions={"a": tf.reduce_sum(features["x"])}
            )
        ).predict(input_fn({}, [], "data"))
    ),
    "variable_names_untrained": lambda: made().get_variable_names(),
    "variable_value_untrained": lambda: made().get_variable_value("w"),
    "variable_value_unknown": lambda: trained().get_variable_value("zz"),
    "add_metrics_unexpected_argument": lambda: estimator.add_metrics(made(), lambda foo: {}),
    "add_metrics_not_an_estimator": lambda: estimator.add_metrics("a", lambda labels: {}),
}


def eval_spec(**options):
    return estimator.EvalSpec(data, **options)


def train_spec(**options):
    return estimator.TrainSpec(data, **options)


def with_task(task_type):
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"chief": ["h:1"], "ps": ["h:2"]}, "task": {"type": task_type, "index": 0}}
    )
    try:
        made(config=estimator.RunConfig()).train(data, steps=1)
    finally:
        del os.environ["TF_CONFIG"]


final, latest = estimator.FinalExporter("a", lambda: None), estimator.LatestExporter("a", lambda: None)
DRIVER = {
    "train_spec_input_fn_not_callable": lambda: estimator.TrainSpec(1),
    "train_spec_max_steps_0": lambda: train_spec(max_steps=0),
    "train_spec_hook_wrong_type": lambda: train_spec(hooks=["a"]),
    "train_spec_listener_wrong_type": lambda: train_spec(saving_listeners=["a"]),
    "eval_spec_input_fn_not_callable": lambda: estimator.EvalSpec(1),
    "eval_spec_steps_0": lambda: eval_spec(steps=0),
    "eval_spec_name_not_text": lambda: eval_spec(name=1),
    "eval_spec_hook_wrong_type": lambda: eval_spec(hooks=["a"]),
    "eval_spec_exporter_wrong_type": lambda: eval_spec(exporters=3),
    "eval_spec_exporters_wrong_type": lambda: eval_spec(exporters=[3]),
    "eval_spec_exporters_same_name": lambda: eval_spec(exporters=[final, latest]),
    "eval_spec_exporter_without_name": lambda: eval_spec(exporters=estimator.FinalExporter("", lambda: None)),
    "eval_spec_delay_negative": lambda: eval_spec(start_delay_secs=-1),
    "eval_spec_throttle_negative": lambda: eval_spec(throttle_secs=-1),
    "both_estimator_wrong_type": lambda: estimator.train_and_evaluate("a", train_spec(), eval_spec()),
    "both_train_spec_wrong_type": lambda: estimator.train_and_evaluate(made(), "a", eval_spec()),
    "both_eval_spec_wrong_type": lambda: estimator.train_and_evaluate(made(), train_spec(), "a"),
    "both_eval_spec_list": lambda: estimator.train_and_evaluate(made(), train_spec(), [eval_spec()]),
    "train_as_ps": lambda: with_task("ps"),
    "train_as_evaluator": lambda: with_task("evaluator"),
}


def receiver():
    x = tf.compat.v1.placeholder(tf.float32, [None, 2])
    return estimator.export.ServingInputReceiver({"x": x}, {"x": x})


export = estimator.export
EXPORT = {
    "export_untrained": lambda: made().export_saved_model(tempfile.mkdtemp(), receiver),
    "export_receiver_none": lambda: trained().export_saved_model(tempfile.mkdtemp(), None),
    "export_receiver_returns_dict": lambda: trained().export_saved_model(tempfile.mkdtemp(), dict),
    "export_checkpoint_missing": lambda: trained().export_saved_model(
        tempfile.mkdtemp(), receiver, checkpoint_path="/nonexist/model.ckpt-1"
    ),
    "receiver_features_none": lambda: export.ServingInputReceiver(None, {"x": loss()}),
    "receiver_features_number": lambda: export.ServingInputReceiver({"x": 1}, {"x": loss()}),
    "receiver_features_key": lambda: export.ServingInputReceiver({(1,): loss()}, {"x": loss()}),
    "receiver_tensors_number": lambda: export.ServingInputReceiver({"x": loss()}, {"x": 1}),
    "receiver_tensors_key": lambda: export.ServingInputReceiver({"x": loss()}, {1: loss()}),
    "receiver_tensors_none": lambda: export.ServingInputReceiver({"x": loss()}, None),
    "receiver_alternatives_not_a_dict": lambda: export.ServingInputReceiver({"x": loss()}, {"x": loss()}, ["a"]),
    "classification_empty": lambda: export.ClassificationOutput(),
    "classification_integer_scores": lambda: export.ClassificationOutput(scores=tf.constant([1])),
    "classification_integer_classes": lambda: export.ClassificationOutput(classes=tf.constant([1])),
    "classification_scores_not_a_tensor": lambda: export.ClassificationOutput(scores="a"),
    "regression_text": lambda: export.RegressionOutput(tf.constant(["a"])),
    "regression_not_a_tensor": lambda: export.RegressionOutput("a"),
    "predict_not_tensors": lambda: export.PredictOutput({"a": "b"}),
    "predict_key_not_text": lambda: export.PredictOutput({1: loss()}),
    "exporter_name_none": lambda: estimator.FinalExporter(None, lambda: None).name,
}

numpy_input_fn = tf.compat.v1.estimator.inputs.numpy_input_fn
x, y = rows(4)
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


def main():
    cases = {}
    for group in (CONSTRUCTOR, TRAINING, SPECS, EVALUATION, DRIVER, EXPORT, INPUTS):
        for name, function in group.items():
            cases[name] = {"error": error_of(function)}
            tf.compat.v1.summary.FileWriterCache.clear()
    write(__file__, cases, helpers=("tf_scenario.py", "tf_tracers.py"))


if __name__ == "__main__":
    main()
