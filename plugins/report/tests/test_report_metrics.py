"""Tests of the counts from which curves are drawn: they equal those of numpy and scikit-learn, for any batches."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, roc_auc_score

from estimator_core.errors import ArgumentError
from estimator_report import report_metrics
from estimator_report.curves import area, calibration, precision_recall, roc


@pytest.mark.parametrize("classes", [2, 4])
def test_counts_of_batches_together(classes):
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, 500)
    logits = rng.normal(size=(500, classes)) + 1.5 * np.eye(classes)[labels]
    probabilities = (np.exp(logits) / np.exp(logits).sum(1, keepdims=True)).astype(np.float32)
    parts = [
        report_metrics(labels[rows], {"probabilities": probabilities[rows]}) for rows in (slice(0, 90), slice(90, 500))
    ]
    found = {name: parts[0][name].merge(parts[1][name]).compute() for name in parts[0]}
    assert found["report/confusion"].tolist() == confusion_matrix(labels, probabilities.argmax(1)).tolist()
    assert found["report/scores"].sum() == 500
    if classes == 2:
        # Scores are in 100 buckets. Ties within one bucket count half.
        assert area(roc(found["report/scores"].tolist())) == pytest.approx(
            roc_auc_score(labels, np.floor(probabilities[:, 1] * 100)), abs=1e-9
        )
    else:
        right = found["report/scores"][1].sum()
        assert right == np.sum(probabilities.argmax(1) == labels)


def test_curves_end_where_they_must():
    counts = [[3.0, 1.0] + [0.0] * 98, [0.0] * 98 + [1.0, 3.0]]
    assert roc(counts)[0] == (0.0, 0.0)
    assert roc(counts)[-1] == (1.0, 1.0)
    assert precision_recall(counts)[-1] == (1.0, 0.5)
    assert calibration(counts) == [(pytest.approx(0.0075), 0.0), (pytest.approx(0.9925), 1.0)]


def test_without_probabilities_the_prediction_is_named():
    with pytest.raises(ArgumentError, match=r"'probabilities', \[batch, classes\]; the model returns \['y'\]"):
        report_metrics(np.zeros(2), {"y": np.zeros(2)})
