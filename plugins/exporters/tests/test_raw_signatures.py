"""Tests of raw signatures, with tf.Examples, host transforms and class names, in exports and other processes."""

from types import SimpleNamespace

import jax
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError, ExportError, InputError
from estimator_core.export import RawSignature
from estimator_exporters.bundle.loaded import Signature
from plugins.exporters.tests.small_model import model_fn, receiver_fn, rows, trained


def record(values):
    example = ec.export.example_class()()
    example.features.feature["x"].float_list.value.extend(values)
    return example.SerializeToString()


def test_a_feature_may_have_the_name_of_an_argument_of_methods():
    column = {"self": ec.export.Feature((None,))}
    own = Signature(name="s", method="predict", inputs=column, outputs=column, run=lambda arrays: arrays)
    for signature in (own, RawSignature(signature=own, inputs=column, before=(), after=(), class_names=None)):
        assert signature(**{"self": np.ones(2, np.float32)})["self"].tolist() == [1, 1]


@pytest.mark.plugins  # the transform is part of estimator-inputs
def test_records_of_tf_example_are_parsed_on_the_host(estimator, tmp_path):
    parsing = ec.export.build_parsing_serving_input_receiver_fn({"x": ec.export.FixedLenFeature((3,), "float32")})
    loaded = ec.export.load(estimator.export_saved_model(str(tmp_path), parsing))
    features, _ = rows(5)
    raw = loaded.raw_signatures["serving_default"]
    assert raw.inputs == {"examples": ec.export.Feature((None,), "string")}
    found = raw(examples=np.array([record(row.tolist()) for row in features["x"]], object))
    expected = loaded.signatures["serving_default"](**features)
    np.testing.assert_array_equal(found["logits"], expected["logits"])
    with pytest.raises(ArgumentError, match=r"^Record 0 is not a serialized tf\.Example"):
        raw(examples=np.array([b"\xff\xff"], object))
    with pytest.raises(ArgumentError, match=r"missing inputs \['examples'\]"):
        raw(**features)


def test_other_names_for_the_same_features(estimator, tmp_path):
    feature = ec.export.Feature((None, 3))

    def renamed():
        return ec.export.ServingInputReceiver({"x": feature}, {"vector": feature})

    loaded = ec.export.load(estimator.export_saved_model(str(tmp_path), renamed))
    features, _ = rows(2)
    found = loaded.raw_signatures["serving_default"](vector=features["x"])
    np.testing.assert_array_equal(found["logits"], loaded.signatures["serving_default"](**features)["logits"])


def test_several_features_may_be_one_feature_object(tmp_path):
    def of_two(features, labels, mode):
        total = features["a"] + 2 * features["b"] + ec.get_variable("zero", (), jax.nn.initializers.zeros)
        if mode == ec.ModeKeys.PREDICT:
            return ec.EstimatorSpec(mode, predictions={"total": total})
        return ec.EstimatorSpec(mode, loss=total.mean(), train_op=optax.sgd(0.0))

    rows, column = {"a": np.ones(2, np.float32), "b": np.full(2, 3, np.float32)}, ec.export.Feature((None,))
    config = ec.RunConfig(model_dir=str(tmp_path / "model"), tf_random_seed=1)
    estimator = ec.Estimator(of_two, config=config).train(lambda: [rows], steps=1)
    receiver_fn = ec.export.build_raw_serving_input_receiver_fn({"a": column, "b": column})
    loaded = ec.export.load(estimator.export_saved_model(str(tmp_path / "e"), receiver_fn))
    np.testing.assert_array_equal(loaded.raw_signatures["serving_default"](**rows)["total"], [7, 7])


def test_a_model_fn_of_one_bare_array(tmp_path):
    def bare(features, labels, mode):
        return model_fn(features if isinstance(features, dict) else {"x": features}, labels, mode)

    estimator = trained(tmp_path / "model", bare)
    receiver = ec.export.TensorServingInputReceiver(ec.export.Feature((None, 3)))
    loaded = ec.export.load(estimator.export_saved_model(str(tmp_path / "e"), lambda: receiver))
    features, _ = rows(2)
    found = loaded.raw_signatures["serving_default"](input=features["x"])
    np.testing.assert_array_equal(
        found["logits"], loaded.signatures["serving_default"](feature=features["x"])["logits"]
    )


def with_names(features, labels, mode):
    spec = model_fn(features, labels, mode)
    if mode != ec.ModeKeys.PREDICT:
        return spec
    ids = spec.predictions["class_ids"][:, None]
    output = ec.export.ClassificationOutput(spec.predictions["logits"], ids, ("cat", "dog"))
    everything = ec.export.PredictOutput({"classes": ids[:, 0], "all_classes": ids}, class_names=("cat", "dog"))
    return spec._replace(export_outputs={"serving_default": output, "animals": output, "animals/predict": everything})


def test_class_names_take_the_place_of_ids(tmp_path):
    loaded = ec.export.load(
        trained(tmp_path / "model", with_names).export_saved_model(str(tmp_path / "e"), receiver_fn)
    )
    assert set(loaded.signatures) == {"animals", "animals/predict", "serving_default"}
    features, _ = rows(6)
    ids = loaded.signatures["animals"](**features)["classes"]
    names = loaded.raw_signatures["animals"](**features)["classes"]
    assert names.tolist() == np.array(["cat", "dog"])[ids].tolist()
    assert loaded.raw_signatures["animals"].outputs["classes"].dtype == "string"
    everything = loaded.raw_signatures["animals/predict"](**features)
    assert everything["classes"].tolist() == names[:, 0].tolist()
    assert everything["all_classes"].tolist() == names.tolist()
    assert loaded.raw_signatures["animals/predict"].outputs["all_classes"].dtype == "string"


def test_a_string_without_a_transform_is_refused(estimator, tmp_path):
    text = ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None,), "string")})
    with pytest.raises(ExportError, match="Input 'x' is a string, which cannot enter model_fn"):
        estimator.export_saved_model(str(tmp_path), text)
    assert list(tmp_path.iterdir()) == []


def test_transforms_of_the_estimator_are_part_of_the_export(tmp_path):
    estimator = trained(tmp_path / "model", host_transforms=[ec.export.Rename({"raw": "x"})])
    raw = ec.export.build_raw_serving_input_receiver_fn({"raw": ec.export.Feature((None, 3))})
    loaded = ec.export.load(estimator.export_saved_model(str(tmp_path / "e"), raw))
    features, _ = rows(2)
    found = loaded.raw_signatures["serving_default"](raw=features["x"])
    np.testing.assert_array_equal(found["logits"], loaded.signatures["serving_default"](**features)["logits"])
    np.testing.assert_allclose(found["logits"], estimator.predictor()({"raw": features["x"]})["logits"], atol=1e-5)


@pytest.mark.parametrize("transformed", [True, False])
def test_lists_that_are_nested_unevenly_are_refused_by_name(estimator, tmp_path, transformed):
    feature = ec.export.Feature((None, 3))
    received = {"raw" if transformed else "x": feature}
    receiver = ec.export.ServingInputReceiver({"x": feature}, received)
    loaded = ec.export.load(estimator.export_saved_model(str(tmp_path), lambda: receiver))
    uneven = {name: [[1.0, 2.0, 3.0], [1.0]] for name in received}
    with pytest.raises(ArgumentError, match=rf"input '{next(iter(received))}' is not an array: .*nested evenly"):
        loaded.raw_signatures["serving_default"](**uneven)


class Words:
    """Converts words, and numbers that it receives as objects, to the feature x."""

    name, version = "test_words", 1

    def apply(self, batch):
        length = [len(str(one)) for one in batch["word"].tolist()]
        return {"x": np.repeat(np.float32(length)[:, None], 3, axis=1)}


@pytest.mark.parametrize(
    ("dtype", "words", "told"),
    [
        ("int64", ["7", "8"], "input 'word' must be int64, given '7' in row 0"),
        ("int64", [7, None], "input 'word' must be int64, given None in row 1"),
        ("int64", np.array([7, b"8"], object), "input 'word' must be int64, given b'8' in row 1"),
        ("int32", np.array([7, float("nan")], object), "input 'word' must be int32, given nan in row 1"),
        ("float32", [1.5, "8"], "input 'word' must be float32, given '1.5' in row 0"),
        ("float32", np.array([None, "8"], object), "input 'word' must be float32, given '8' in row 1"),
        ("bool", ["true"], "input 'word' must be bool, given 'true' in row 0"),
        ("int64", np.array([7, np.int64(8), True, np.True_], object), None),
        ("int64", [True, False], None),
        ("float32", [1.5, None], None),
        ("string", [7, None], None),
    ],
)
def test_texts_and_missing_values_are_refused_where_numbers_are_received(estimator, tmp_path, dtype, words, told):
    """`estimator serve` refuses them, too. A transform could read them as other words."""
    raw = RawSignature(
        signature=ec.export.load(estimator.export_saved_model(str(tmp_path), receiver_fn)).signatures[
            "serving_default"
        ],
        inputs={"word": ec.export.Feature((None,), dtype)},
        before=(Words(),),
    )
    if told is None:
        assert raw(word=words)["logits"].shape == (len(words), 2)
    else:
        with pytest.raises(ArgumentError, match=told):
            raw(word=words)


class Shown:
    """Replaces class ids by names, and adds a text for each row. It refuses a batch whose logits are all `refused`."""

    name, version = "test_shown", 1

    def __init__(self, refused=None):
        self.refused = refused

    def apply(self, batch):
        if self.refused is not None and (batch["logits"] == self.refused).all():
            raise InputError("refused")
        named = np.array(["cat", "dog"])[batch["class_ids"]]
        pair = np.array([["first", "second"]] * len(named), object)
        return {**batch, "class_ids": named, "pair": pair, "half": batch["logits"].astype(jax.numpy.bfloat16)}


def test_outputs_have_the_form_of_what_transforms_return(estimator, tmp_path):
    """The server describes its models with them. It declared numbers and answered with texts."""
    own = ec.export.load(estimator.export_saved_model(str(tmp_path), receiver_fn)).signatures["serving_default"]
    raw = RawSignature(signature=own, inputs=own.inputs, after=(Shown(),))
    text, pair = ec.export.Feature((None,), "string"), ec.export.Feature((None, 2), "string")
    half = ec.export.Feature((None, 2), "bfloat16")
    assert raw.outputs == {**own.outputs, "class_ids": text, "pair": pair, "half": half}
    refusing = RawSignature(signature=own, inputs=own.inputs, after=(Shown(refused=0.0),))
    assert refusing.outputs == own.outputs


def test_names_of_classes_are_strings_though_a_transform_refuses_zeros():
    rows = ec.export.Feature((None, 2))
    outputs = {"classes": ec.export.Feature((None, 1), "int32"), "logits": rows}
    own = SimpleNamespace(inputs={"x": rows}, outputs=outputs)
    raw = RawSignature(signature=own, inputs=own.inputs, after=(Shown(refused=0.0),), class_names=["cat", "dog"])
    assert raw.outputs == {**outputs, "classes": ec.export.Feature((None, 1), "string")}


def scaled(features, labels, mode):
    return model_fn({"x": features["x"] * features.get("scale", 1.0)}, labels, mode)


@pytest.mark.parametrize("kind", ["signatures", "raw_signatures"])
def test_a_wrong_shape_is_told_with_what_to_pass(tmp_path, kind):
    receiver = ec.export.build_raw_serving_input_receiver_fn(
        {"x": ec.export.Feature((None, 3)), "scale": ec.export.Feature(())}
    )
    loaded = ec.export.load(trained(tmp_path / "m", scaled).export_saved_model(str(tmp_path / "e"), receiver))
    signature = getattr(loaded, kind)["serving_default"]
    x = np.ones((2, 3), np.float32)
    assert signature(x=x, scale=2.0)["logits"].shape == (2, 2)
    for wrong, told in (
        ({"scale": [2.0]}, r"input 'scale' must have shape \(\), given \(1,\)\. Pass one value, not a list\.$"),
        (
            {"x": x[0]},
            r"input 'x' must have shape \(None, 3\), given \(3,\)\. .* pass a list of one for a single row\.$",
        ),
        ({"x": x[:, :2]}, r"input 'x' .*, given \(2, 2\)\. The first axis is the batch; a row is of shape \(3,\)\.$"),
    ):
        with pytest.raises(ArgumentError, match=told):
            signature(**{"x": x, "scale": 2.0, **wrong})


def test_a_wrong_shape_is_told_under_the_name_that_the_client_used(estimator, tmp_path):
    feature = ec.export.Feature((None, 3))
    receiver = ec.export.ServingInputReceiver({"x": feature}, {"vector": feature})
    signature = ec.export.load(estimator.export_saved_model(str(tmp_path), lambda: receiver)).raw_signatures
    with pytest.raises(
        ArgumentError, match=r"In the request, input 'vector' must have shape .*, given \(3,\)\. The first"
    ):
        signature["serving_default"](vector=np.ones(3))
