"""Tests of the inputs of model_fn, and of the signatures of an EstimatorSpec."""

import contextlib

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.errors import ArgumentError, ExportError, InputError
from estimator_core.plugins import Plugins
from estimator_core.testing import array_format
from estimator_core.train_eval import rehearsal
from estimator_signatures.outputs import signature_class_names, signature_methods, signature_outputs
from estimator_signatures.receiving import features_after, renaming

X = ec.export.Feature((None, 2))
SCORES = np.zeros((2, 3), np.float32)


def test_receiver_tensors_of_other_names_are_renamed_by_identity():
    (rename,) = renaming({"input": X}, {"x": X})
    assert list(rename.apply({"input": SCORES})) == ["x"]
    assert renaming({"x": X}, {"x": X}) == ()
    with pytest.raises(ExportError, match="'x' cannot be made from the receiver_tensors"):
        renaming({"input": ec.export.Feature((None, 2))}, {"x": X})


def test_features_that_are_one_object_keep_their_names():
    assert renaming({"x": X, "y": X, "z": X}, {"x": X, "y": X, "z": X}) == ()
    with pytest.raises(ExportError, match="are one Feature object, so it is unclear which of them it is"):
        renaming({"p": X, "q": X}, {"x": X})
    other = ec.export.Feature((None, 3))  # the receiver tensor of its name is another feature already
    for received, features in (({"x": X}, {"y": X, "x": other}), ({"x": X}, {"y": X, "x": X})):
        with pytest.raises(ExportError, match="Features 'y' and 'x' would both be made from the receiver tensor 'x'"):
            renaming(received, features)


def test_host_transforms_show_what_they_give():
    class Length:
        name, version, files = "length", 1, {}

        def config(self):
            return {}

        def apply(self, batch):
            return {"length": np.char.str_len(batch["text"].astype(str)).astype(np.int32)}

    found = features_after([Length()], {"text": ec.export.Feature((None,), "string")})
    assert found == {"length": ec.export.Feature((None,), "int32")}

    class Strict(Length):
        def apply(self, batch):
            raise KeyError("unknown word ''")

    with pytest.raises(ExportError, match="Pass the transforms to the receiver instead"):
        features_after([Strict()], {"text": ec.export.Feature((None,), "string")})


def spec(mode="infer", **fields):
    return ec.EstimatorSpec(mode, predictions={"y": SCORES}, **fields)


def test_signatures_of_predictions_and_of_one_output():
    assert signature_outputs(spec()) == {"serving_default": {"y": SCORES}}
    one = spec(export_outputs={"rank": ec.export.RegressionOutput(SCORES)})
    assert {name: list(outputs) for name, outputs in signature_outputs(one).items()} == {
        "rank": ["outputs"],
        "serving_default": ["outputs"],
    }
    assert signature_methods(one) == {"rank": "regress", "serving_default": "regress"}


def test_several_outputs_need_a_default():
    several = {"a": ec.export.PredictOutput(SCORES), "b": ec.export.PredictOutput(SCORES)}
    with pytest.raises(
        ExportError, match=r"Multiple `export_outputs` were provided, but none of them .* 'serving_default'"
    ):
        signature_outputs(spec(export_outputs=several))


def test_classification_keeps_its_class_names():
    names = ("cat", "dog", "cow")
    output = ec.export.ClassificationOutput(SCORES, np.zeros((2, 3), np.int32), names)
    assert signature_class_names(spec(export_outputs={"serving_default": output})) == {"serving_default": names}


def test_names_of_a_multi_head_are_joined_and_other_objects_refused():
    outputs = {"serving_default": ec.export.PredictOutput({"a/logits": SCORES})}
    assert list(signature_outputs(spec(export_outputs=outputs))["serving_default"]) == ["a/logits"]
    tuples = ec.EstimatorSpec("infer", predictions={("a", "logits"): SCORES})
    assert list(signature_outputs(tuples)["serving_default"]) == ["a/logits"]
    with pytest.raises(ExportError, match="values must be"):
        signature_outputs(spec(export_outputs={"serving_default": {"y": SCORES}}))


def test_evaluation_signatures_have_the_names_of_the_original():
    found = signature_outputs(spec("eval", loss=np.float32(1)))
    assert list(found) == ["eval"]
    assert list(found["eval"]) == ["loss", "predictions/y"]


class EquallyLong:
    """A transform of a text sequence and a number sequence, which need equal lengths. Empty text does not count."""

    name, version, files = "equally_long", 1, {}

    def config(self):
        return {}

    def apply(self, batch):
        if ((batch["words"] != "").sum(axis=1) != batch["speeds"].shape[1]).any():
            raise InputError("Sequences must be as long as each other.")
        return {"ids": np.zeros(batch["words"].shape, np.int32), "speeds": batch["speeds"]}


def test_sequences_of_text_and_of_numbers_are_as_long_as_each_other_in_the_batch_that_is_tried():
    given = {"words": ec.export.Feature((None, 4), "string"), "speeds": ec.export.Feature((None, 4))}
    found = features_after([EquallyLong()], given)
    assert found == {"ids": ec.export.Feature((None, 4), "int32"), "speeds": ec.export.Feature((None, 4))}
    with pytest.raises(ExportError, match="as long as each other"):
        features_after([EquallyLong()], given | {"speeds": ec.export.Feature((None, 3))})


class Ended(EquallyLong):
    """The sequence of numbers ends at its first zero."""

    def apply(self, batch):
        if ((batch["words"] != "").sum(axis=1) != (batch["speeds"] != 0).sum(axis=1)).any() or not batch["ages"].any():
            raise InputError("Sequences must be as long as each other.")
        return dict(batch)


def test_sequences_that_end_where_zeros_begin_have_steps_in_a_batch_that_is_tried():
    given = {name: ec.export.Feature((None, 4), dtype) for name, dtype in (("words", "string"), ("speeds", "bfloat16"))}
    given["ages"] = ec.export.Feature((None,), "int64")
    assert features_after([Ended()], given) == given


def test_a_model_without_labels_has_an_eval_signature():
    receiver = ec.export.SupervisedInputReceiver({"x": X})
    assert (receiver.labels, receiver.bare_labels) == ({}, False)


def test_a_name_of_a_feature_and_of_a_label_is_refused():
    with pytest.raises(ArgumentError, match="names of features and of labels"):
        ec.export.SupervisedInputReceiver({"x": X}, labels={"x": X})


class NumbersOfWords:
    """Converts labels that are words to their lengths, in batches and in exports."""

    name, version, files = "numbers_of_words", 1, {}

    def config(self):
        return {}

    def apply(self, batch):
        return {name: np.char.str_len(words.astype(str)).astype(np.float32) for name, words in batch.items()}

    def open(self, source, *, mode, memory, check):
        return source, lambda element: (element[0], self.apply({"labels": element[1]})["labels"])

    def transforms(self, memory):
        return ()

    def exported_labels(self, memory):
        return (self,)


def test_a_rehearsed_export_has_the_labels_of_the_export(tmp_path):
    def model_fn(features, labels, mode):
        loss = ((features["x"] @ ec.get_variable("w", (2,)) - labels) ** 2).mean()
        return ec.EstimatorSpec(mode, loss=loss)

    model_fn.data_contract = NumbersOfWords()
    estimator = ec.Estimator(model_fn, str(tmp_path / "m"), plugins=Plugins(extra=[array_format]))
    words = np.array(["one", "three"])
    inputs = ec.inputs.numpy_input_fn({"x": np.ones((2, 2), np.float32)}, words, batch_size=2, shuffle=False)
    tried = rehearsal(estimator)
    with contextlib.closing(tried.open(inputs, "eval")) as batches:
        tried.trace("eval", next(batches))

    def receiver():
        return ec.export.SupervisedInputReceiver({"x": X}, labels=ec.export.Feature((None,), "string"))

    tried.check_export(receiver, experimental_mode="eval", format="arrays")
