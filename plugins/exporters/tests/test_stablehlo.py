"""The `stablehlo` format returns what the estimator returns, for every batch size and every kind of model."""

import json
import logging
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError, ExportError
from estimator_core.testing import ExportFormatSuite
from estimator_exporters.stablehlo import StableHLOFormat
from plugins.exporters.tests.small_model import input_fn, model_fn, receiver_fn, rows, trained

WIDE = ec.export.Feature((None, 3))


class TestFormat(ExportFormatSuite):
    def make(self):
        return StableHLOFormat()


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_gives_what_the_estimator_predicts(estimator, export, batch):
    features, _ = rows(batch, seed=batch)
    found = ec.export.load(export).signatures["serving_default"](**features)
    expected = estimator.predictor()(features)
    assert set(found) == {"logits", "class_ids"}
    np.testing.assert_allclose(found["logits"], expected["logits"], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(found["class_ids"], expected["class_ids"])


def test_inputs_are_checked_by_name_shape_dtype_and_range(export):
    signature = ec.export.load(export).signatures["serving_default"]
    for arrays, message in (
        ({}, r"missing inputs \['x'\]"),
        ({"x": np.zeros((1, 3), np.float32), "y": 1}, r"unknown inputs \['y'\]"),
        ({"x": np.zeros((0, 3), np.float32)}, r"must have shape \(None, 3\), given \(0, 3\)"),
        ({"x": np.array([["a", "b", "c"]])}, "must be float32, given <U1"),
        ({"x": np.zeros((1, 3), complex)}, "must be float32, given complex128"),
    ):
        with pytest.raises(ArgumentError, match=message):
            signature(**arrays)


def trace_twice(features, labels, mode):
    """A model that refuses a symbolic batch size, because it checks whether the batch is larger than one."""
    spec = model_fn(features, labels, mode)
    if mode == ec.ModeKeys.PREDICT and features["x"].shape[0] > 1:
        return spec._replace(predictions={**spec.predictions, "logits": spec.predictions["logits"] * 1.0})
    return spec


def test_a_model_that_refuses_a_symbolic_batch_is_padded_and_cut(tmp_path, caplog):
    estimator = trained(tmp_path / "model", trace_twice)
    with caplog.at_level(logging.WARNING, logger="estimator_core"):
        path = estimator.export_saved_model(str(tmp_path / "exports"), receiver_fn)
    assert 'features["x"].shape[0] > 1' in caplog.text, "the user's line is not in the warning"
    signature = ec.export.load(path).signatures["serving_default"]
    for batch in (1, 3, 64, 130):
        features, _ = rows(batch, seed=batch)
        expected = estimator.predictor()(features)["logits"]
        np.testing.assert_allclose(signature(**features)["logits"], expected, rtol=0, atol=1e-5)


def test_outputs_of_the_whole_batch_are_not_padded(tmp_path):
    def with_mean(features, labels, mode):
        spec = trace_twice(features, labels, mode)
        return spec._replace(predictions={**spec.predictions, "mean": spec.predictions["logits"].mean()})

    path = trained(tmp_path / "model", with_mean).export_saved_model(str(tmp_path / "exports"), receiver_fn)
    signature = ec.export.load(path).signatures["serving_default"]
    found = signature(**rows(4)[0])
    np.testing.assert_allclose(found["mean"], found["logits"].mean(), rtol=1e-5)
    with pytest.raises(ArgumentError, match=r"batch of 3 rows would be padded.*\['mean'\].*\[1, 2, 4, 8"):
        signature(**rows(3)[0])


@pytest.mark.parametrize("mode", [ec.ModeKeys.EVAL, ec.ModeKeys.TRAIN])
def test_a_mode_with_metrics_is_exported_for_any_batch_size(tmp_path, caplog, mode):
    def with_metrics(features, labels, mode):
        spec = model_fn(features, labels, mode)
        if mode == ec.ModeKeys.PREDICT:
            return spec
        kinds, logits = spec.predictions["class_ids"], spec.predictions["logits"]
        shares = {"mean": ec.metrics.mean(logits[:, 0]), "accuracy": ec.metrics.accuracy(labels, kinds)}
        return spec._replace(eval_metric_ops=shares)

    estimator = trained(tmp_path / "model", with_metrics)
    receiver = ec.export.build_supervised_input_receiver_fn_from_input_fn(input_fn())
    with caplog.at_level(logging.WARNING, logger="estimator_core"):
        path = estimator.export_saved_model(str(tmp_path / "e"), receiver, experimental_mode=mode)
    assert "cannot be exported for any batch size" not in caplog.text
    features, labels = rows(13, seed=3)
    found = ec.export.load(path).signatures[mode](**features, label=labels)
    expected = estimator.evaluate(lambda: [(features, labels)])["loss"]
    np.testing.assert_allclose(found["loss"], expected, rtol=1e-5)


class Lengths:
    """Replaces text with its length."""

    name, version, files = "lengths", 1, {}

    def __init__(self, named):
        self.named = named

    def config(self):
        return {"named": self.named}

    def apply(self, batch):
        if not all(batch[self.named].reshape(-1)):
            raise ValueError("a text is empty")
        return {**batch, self.named: np.char.str_len(batch[self.named].astype(str)).astype(np.int32)}


@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize("mode", [ec.ModeKeys.EVAL, ec.ModeKeys.TRAIN])
def test_labels_and_features_that_are_text_go_through_the_transforms(tmp_path, mode, bare):
    """The transform of labels rejects empty text, so an export can try it only on labels from the input."""

    def of_text(features, labels, mode):
        y = features["word"] * ec.get_variable("slope", ()) + features["x"].sum(axis=1)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"y": y})
        wanted = labels if bare else labels["label"]
        return ec.EstimatorSpec(mode, predictions={"y": y}, loss=((y - wanted) ** 2).mean(), train_op=optax.sgd(0.01))

    words = np.array(["a", "bcd", "ef", "g"])
    features = {"word": words, "x": np.ones((4, 3), np.float32)}
    labels = np.array(["one", "two", "three", "four"])

    def batches():
        return [(features, labels if bare else {"label": labels})]

    config = ec.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=1)
    transforms = {
        "host_transforms": [Lengths("word")],
        "label_transforms": [Lengths("labels" if bare else "label")],
    }
    estimator = ec.Estimator(of_text, config=config, **transforms).train(batches)
    receiver = ec.export.build_supervised_input_receiver_fn_from_input_fn(batches)
    assert receiver().features["word"] == ec.export.Feature((None,), "string")
    assert receiver().labels == {"label": ec.export.Feature((None,), "string")}
    path = estimator.export_saved_model(str(tmp_path / "e"), receiver, experimental_mode=mode)
    sent = {"word": np.array([1, 3, 2, 1], np.int32), "x": features["x"], "label": np.array([3, 3, 5, 4], np.int32)}
    found = ec.export.load(path).signatures[mode](**sent)["loss"]
    np.testing.assert_allclose(found, estimator.evaluate(batches)["loss"], rtol=1e-5)


def test_what_calls_back_is_refused_before_anything_is_written(tmp_path):
    def printing(features, labels, mode):
        jax.debug.print("{}", features["x"][0, 0])
        return model_fn(features, labels, mode)

    estimator = trained(tmp_path / "model", printing)
    with pytest.raises(ExportError, match=r"Signature 'serving_default' calls back into Python \(debug_print\)"):
        estimator.export_saved_model(str(tmp_path / "exports"), receiver_fn)
    assert not (tmp_path / "exports").exists()


def test_outputs_are_told_apart_from_the_batch_by_more_than_their_size(tmp_path):
    """A constant output of two rows is not a batch, although some batches have two rows."""

    def with_table(features, labels, mode):
        spec = model_fn(features, labels, mode)
        return spec._replace(predictions={**spec.predictions, "table": ec.get_variable("table", (2, 5))})

    config = ec.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=1)
    estimator = ec.Estimator(with_table, config=config).train(input_fn(), steps=1)
    signature = ec.export.load(estimator.export_saved_model(str(tmp_path / "e"), receiver_fn)).signatures[
        "serving_default"
    ]
    assert signature.outputs["table"].shape == (2, 5)
    assert signature.outputs["logits"].shape == (None, 2)
    assert signature(**rows(4)[0])["table"].shape == (2, 5)


def test_outputs_whose_shape_no_signature_can_have_are_refused(tmp_path):
    def similarities(features, labels, mode):
        spec = model_fn(features, labels, mode)
        return spec._replace(predictions={**spec.predictions, "pairs": features["x"] @ features["x"].T})

    estimator = trained(tmp_path / "model", similarities)
    with pytest.raises(ExportError, match=r"Output 'pairs' .* has shape \(b, b\)"):
        estimator.export_saved_model(str(tmp_path / "exports"), receiver_fn)
    assert [path.name for path in (tmp_path / "exports").glob("*")] == []


def test_fixed_batch_size(estimator, tmp_path):
    fixed = ec.export.build_raw_serving_input_receiver_fn({"x": WIDE}, default_batch_size=4)
    signature = ec.export.load(estimator.export_saved_model(str(tmp_path), fixed)).signatures["serving_default"]
    assert signature.inputs["x"].shape == (4, 3)
    assert signature(**rows(4)[0])["logits"].shape == (4, 2)
    with pytest.raises(ArgumentError, match=r"must have shape \(4, 3\)"):
        signature(**rows(5)[0])


def test_several_modes_share_one_export(estimator, tmp_path):
    supervised = ec.export.build_supervised_input_receiver_fn_from_input_fn(input_fn())
    path = estimator.experimental_export_all_saved_models(
        str(tmp_path), {"infer": receiver_fn, "eval": supervised, "train": supervised}
    )
    signatures = ec.export.load(path).signatures
    assert set(signatures) == {"serving_default", "eval", "train"}
    features, labels = rows(5)
    found = signatures["eval"](**features, label=labels)
    logits = signatures["serving_default"](**features)["logits"]
    np.testing.assert_allclose(found["predictions/logits"], logits, rtol=0, atol=1e-6)
    expected = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    np.testing.assert_allclose(found["loss"], expected, rtol=1e-6)
    assert len(list(Path(path).glob("*.safetensors"))) == 1


def test_a_checkpoint_can_be_exported(tmp_path):
    estimator = trained(tmp_path / "model")
    earlier = estimator.latest_checkpoint()
    features, _ = rows(3)
    before = estimator.predictor()(features)["logits"]
    estimator.train(input_fn(), steps=2)
    path = estimator.export_saved_model(str(tmp_path / "e"), receiver_fn, checkpoint_path=earlier)
    np.testing.assert_allclose(
        ec.export.load(path).signatures["serving_default"](**features)["logits"], before, atol=1e-6
    )
    assert json.loads(Path(path, "manifest.json").read_text())["provenance"]["checkpoint"] == earlier


def test_a_fresh_estimator_exports_what_another_process_trained(estimator, tmp_path):
    other = ec.Estimator(model_fn, config=estimator.config)
    path = other.export_saved_model(str(tmp_path), receiver_fn)
    features, _ = rows(3)
    expected = estimator.predictor()(features)["logits"]
    np.testing.assert_allclose(
        ec.export.load(path).signatures["serving_default"](**features)["logits"], expected, atol=1e-6
    )


def test_only_the_weights_change_from_export_to_export(tmp_path):
    estimator = trained(tmp_path / "model")
    traced = []

    def counting(features, labels, mode):
        traced.append(mode)
        return model_fn(features, labels, mode)

    estimator = ec.Estimator(counting, config=estimator.config).train(input_fn(), steps=1)
    first = estimator.export_saved_model(str(tmp_path / "e"), receiver_fn)
    before = traced.count("infer")
    estimator.train(input_fn(), steps=1)
    second = estimator.export_saved_model(str(tmp_path / "e"), receiver_fn)
    assert traced.count("infer") == before, "the second export traced model_fn again"
    programs = [(Path(path) / "programs" / "0.jaxexport").read_bytes() for path in (first, second)]
    assert programs[0] == programs[1]
    weights = [(Path(path) / "variables.safetensors").read_bytes() for path in (first, second)]
    assert weights[0] != weights[1]


def test_bfloat16_and_scalar_and_empty_variables_travel(tmp_path):
    def mixed(features, labels, mode):
        spec = model_fn(features, labels, mode)
        scale = ec.get_variable("scale", (), jax.nn.initializers.ones, dtype=jnp.bfloat16)
        flag = ec.get_variable(
            "flag", (2,), lambda key, shape, dtype: jnp.ones(shape, dtype), dtype=jnp.bool_, trainable=False
        )
        narrow = features["x"].astype(jnp.bfloat16) * scale
        return spec._replace(
            predictions={**spec.predictions, "narrow": narrow, "flag": jnp.broadcast_to(flag, (len(narrow), 2))}
        )

    estimator = trained(tmp_path / "model", mixed)
    signature = ec.export.load(estimator.export_saved_model(str(tmp_path / "e"), receiver_fn)).signatures[
        "serving_default"
    ]
    found = signature(**rows(2)[0])
    assert str(found["narrow"].dtype) == "bfloat16"
    np.testing.assert_allclose(found["narrow"].astype(np.float32), rows(2)[0]["x"], rtol=1e-2)
    assert found["flag"].dtype == bool
    assert found["flag"].all()


def test_a_callback_into_python_is_refused(tmp_path):
    def talking(features, labels, mode):
        spec = model_fn(features, labels, mode)
        if mode == ec.ModeKeys.PREDICT:
            jax.debug.print("{}", features["x"].sum())
        return spec

    estimator = trained(tmp_path / "model", talking)
    with pytest.raises(ExportError, match=r"(?s)callback|cannot be exported"):
        estimator.export_saved_model(str(tmp_path / "e"), receiver_fn)


def test_assets_travel_and_bad_ones_are_refused_before_anything_is_written(estimator, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("one\n")
    path = estimator.export_saved_model(
        str(tmp_path / "e"), receiver_fn, assets_extra={"vocabulary/words.txt": str(words)}
    )
    assert (Path(path) / "assets" / "vocabulary" / "words.txt").read_text() == "one\n"
    for assets, message in (
        ({"a": str(tmp_path / "none")}, "there is no file"),
        ({"../a": str(words)}, "relative path"),
        ({".": str(words)}, "relative path"),
        ({"a": str(words), "./a": str(words)}, r"'a' and '\./a' overlap in the export"),
        ({"a/b": str(words), "a": str(words)}, "'a/b' and 'a' overlap in the export"),
    ):
        with pytest.raises(ArgumentError, match=message):
            estimator.export_saved_model(str(tmp_path / "f"), receiver_fn, assets_extra=assets)
    assert not (tmp_path / "f").exists()


def test_an_export_is_read_back_once(estimator, tmp_path, monkeypatch):
    loads = []
    load = StableHLOFormat.load
    monkeypatch.setattr(
        StableHLOFormat, "load", lambda self, directory: loads.append(directory) or load(self, directory)
    )
    path = estimator.export_saved_model(str(tmp_path / "exports"), receiver_fn)
    assert len(loads) == 1
    assert not loads[0].exists()  # the export was read under its temporary name
    assert ec.export.latest_export(tmp_path / "exports") == path


def test_an_export_with_other_weights_is_not_published(estimator, tmp_path, monkeypatch):
    from estimator_exporters.stablehlo import write

    def changed(values, path, *, save_file=write.save_file):
        save_file({name: value + 1 for name, value in values.items()}, path)

    monkeypatch.setattr(write, "save_file", changed)
    with pytest.raises(ExportError, match=r"does not reproduce the estimator: signature 'serving_default', output"):
        estimator.export_saved_model(str(tmp_path / "exports"), receiver_fn)
    assert list((tmp_path / "exports").iterdir()) == []
