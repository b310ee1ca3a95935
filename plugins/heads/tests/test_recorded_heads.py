"""The heads return what tf.estimator's heads returned, except for the differences in test_recorded_differences.py."""

import collections
import sys

import jax
import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._export.outputs import ClassificationOutput, RegressionOutput
from estimator_core._model.scope import applying
from estimator_core.metrics import applying_example_weights, compute_metrics, merge_metrics
from estimator_heads import MultiHead
from plugins.heads.tests import head_recordings, rebuilt_heads

# Losses of the original below 1e-6 are differences of rounded numbers, and differ between its modes.
RTOL, ATOL = 1e-5, 1e-6

#: Cases whose loss is a small difference of large terms, with its rounding error.
CANCELLATION = {"SequentialHeadWrapper_003": 2e-5}  # 0.57 from terms of up to 150


def close(actual, expected, what):
    expected = np.asarray(expected)
    if expected.dtype.kind in "US" and np.asarray(actual).dtype.kind not in "US":
        expected = expected.astype(float)  # "nan" and "inf"
    if expected.dtype.kind in "US":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
    else:
        np.testing.assert_allclose(actual, expected, rtol=RTOL, atol=ATOL, err_msg=what)


class Batch:
    """A recorded batch in the form that this package takes, with `padding` additional rows that must not count."""

    def __init__(self, batch, padding):
        given = {key: rebuilt_heads.arrays(batch[key]) for key in ("labels", "logits", "features")}
        self.size = jax.tree.leaves(given["logits"])[0].shape[0]
        self.given = jax.tree.map(lambda array: np.concatenate([array, *[array[:1]] * padding]), given)
        self.given["logits"] = jax.tree.map(self._spoil, self.given["logits"])
        self.mask = None if padding == 0 else (np.arange(self.size + padding) < self.size).astype(np.float32)

    def counted(self):
        return applying_example_weights(self.mask)

    def real(self, outputs):
        return {key: np.asarray(value)[: self.size] for key, value in outputs.items()}

    def _spoil(self, logits):
        logits[self.size :] = np.nan
        return logits


def check_case(case, rows=None):
    """Compares a case. If `rows` is set, every batch is padded to this number of rows."""
    head = rebuilt_heads.build(case["head"])
    expected = case["expected"]
    losses = case.get("regularization_losses")
    accumulated = None
    for number, recorded in enumerate(case["batches"]):
        size = Batch(recorded, 0).size
        batch = Batch(recorded, 0 if rows is None else rows - size)
        with batch.counted():
            for mode in (ec.ModeKeys.TRAIN, ec.ModeKeys.EVAL):
                loss = head.loss(**batch.given, mode=mode, regularization_losses=losses)
                close(loss, expected[f"loss_{mode}"][number], f"loss of batch {number} in {mode}")
            metrics = head.metrics(**batch.given, regularization_losses=losses)
        accumulated = metrics if accumulated is None else merge_metrics(accumulated, metrics)
        values = compute_metrics(accumulated)
        if isinstance(head, MultiHead):  # multi_head_metrics_of_all_batches
            last = compute_metrics(metrics)
            values = {key: values[key] if key.startswith(("loss/", "regul")) else last[key] for key in values}
        check_values(values, expected["metrics"][number], f"batch {number}")
        predictions = rebuilt_heads.with_names(head, head.predictions(batch.given["logits"]))
        check_values(batch.real(predictions), expected["predictions"][number], f"prediction of batch {number}")
        if number == 0:
            check_specs(head, case, batch, losses)


def check_values(values, expected, where):
    assert set(values) == set(expected), where
    for key, value in values.items():
        close(value, expected[key], f"{key} {where}")


def check_specs(head, case, batch, losses):
    given, expected = batch.given, case["expected"]
    summaries = {}

    def spec_of(mode, **more):
        with batch.counted(), applying({}, {}, mode=mode, key=lambda: jax.random.key(0), specs={}) as scope:
            spec = head.create_estimator_spec(
                given["features"], mode, given["logits"], given["labels"], regularization_losses=losses, **more
            )
        summaries[mode] = {name: output.value for name, output in scope.summaries.items()}
        return spec

    train = spec_of(ec.ModeKeys.TRAIN, train_op_fn=lambda loss: optax.sgd(0.1))
    close(train.loss, expected["spec_loss_train"], "loss of the training spec")
    recorded = {tag: value for tag, value in expected["summaries"].items() if tag != "loss"}  # no_second_loss_summary
    check_values(summaries[ec.ModeKeys.TRAIN], recorded, "summaries")
    evaluation = spec_of(ec.ModeKeys.EVAL)
    close(evaluation.loss, expected["spec_loss_eval"], "loss of the evaluation spec")
    assert set(evaluation.eval_metric_ops) == set(expected["spec_metric_keys"])
    predict = spec_of(ec.ModeKeys.PREDICT)
    named = rebuilt_heads.with_names(head, predict.predictions)
    first = expected["predictions"][0]
    wanted = {k: first[v[1:]] if isinstance(v, str) else v for k, v in expected["spec_predictions"].items()}
    check_values(batch.real(named), wanted, "prediction of the spec")
    check_exports(head, predict.export_outputs, head_recordings.exported(case), batch)


def check_exports(head, exports, expected, batch):
    assert set(exports) == set(expected)
    for key, wanted in expected.items():
        output, part = exports[key], part_of(head, key)
        assert type(output).__name__ == wanted["type"], key
        named = batch.real(rebuilt_heads.with_names(part, output.outputs))
        if isinstance(output, ClassificationOutput):  # exported_ids_and_names
            close(named["scores"], wanted["scores"], key)
            close(named["classes"], wanted["classes"], key)
            assert np.array(output.class_names)[output.classes[: batch.size]].tolist() == wanted["classes"]
        elif isinstance(output, RegressionOutput):
            close(named["outputs"], wanted["value"], key)
        else:
            check_values(named, wanted["outputs"], key)


def part_of(head, signature):
    """The head inside a MultiHead that a signature belongs to."""
    if not isinstance(head, MultiHead) or signature == "predict":
        return head
    name = signature.split("/")[0]
    return head.heads.get(name, next(iter(head.heads.values())))


@pytest.mark.parametrize("name", head_recordings.load("head_cases"))
def test_case_of_the_reference(name):
    check_case(head_recordings.load("head_cases")[name])


def with_the_rare_first(cases):
    """Returns all cases. A case is slow if the cases before it already have each of its options with its head."""
    met, found = collections.Counter(), []
    for name, case in cases.items():
        options = [(case["head"]["class"], option) for option in [None, *case["options"]]]
        needed = any(met[option] < 1 for option in options)
        met.update(options if needed else ())
        found.append(pytest.param(name, marks=() if needed else pytest.mark.slow))
    return found


last_head: list[str] = []


def free_programs_of_the_head_before(case):
    """Frees the programs that were compiled for another head, for any selection of cases in this process."""
    kind = case["head"]["class"]
    if last_head and last_head != [kind]:
        jax.clear_caches()
    last_head[:] = [kind]


@pytest.mark.parametrize("name", with_the_rare_first(head_recordings.load("random_heads")))
def test_random_case(name, monkeypatch):
    case = head_recordings.load("random_heads")[name]
    free_programs_of_the_head_before(case)
    monkeypatch.setattr(sys.modules[__name__], "ATOL", CANCELLATION.get(name, ATOL))
    # Padded to one number of rows, so that single operations are compiled for few shapes. It also tests padding.
    check_case(case, rows=6)
