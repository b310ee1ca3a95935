"""Records the head cases that have a name: small, worked by hand, one for each rule."""

import tf_heads
from tf_heads import tf


def case(head, logits, labels, features=None, regularization_losses=None, **arguments):
    return {
        "head": {"class": head, "arguments": arguments},
        "batches": [{"logits": logits, "labels": labels, "features": features or {"x": [0.0]}}],
        **({} if regularization_losses is None else {"regularization_losses": regularization_losses}),
    }


def binary(logits, labels, weights=None, **options):
    if weights is None:
        return case("BinaryClassHead", logits, labels, **options)
    return case("BinaryClassHead", logits, labels, {"w": weights}, weight_column="w", **options)


def head(kind, /, **arguments):
    return {"class": kind, "arguments": arguments}


def multi_head(labels, logits, **arguments):
    heads = [head("MultiLabelHead", n_classes=2, name="head1"), head("MultiLabelHead", n_classes=3, name="head2")]
    return case("MultiHead", logits, labels, heads=heads, **arguments)


PAIR = ([[45.0], [-41.0]], [[1], [1]])
TRIPLE = ([[45.0], [-41.0], [44.0]], [[1], [1], [0]], [[1.0], [0.1], [1.5]])
TWO_LABELS = {"head1": [[1, 0], [1, 1]], "head2": [[0, 1, 0], [1, 1, 0]]}
TWO_LOGITS = {
    "head1": [[-10.0, 10.0], [-15.0, 10.0]],
    "head2": [[20.0, -20.0, 20.0], [-30.0, 20.0, -20.0]],
}
JOINED = [[-10.0, 10.0, 20.0, -20.0, 20.0], [-15.0, 10.0, -30.0, 20.0, -20.0]]

CASES = {
    "01_binary": binary(*PAIR),
    "02_binary_weights": binary(*TRIPLE),
    "03_binary_weights_sum": binary(*TRIPLE, loss_reduction="sum"),
    "04_binary_vocabulary": binary([[1.0], [-2.0]], [["iroh"], ["aang"]], label_vocabulary=["aang", "iroh"]),
    "05_binary_thresholds": binary([[-1.0], [1.0]], [[1], [1]], thresholds=[0.25, 0.5, 0.75]),
    "06_binary_regularization": binary(*PAIR, regularization_losses=[1.5, 0.5]),
    "07_binary_soft_labels": binary([[-1.0], [1.0]], [[0.8], [0.4]]),
    "08_multi_class": case("MultiClassHead", [[10.0, 0.0, 0.0], [0.0, 10.0, 0.0]], [[1], [1]], n_classes=3),
    "09_multi_class_weights": case(
        "MultiClassHead",
        [[10.0, 0.0, 0.0], [0.0, 10.0, 0.0], [0.0, 0.0, 10.0]],
        [[1], [2], [2]],
        {"w": [[1.0], [2.0], [3.0]]},
        n_classes=3,
        weight_column="w",
    ),
    "10_multi_label": case("MultiLabelHead", [[-1.0, 1.0], [-1.5, 1.5]], [[1, 0], [1, 1]], n_classes=2),
    "11_multi_label_thresholds_classes": case(
        "MultiLabelHead",
        [[-1.0, 1.0], [-1.5, 1.5]],
        [[1, 0], [1, 1]],
        n_classes=2,
        thresholds=[0.3, 0.5],
        classes_for_class_based_metrics=[0, 1],
    ),
    "12_multi_label_weights": case(
        "MultiLabelHead",
        [[-10.0, 10.0], [-15.0, 10.0]],
        [[1, 0], [1, 1]],
        {"w": [[1.0], [2.0]]},
        n_classes=2,
        weight_column="w",
    ),
    "13_regression": case("RegressionHead", [[45.0], [41.0]], [[43.0], [44.0]]),
    "14_regression_weights": case(
        "RegressionHead",
        [[45.0], [41.0], [44.0]],
        [[35.0], [42.0], [45.0]],
        {"w": [[1.0], [0.1], [1.5]]},
        weight_column="w",
    ),
    "15_regression_weights_per_output": case(
        "RegressionHead",
        [[35.0, 41.0, 44.0]],
        [[35.0, 42.0, 45.0]],
        {"w": [[1.0, 0.1, 1.5]]},
        weight_column="w",
        label_dimension=3,
    ),
    "16_regression_inverse_link": case(
        "RegressionHead", [[45.0], [41.0]], [[43.0], [44.0]], inverse_link_fn="times_10"
    ),
    "17_poisson": case("PoissonRegressionHead", [[0.0], [-1.0], [1.0]], [[1.0], [2.0], [3.0]]),
    "17_poisson_without_constant": case(
        "PoissonRegressionHead", [[0.0], [-1.0], [1.0]], [[1.0], [2.0], [3.0]], compute_full_loss=False
    ),
    "18_logistic": case("LogisticRegressionHead", [[0.0], [-1.0], [1.0]], [[0.4], [0.6], [0.8]]),
    "19_multi_head_weights": multi_head(TWO_LABELS, TWO_LOGITS, head_weights=[1.0, 2.0]),
    "19_multi_head": multi_head(TWO_LABELS, TWO_LOGITS),
    "19_multi_head_joined_logits": multi_head(TWO_LABELS, JOINED),
    "20_sequence": case(
        "SequentialHeadWrapper",
        [[[0.3], [0.5]], [[-1.0], [2.0]]],
        [[[1], [0]], [[1], [0]]],
        {"sequence_length_mask": [[True, True], [True, False]]},
        static_head=head("BinaryClassHead"),
    ),
    "32_binary_zero_logits": binary([[0.0], [0.0]], [[0], [1]]),
    "56_auc": binary([[-2.1972246], [-0.4054651], [-0.6190392], [1.3862944]], [[0], [0], [1], [1]]),
}


def observe(case):
    """As ``tf_heads.observe``, with dtype and shape of the predictions of the evaluation's spec."""
    found = tf_heads.observe(case)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        given = {key: tf_heads.tensors(case["batches"][0][key]) for key in ("features", "logits", "labels")}
        predictions = tf_heads.build(case["head"]).create_estimator_spec(mode=tf_heads.EVAL, **given).predictions
        session.run(tf.compat.v1.tables_initializer())
        shapes = {key: value.shape for key, value in session.run(predictions).items()}
    found["expected"]["spec_evaluation_predictions"] = {
        key: {"dtype": value.dtype.name, "shape": list(shapes[key])} for key, value in predictions.items()
    }
    return found


def main():
    tf_heads.write(__file__, {name: observe(case) for name, case in CASES.items()})


if __name__ == "__main__":
    main()
