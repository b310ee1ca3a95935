"""Tests of the intended differences between the heads and tf.estimator's: each has a reason and a recording.

A difference that its recording no longer shows fails here, so that the list stays correct.
"""

import jax
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._model.scope import applying
from estimator_core.metrics import compute_metrics, merge_metrics
from plugins.heads.tests import head_recordings, rebuilt_heads


def opened(recording, name):
    """A recorded case, its head, and its batches in the form that this package takes."""
    case = head_recordings.load(recording)[name]
    batches = [
        {key: rebuilt_heads.arrays(batch[key]) for key in ("features", "logits", "labels")} for batch in case["batches"]
    ]
    return case["expected"], rebuilt_heads.build(case["head"]), batches


def predictions_in_evaluation(name):
    expected, head, (batch, *_) = opened("head_cases", name)
    spec = head.create_estimator_spec(mode=ec.ModeKeys.EVAL, **batch)
    return expected["spec_evaluation_predictions"], rebuilt_heads.with_names(head, spec.predictions)


def str_not_bytes():
    recorded, ours = predictions_in_evaluation("04_binary_vocabulary")
    return {"string": "S"}[recorded["classes"]["dtype"]], ours["classes"].dtype.kind


def int32_class_ids():
    recorded, ours = predictions_in_evaluation("08_multi_class")
    return recorded["class_ids"]["dtype"], ours["class_ids"].dtype.name


def sequence_predictions_of_all_steps():
    recorded, ours = predictions_in_evaluation("20_sequence")
    return recorded["logits"]["shape"], list(ours["logits"].shape)


def sequence_predictions_with_the_mask():
    recorded, ours = predictions_in_evaluation("20_sequence")
    return set(recorded), set(ours)


def no_second_loss_summary():
    expected, head, (batch, *_) = opened("head_cases", "01_binary")
    with applying({}, {}, mode="train", key=lambda: jax.random.key(0), specs={}) as scope:
        head.create_estimator_spec(mode=ec.ModeKeys.TRAIN, optimizer=optax.sgd(0.1), **batch)
    return set(expected["summaries"]), set(scope.summaries)


def multi_head_metrics_of_all_batches():
    name, key = "MultiHead_025", "average_loss/head1"
    expected, head, batches = opened("random_heads", name)
    assert len(batches) > 1
    accumulated = head.metrics(**batches[0])
    for batch in batches[1:]:
        accumulated = merge_metrics(accumulated, head.metrics(**batch))
    return round(expected["metrics"][-1][key], 4), round(compute_metrics(accumulated)[key], 4)


def exported_ids_and_names():
    expected, head, (batch, *_) = opened("head_cases", "04_binary_vocabulary")
    spec = head.create_estimator_spec(mode=ec.ModeKeys.PREDICT, features=batch["features"], logits=batch["logits"])
    served = spec.export_outputs["serving_default"]
    assert served.class_names == ("aang", "iroh")
    return expected["export_outputs"]["serving_default"]["classes"], np.asarray(served.classes).tolist()


#: The differences by name: the reason, and a function that returns (theirs, ours) for a recorded case.
DIFFERENCES = {
    "str_not_bytes": ("class names are str, not bytes: what Python and JSON users expect", str_not_bytes),
    "int32_class_ids": ("class ids are int32: there is no int64 on the device", int32_class_ids),
    "sequence_predictions_of_all_steps": (
        "a sequential head's predictions hold all steps in every mode: shapes stay those of the batch",
        sequence_predictions_of_all_steps,
    ),
    "sequence_predictions_with_the_mask": (
        "and the mask, which tells the steps that count",
        sequence_predictions_with_the_mask,
    ),
    "no_second_loss_summary": (
        "a head without a name writes no summary `loss`: the loop writes that tag itself",
        no_second_loss_summary,
    ),
    "multi_head_metrics_of_all_batches": (
        "called batch by batch, the original MultiHead forgets the heads' metrics of earlier batches (its Estimator "
        "calls it once); here they accumulate",
        multi_head_metrics_of_all_batches,
    ),
    "exported_ids_and_names": (
        "exported classes are ids in the array signature and names in the raw one: no strings in the computation",
        exported_ids_and_names,
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_still_differs(name):
    reason, compared = DIFFERENCES[name]
    theirs, ours = compared()
    assert theirs != ours, f"{name} ({reason}) is no difference any more: take it off the list"
