"""Tests that each mistake raises an error of the same kind as in tf.estimator, with a message that begins alike."""

import tempfile

import pytest

from tests.parity import compare, data
from tests.parity.core_mistakes import MISTAKES

CASES = data.load("errors")

#: Mistakes that are not made here, by the beginning of their name, with the reason.
NOT_MADE = {
    "export_": "belongs to the export formats",
    "receiver_": "see tests of the export contract",
    "classification_": "see tests of the export contract",
    "regression_": "see tests of the export contract",
    "predict_not_tensors": "see tests of the export contract",
    "predict_key_not_text": "see tests of the export contract",
    "exporter_name_none": "see tests of the exporters",
    "spec_metrics_keras_not_updated": "there are no Keras metrics",
    "spec_export_output": "see tests of the export contract",
    "train_input_fn_list_of_one": "a list is an iterable of batches",
}
#: Refused by tf.estimator, accepted here, with the reason.
ACCEPTED_HERE = {
    "train_loss_a_number": "a number is an array",
    "spec_predictions_a_number": "a number is an array",
    "spec_predictions_dict_of_numbers": "a number is an array",
    "both_eval_spec_list": "several EvalSpecs are welcome",
}

#: Accepted by tf.estimator, refused here, with the reason.
REFUSED_HERE = {
    "train_returned_export_outputs_wrong_type": "fields of other modes are checked too",
    "train_other_shape_than_checkpoint": "there the old shape is trained in silence",
    "spec_mode_unknown": "there any mode passes",
    "evaluate_untrained": "there random weights are evaluated; RunConfig(allow_untrained=True) does it here",
    "predict_untrained": "there random weights predict; RunConfig(allow_untrained=True) does it here",
}

#: Refused by both, here with an error of another kind, with the reason.
OTHER_KIND = {
    **dict.fromkeys(["config_wrong_type", "warm_start_wrong_type"], "a wrong type is a TypeError"),
    **dict.fromkeys(
        ["warm_start_missing", "train_variable_not_in_checkpoint", "variable_value_unknown"],
        "NotFoundError is TensorFlow's own class",
    ),
    "train_input_fn_unknown_argument": "what breaks the contract of input_fn is an InputError, a ValueError",
    **dict.fromkeys(
        [
            "train_loss_text",
            "train_op_a_number",
            "train_returned_hook_wrong_type",
            "train_returned_chief_hook_wrong_type",
            "train_returned_scaffold_wrong_type",
            "spec_metrics_a_list",
            "spec_metrics_a_number",
            "spec_metrics_one_of_two",
            "spec_metrics_not_tensors",
            "spec_evaluation_hooks_wrong_type",
            "spec_prediction_hooks_wrong_type",
            "spec_export_outputs_not_a_dict",
        ],
        "what model_fn returns wrongly is a ModelFnError, a ValueError",
    ),
    "predict_scalar": "there an index runs out of range",
    "add_metrics_not_an_estimator": "there an attribute is missing",
}

#: Refused by both, but the message begins differently, with the reason.
OTHER_WORDS = {
    **dict.fromkeys(
        [
            "warm_start_missing",
            "train_variable_not_in_checkpoint",
            "variable_value_unknown",
            "evaluate_checkpoint_missing",
        ],
        "says what is missing and what is there",
    ),
    **dict.fromkeys(
        [
            "train_hook_wrong_type",
            "train_returned_hook_wrong_type",
            "train_returned_chief_hook_wrong_type",
            "spec_evaluation_hooks_wrong_type",
            "spec_prediction_hooks_wrong_type",
            "evaluate_hook_wrong_type",
            "predict_hook_wrong_type",
            "train_spec_hook_wrong_type",
            "train_spec_listener_wrong_type",
            "eval_spec_hook_wrong_type",
        ],
        "says first where the hooks were given",
    ),
    **dict.fromkeys(
        [
            "train_hooks_not_a_list",
            "train_input_fn_not_callable",
            "train_input_fn_unknown_argument",
            "spec_metrics_not_tensors",
            "predict_scalar",
            "add_metrics_not_an_estimator",
        ],
        "there the message is Python's own",
    ),
    "train_input_fn_three_values": "a tuple of three is three batches, of which the first is no array",
}

#: Mistakes in features of estimator-warm-start and estimator-heads.
NEED_PLUGINS = {
    "warm_start_empty",
    "warm_start_missing",
    "add_metrics_unexpected_argument",
    "add_metrics_not_an_estimator",
}


def is_made(name):
    return name in MISTAKES


def refusal(name):
    try:
        MISTAKES[name]()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.plugins] * (name in NEED_PLUGINS)) for name in filter(is_made, CASES)],
)
def test_mistake(name, compilation_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the folder for model_dirs of mistakes
    recorded, error = CASES[name]["error"], refusal(name)
    if recorded is None or error is None:
        assert (recorded is None, error is None) == (
            name in REFUSED_HERE or recorded is None,
            name in ACCEPTED_HERE or (recorded is None and name not in REFUSED_HERE),
        )
        return
    kinds = [kind.__name__ for kind in type(error).__mro__]
    assert "EstimatorError" in kinds
    assert (recorded["type"] in kinds) != (name in OTHER_KIND)
    searched = compare.first_words(recorded["message"])
    assert (compare.first_words(str(error))[: len(searched)] == searched) != (name in OTHER_WORDS)


def test_every_mistake_is_made_or_named():
    assert {name for name in CASES if not is_made(name) and not name.startswith(tuple(NOT_MADE))} == set()
    assert all(any(name.startswith(start) for name in CASES) for start in NOT_MADE)
    assert {*REFUSED_HERE, *ACCEPTED_HERE, *OTHER_KIND, *OTHER_WORDS} <= set(MISTAKES) <= set(CASES)
