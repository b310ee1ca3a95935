"""Every streaming metric of this package as a function of (labels, scores, weights), for data that all of them take.

Labels are class ids [batch], scores probabilities [batch, 4], weights [batch] or None.
"""

import functools

import jax.numpy as jnp

from estimator_heads import metrics

CLASSES = 4
NAMES = ["O", "B-A", "I-A", "B-B"]


def binary(function, **options):
    return lambda y, s, w: function(y % 2, s[:, 0], weights=w, **options)


def classes(function, **options):
    return lambda y, s, w: function(y, jnp.argmax(s, axis=-1), n_classes=CLASSES, weights=w, **options)


def numbers(function):
    return lambda y, s, w: function(y + s[:, 1], 3 * s[:, 0], weights=w)


def relevance(y):
    return jnp.stack([y, y % 3, y % 2, 3 - y], axis=-1)


BUILDERS = {
    "mean": lambda y, s, w: metrics.mean(s[:, 0], w),
    "accuracy": lambda y, s, w: metrics.accuracy(y, jnp.argmax(s, axis=-1), w),
    "precision": binary(metrics.precision),
    "recall": binary(metrics.recall),
    "specificity": binary(metrics.specificity),
    "binary_f_beta": binary(metrics.binary_f_beta, beta=2.0),
    "auc": binary(metrics.auc),
    "auc_pr": binary(metrics.auc, curve="PR"),
    "exact_auc": binary(metrics.exact_auc),
    "exact_auc_pr": binary(metrics.exact_auc, curve="PR"),
    "precision_at_recall": binary(metrics.precision_at_recall, recall=0.5),
    "recall_at_precision": binary(metrics.recall_at_precision, precision=0.5),
    "sensitivity_at_specificity": binary(metrics.sensitivity_at_specificity, specificity=0.5),
    "specificity_at_sensitivity": binary(metrics.specificity_at_sensitivity, sensitivity=0.5),
    "calibration_error": binary(metrics.calibration_error),
    "log_loss": binary(metrics.log_loss),
    "log_loss_classes": lambda y, s, w: metrics.log_loss(y, s, w),
    "perplexity": lambda y, s, w: metrics.perplexity(-jnp.log(s[:, 0]), w),
    "confusion_matrix": classes(metrics.confusion_matrix),
    "class_precision": classes(metrics.class_precision, average="weighted"),
    "class_recall": classes(metrics.class_recall, average="none", indices=(0, 2)),
    "f_beta": classes(metrics.f_beta, beta=0.5),
    "f_beta_micro": classes(metrics.f_beta, average="micro", indices=(1, 2, 3)),
    "top_k_accuracy": lambda y, s, w: metrics.top_k_accuracy(y, s, 2, w),
    "recall_at_k": lambda y, s, w: metrics.recall_at_k(relevance(y) > 1, s, 2, w),
    "ndcg": lambda y, s, w: metrics.ndcg(relevance(y), s, w, k=3),
    "mean_reciprocal_rank": lambda y, s, w: metrics.mean_reciprocal_rank(relevance(y) > 1, s, w),
    "mean_squared_error": numbers(metrics.mean_squared_error),
    "root_mean_squared_error": numbers(metrics.root_mean_squared_error),
    "mean_absolute_error": numbers(metrics.mean_absolute_error),
    "r_squared": numbers(metrics.r_squared),
    "pearson_correlation": numbers(metrics.pearson_correlation),
    "cosine_similarity": lambda y, s, w: metrics.cosine_similarity(relevance(y), s, w),
    "span_f1": lambda y, s, w: metrics.span_f1(relevance(y) % 4, jnp.argsort(s, axis=-1), NAMES),
    "accuracy_baseline": lambda y, s, w: _baseline(y % 2, w),
}


def _baseline(labels, weights):
    from estimator_heads.metrics.baseline import accuracy_baseline

    return accuracy_baseline(labels, weights)


def all_metrics(labels, scores, weights=None):
    """All metrics of one batch, by name."""
    return {name: build(labels, scores, weights) for name, build in BUILDERS.items()}


unweighted = functools.partial(all_metrics, weights=None)
