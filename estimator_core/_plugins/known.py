"""Which distribution gives what, for the error text where it is not installed. Nothing else reads this table."""

from __future__ import annotations

#: One line a distribution and kind; a test compares it with what the packages declare.
_GIVES: tuple[tuple[str, str, str], ...] = (
    (
        "estimator-heads",
        "head",
        "binary_class logistic_regression multi_class multi_head multi_label poisson_regression",
    ),
    ("estimator-heads", "head", "ranking regression retrieval sequential token_classification"),
    ("estimator-heads", "transform", "class_names label_ids multi_hot_labels"),
    ("estimator-hooks", "hook", "device_memory goodput gradient_norm history learning_rate parameter_summary"),
    ("estimator-hooks", "hook", "progress_bar stall_watchdog throughput"),
    ("estimator-exporters", "exporter", "best final latest step"),
    ("estimator-exporters", "format", "onnx saved_model stablehlo"),
    ("estimator-backends-gpu", "backend", "gpu"),
    ("estimator-backends-tpu", "backend", "tpu"),
    ("estimator-inputs", "input", "array_record csv jsonl parquet tfrecord"),
    ("estimator-warm-start", "initial_values", "warm_start"),
    ("estimator-canned-bert", "model", "bert_classifier"),
    ("estimator-canned-bert", "transform", "bert_tokens"),
    ("estimator-canned-tabular", "model", "baseline baseline_classifier baseline_regressor dcn dlrm dnn"),
    ("estimator-canned-tabular", "model", "dnn_classifier dnn_linear_combined dnn_linear_combined_classifier"),
    ("estimator-canned-tabular", "model", "dnn_linear_combined_regressor dnn_regressor kmeans linear"),
    ("estimator-canned-tabular", "model", "linear_classifier linear_regressor rnn rnn_classifier two_tower"),
    ("estimator-canned-tabular", "transform", "tabular_examples tabular_features"),
)


def known_distribution(kind: str, name: str) -> str | None:
    """The distribution that gives a component of this kind and name, if it is a known one.

    Example:
        >>> known_distribution("backend", "gpu")
        'estimator-backends-gpu'
    """
    for distribution, of_kind, names in _GIVES:
        if kind == of_kind and name in names.split():
            return distribution
    return None
