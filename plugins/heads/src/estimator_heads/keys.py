"""Names of metrics, predictions and serving signatures, as in tf.estimator."""

from typing import Final

DEFAULT_SERVING_KEY: Final = "serving_default"
CLASSIFY_SERVING_KEY: Final = "classification"
REGRESS_SERVING_KEY: Final = "regression"
PREDICT_SERVING_KEY: Final = "predict"


class MetricKeys:
    """Names of metrics.

    Example:
        >>> MetricKeys.PRECISION_AT_THRESHOLD % 0.25
        'precision/positive_threshold_0.25'

    Source: `tf.estimator` `canned/metric_keys.py`.
    """

    LOSS: Final = "loss"
    LOSS_MEAN: Final = "average_loss"
    LOSS_REGULARIZATION: Final = "regularization_loss"

    ACCURACY: Final = "accuracy"
    PRECISION: Final = "precision"
    RECALL: Final = "recall"
    ACCURACY_BASELINE: Final = "accuracy_baseline"
    AUC: Final = "auc"
    AUC_PR: Final = "auc_precision_recall"
    CALIBRATION_ERROR: Final = "calibration_error"
    LABEL_MEAN: Final = "label/mean"
    PREDICTION_MEAN: Final = "prediction/mean"

    ACCURACY_AT_THRESHOLD: Final = "accuracy/positive_threshold_%g"
    PRECISION_AT_THRESHOLD: Final = "precision/positive_threshold_%g"
    RECALL_AT_THRESHOLD: Final = "recall/positive_threshold_%g"

    PRECISION_AT_RECALL: Final = "precision_at_recall_%g"
    RECALL_AT_PRECISION: Final = "recall_at_precision_%g"
    SENSITIVITY_AT_SPECIFICITY: Final = "sensitivity_at_specificity_%g"
    SPECIFICITY_AT_SENSITIVITY: Final = "specificity_at_sensitivity_%g"

    PROBABILITY_MEAN_AT_CLASS: Final = "probability_mean/class%d"
    AUC_AT_CLASS: Final = "auc/class%d"
    AUC_PR_AT_CLASS: Final = "auc_precision_recall/class%d"
    PROBABILITY_MEAN_AT_NAME: Final = "probability_mean/%s"
    AUC_AT_NAME: Final = "auc/%s"
    AUC_PR_AT_NAME: Final = "auc_precision_recall/%s"


class PredictionKeys:
    """Names of predictions.

    Source: `tf.estimator` `canned/prediction_keys.py`.
    """

    CLASSES: Final = "classes"
    CLASS_IDS: Final = "class_ids"
    ALL_CLASSES: Final = "all_classes"
    ALL_CLASS_IDS: Final = "all_class_ids"
    LOGISTIC: Final = "logistic"
    LOGITS: Final = "logits"
    PREDICTIONS: Final = "predictions"
    PROBABILITIES: Final = "probabilities"
    TOP_K: Final = "top_k"
