"""Tests of the direction in which a metric improves: one set of words for all packages."""

import pytest

from estimator_core.metrics import less_is_better


@pytest.mark.parametrize(
    "name",
    [
        *("binary_crossentropy", "logloss", "val/rmsle", "kl_divergence", "hinge", "log_cosh", "loss1", "errors"),
        *("MAE", "MeanSquaredError", "BCELoss", "crossEntropy", "average_loss/who", "per_word_perplexity"),
    ],
)
def test_metrics_that_measure_what_is_wrong(name):
    assert less_is_better(name)


@pytest.mark.parametrize("name", ["accuracy", "auc/glossary", "closs", "recall_of_maewest", "f1", "R2", "terrors", ""])
def test_metrics_of_which_more_is_better(name):
    assert not less_is_better(name)
