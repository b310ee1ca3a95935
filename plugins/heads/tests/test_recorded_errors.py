"""The heads refuse what tf.estimator's heads refuse, in the same words if there were any. The lists name exceptions."""

import re

import optax
import pytest

from estimator_core.errors import EstimatorError
from estimator_core.modes import ModeKeys
from plugins.heads.tests import head_recordings, rebuilt_heads

CASES = head_recordings.load("head_errors")


def recorded_errors(case):
    """The messages that the original raised, eager and in a graph. Empty if it raised nothing."""
    found = [case["error"]] if "error" in case else [case["errors"]["eager"], case["errors"]["graph"]]
    return [error["message"] for error in found if error is not None]


#: The cases that are accepted here, with the reason.
ACCEPTED = {
    "spec_train_without_variables": "no list of variables means all of them: there is a variable scope to know them.",
    "data_binary_labels_number_with_vocabulary": "labels that are ids already are taken: the input has converted them.",
    "data_multi_class_labels_number_with_vocabulary": "as above.",
}
#: The cases that are refused here, and that the original accepts.
REFUSED = {"arguments_multi_head_same_names": "different names"}
#: Refused in other words: the original's come from deep inside TensorFlow or name things that do not exist here.
REWORDED = {
    "arguments_binary_threshold_0": "thresholds must be in",  # the same words for both classifiers
    "arguments_binary_threshold_1": "thresholds must be in",
    "arguments_multi_label_vocabulary_text": "label_vocabulary should be a list",
    "data_binary_labels_sparse": "Labels are strings",  # a list of labels per example replaces a SparseTensor
    "data_binary_labels_text": "Labels are strings",
    "data_multi_class_labels_text": "Labels are strings",
    "data_regression_labels_text": "Labels are strings",
    "data_binary_weights_missing": "The weight column 'w' is not among the features",
    "data_binary_weights_text": "Weight column should be castable to float",
    "data_sequence_mask_other_shape": "Tensor shape is incompatible with provided mask",
    "spec_train_optimizer_not_an_optimizer": "The given optimizer is not an optax.GradientTransformation instance",
    "spec_mode_unknown": "mode=unknown unrecognized",
    "spec_regularization_not_a_list": "regularization_losses should be a list",
}


def refused(case):
    """Runs what the case describes."""
    head = rebuilt_heads.build(case["head"])
    if "batch" not in case:
        return
    given = {key: rebuilt_heads.arrays(case["batch"][key]) for key in ("labels", "logits", "features")}
    options = case.get("options")
    if options is None:
        head.loss(**given, mode=ModeKeys.TRAIN)
        return
    if "keys" in options:
        head.predictions(given["logits"], keys=options["keys"])
        return
    given["labels"] = given["labels"] if "labels" not in options else None
    more = {name: options[name] for name in ("update_ops", "regularization_losses") if name in options}
    if "optimizer" in options:
        more["optimizer"] = optax.sgd(0.1) if options["optimizer"] == "sgd" else options["optimizer"]
    if "variables" in options:
        more["trainable_variables"] = options["variables"]
    if options.get("train_op_fn"):
        more["train_op_fn"] = lambda loss: optax.sgd(0.1)
    head.create_estimator_spec(mode=options["mode"], **given, **more)


def first_words(message):
    # Only up to the first value, so that the messages here may add what was found and what to do.
    return re.split(r"[:.(]|Given|Received|Expected|got ", message.lstrip("('"))[0].strip()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if name in REFUSED or recorded_errors(case)])
def test_refused(name):
    if name in ACCEPTED:
        refused(CASES[name])
        return
    words = REFUSED.get(name) or REWORDED.get(name) or first_words(recorded_errors(CASES[name])[0])
    assert len(words) > 10
    with pytest.raises(EstimatorError, match=re.escape(words)) as caught:
        refused(CASES[name])
    if name in REWORDED:  # and the words still differ
        assert not any(first_words(message) in str(caught.value) for message in recorded_errors(CASES[name]))


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if name not in REFUSED and not recorded_errors(case)]
)
def test_accepted_by_both(name):
    refused(CASES[name])


def test_the_lists_name_what_differs():
    assert ACCEPTED.keys() | REFUSED.keys() | REWORDED.keys() <= CASES.keys()
    assert all(recorded_errors(CASES[name]) for name in [*ACCEPTED, *REWORDED])
    assert not any(recorded_errors(CASES[name]) for name in REFUSED)
