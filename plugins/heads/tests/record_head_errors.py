"""Records how the heads refuse bad arguments and bad data: type and message of the error, eager and in a graph."""

import tf_heads
from tf_heads import EVAL, TRAIN, tf


def no_labels(logits):
    return logits


def unexpected_argument(labels, logits, extra):
    return logits


def wrong_shape(labels, logits):
    return tf.reduce_sum(logits, axis=0, keepdims=True)[:, :1]


tf_heads.FUNCTIONS.update(no_labels=no_labels, unexpected_argument=unexpected_argument, wrong_shape=wrong_shape)


def head(kind, /, **arguments):
    return {"class": kind, "arguments": arguments}


B, M, L, R = "BinaryClassHead", "MultiClassHead", "MultiLabelHead", "RegressionHead"
LOGISTIC, POISSON, MULTI, SEQUENCE = (
    "LogisticRegressionHead",
    "PoissonRegressionHead",
    "MultiHead",
    "SequentialHeadWrapper",
)

BAD_ARGUMENTS = {
    "binary_threshold_0": head(B, thresholds=[0.0, 0.5]),
    "binary_threshold_1": head(B, thresholds=[0.5, 1.0]),
    "binary_vocabulary_text": head(B, label_vocabulary="ab"),
    "binary_reduction_none": head(B, loss_reduction="none"),
    "binary_reduction_unknown": head(B, loss_reduction="unknown"),
    "binary_loss_fn_no_labels": head(B, loss_fn="no_labels"),
    "binary_loss_fn_unexpected": head(B, loss_fn="unexpected_argument"),
    "multi_class_2": head(M, n_classes=2),
    "multi_class_none": head(M, n_classes=None),
    "multi_class_vocabulary_text": head(M, n_classes=3, label_vocabulary="abc"),
    "multi_class_vocabulary_short": head(M, n_classes=3, label_vocabulary=["a", "b"]),
    "multi_class_reduction_none": head(M, n_classes=3, loss_reduction="none"),
    "multi_class_loss_fn_no_labels": head(M, n_classes=3, loss_fn="no_labels"),
    "multi_label_1": head(L, n_classes=1),
    "multi_label_none": head(L, n_classes=None),
    "multi_label_threshold_0": head(L, n_classes=2, thresholds=[0.0]),
    "multi_label_threshold_1": head(L, n_classes=2, thresholds=[1.0]),
    "multi_label_vocabulary_text": head(L, n_classes=2, label_vocabulary="ab"),
    "multi_label_vocabulary_short": head(L, n_classes=3, label_vocabulary=["a", "b"]),
    "multi_label_reduction_none": head(L, n_classes=3, loss_reduction="none"),
    "multi_label_class_out_of_range": head(L, n_classes=2, classes_for_class_based_metrics=[2]),
    "multi_label_class_negative": head(L, n_classes=2, classes_for_class_based_metrics=[-1]),
    "multi_label_class_name_without_vocabulary": head(L, n_classes=2, classes_for_class_based_metrics=["a"]),
    "multi_label_class_name_unknown": head(
        L, n_classes=2, label_vocabulary=["a", "b"], classes_for_class_based_metrics=["c"]
    ),
    "multi_label_loss_fn_unexpected": head(L, n_classes=2, loss_fn="unexpected_argument"),
    "regression_dimension_0": head(R, label_dimension=0),
    "regression_dimension_negative": head(R, label_dimension=-1),
    "regression_reduction_none": head(R, loss_reduction="none"),
    "regression_loss_fn_no_labels": head(R, loss_fn="no_labels"),
    "poisson_dimension_0": head(POISSON, label_dimension=0),
    "logistic_reduction_none": head(LOGISTIC, loss_reduction="none"),
    "multi_head_empty": head(MULTI, heads=[]),
    "multi_head_without_name": head(MULTI, heads=[head(B)]),
    "multi_head_same_names": head(MULTI, heads=[head(B, name="a"), head(R, name="a")]),
    "multi_head_weights_short": head(MULTI, heads=[head(B, name="a"), head(R, name="b")], head_weights=[1.0]),
    "sequence_of_multi_head": head(SEQUENCE, static_head=head(MULTI, heads=[head(B, name="a")])),
    "sequence_mask_not_text": head(SEQUENCE, static_head=head(B), sequence_length_mask=1),
    "sequence_columns_not_iterable": head(SEQUENCE, static_head=head(B), feature_columns=1),
    "sequence_column_not_text": head(SEQUENCE, static_head=head(B), feature_columns=[1]),
}


def data(head_spec, logits, labels, features=None):
    return head_spec, {"logits": logits, "labels": labels, "features": features or {"x": [0.0]}}


TWO_HEADS = head(MULTI, heads=[head(B, name="a"), head(R, name="b", label_dimension=2)])
WEIGHTED = head(B, weight_column="w")
SEQ = head(SEQUENCE, static_head=head(B))
SEQ_DATA = ([[[0.3], [0.5]], [[-1.0], [2.0]]], [[[1], [0]], [[1], [0]]])

BAD_DATA = {
    "binary_logits_2_columns": data(head(B), [[1.0, 2.0], [3.0, 4.0]], [[1], [0]]),
    "binary_logits_rank_1": data(head(B), [1.0, 2.0], [[1], [0]]),
    "binary_labels_none": data(head(B), [[1.0], [2.0]], None),
    "binary_labels_2_columns": data(head(B), [[1.0], [2.0]], [[1, 0], [0, 1]]),
    "binary_labels_other_batch": data(head(B), [[1.0], [2.0]], [[1], [0], [1]]),
    "binary_labels_sparse": data(
        head(B), [[1.0], [2.0]], {"sparse_indices": [[0, 0], [1, 0]], "values": [1, 0], "dense_shape": [2, 1]}
    ),
    "binary_labels_2": data(head(B), [[1.0], [2.0]], [[1], [2]]),
    "binary_labels_negative": data(head(B), [[1.0], [2.0]], [[1], [-1]]),
    "binary_labels_text": data(head(B), [[1.0], [2.0]], [["a"], ["b"]]),
    "binary_labels_number_with_vocabulary": data(head(B, label_vocabulary=["a", "b"]), [[1.0], [2.0]], [[1], [0]]),
    "binary_labels_unknown_word": data(head(B, label_vocabulary=["a", "b"]), [[1.0], [2.0]], [["a"], ["c"]]),
    "binary_weights_missing": data(WEIGHTED, [[1.0], [2.0]], [[1], [0]]),
    "binary_weights_2_columns": data(WEIGHTED, [[1.0], [2.0]], [[1], [0]], {"w": [[1.0, 2.0], [3.0, 4.0]]}),
    "binary_weights_other_batch": data(WEIGHTED, [[1.0], [2.0]], [[1], [0]], {"w": [[1.0], [2.0], [3.0]]}),
    "binary_weights_text": data(WEIGHTED, [[1.0], [2.0]], [[1], [0]], {"w": [["a"], ["b"]]}),
    "binary_loss_fn_shape": data(head(B, loss_fn="wrong_shape"), [[1.0], [2.0]], [[1], [0]]),
    "multi_class_logits_2_columns": data(head(M, n_classes=3), [[1.0, 2.0]], [[1]]),
    "multi_class_labels_none": data(head(M, n_classes=3), [[1.0, 2.0, 3.0]], None),
    "multi_class_labels_one_hot": data(head(M, n_classes=3), [[1.0, 2.0, 3.0]], [[0, 1, 0]]),
    "multi_class_labels_float": data(head(M, n_classes=3), [[1.0, 2.0, 3.0]], [[1.0]]),
    "multi_class_labels_3": data(head(M, n_classes=3), [[1.0, 2.0, 3.0]], [[3]]),
    "multi_class_labels_negative": data(head(M, n_classes=3), [[1.0, 2.0, 3.0]], [[-1]]),
    "multi_class_labels_text": data(head(M, n_classes=3), [[1.0, 2.0, 3.0]], [["a"]]),
    "multi_class_labels_number_with_vocabulary": data(
        head(M, n_classes=3, label_vocabulary=["a", "b", "c"]), [[1.0, 2.0, 3.0]], [[1]]
    ),
    "multi_class_labels_unknown_word": data(
        head(M, n_classes=3, label_vocabulary=["a", "b", "c"]), [[1.0, 2.0, 3.0]], [["d"]]
    ),
    "multi_class_loss_fn_shape": data(head(M, n_classes=3, loss_fn="wrong_shape"), [[1.0, 2.0, 3.0]] * 2, [[1], [0]]),
    "multi_label_logits_3_columns": data(head(L, n_classes=2), [[1.0, 2.0, 3.0]], [[1, 0]]),
    "multi_label_labels_none": data(head(L, n_classes=2), [[1.0, 2.0]], None),
    "multi_label_labels_3_columns": data(head(L, n_classes=2), [[1.0, 2.0]], [[1, 0, 1]]),
    "multi_label_labels_2": data(head(L, n_classes=2), [[1.0, 2.0]], [[1, 2]]),
    "multi_label_labels_negative": data(head(L, n_classes=2), [[1.0, 2.0]], [[1, -1]]),
    "multi_label_labels_one_column": data(head(L, n_classes=2), [[1.0, 2.0]], [[1]]),
    "multi_label_sparse_out_of_range": data(
        head(L, n_classes=2), [[1.0, 2.0]], {"sparse_indices": [[0, 0]], "values": [2], "dense_shape": [1, 1]}
    ),
    "regression_logits_2_columns": data(head(R), [[1.0, 2.0]], [[1.0]]),
    "regression_logits_1_column": data(head(R, label_dimension=2), [[1.0]], [[1.0, 2.0]]),
    "regression_labels_none": data(head(R), [[1.0]], None),
    "regression_labels_2_columns": data(head(R), [[1.0]], [[1.0, 2.0]]),
    "regression_labels_other_batch": data(head(R), [[1.0]], [[1.0], [2.0]]),
    "regression_labels_text": data(head(R), [[1.0]], [["a"]]),
    "regression_weights_3_columns": data(
        head(R, label_dimension=2, weight_column="w"), [[1.0, 2.0]], [[1.0, 2.0]], {"w": [[1.0, 2.0, 3.0]]}
    ),
    "regression_loss_fn_shape": data(head(R, loss_fn="wrong_shape"), [[1.0], [2.0]], [[1.0], [2.0]]),
    "logistic_labels_above_1": data(head(LOGISTIC), [[1.0]], [[1.2]]),
    "logistic_labels_negative": data(head(LOGISTIC), [[1.0]], [[-0.2]]),
    "poisson_labels_negative": data(head(POISSON), [[1.0]], [[-1.0]]),
    "multi_head_labels_not_dict": data(TWO_HEADS, {"a": [[1.0]], "b": [[1.0, 2.0]]}, [[1]]),
    "multi_head_labels_missing": data(TWO_HEADS, {"a": [[1.0]], "b": [[1.0, 2.0]]}, {"a": [[1]]}),
    "multi_head_logits_missing": data(TWO_HEADS, {"a": [[1.0]]}, {"a": [[1]], "b": [[1.0, 2.0]]}),
    "multi_head_joined_logits_short": data(TWO_HEADS, [[1.0, 2.0]], {"a": [[1]], "b": [[1.0, 2.0]]}),
    "multi_head_other_reductions": data(
        head(MULTI, heads=[head(B, name="a"), head(R, name="b", loss_reduction="sum")]),
        {"a": [[1.0]], "b": [[1.0]]},
        {"a": [[1]], "b": [[1.0]]},
    ),
    "sequence_mask_missing": data(SEQ, *SEQ_DATA),
    "sequence_mask_rank_1": data(SEQ, *SEQ_DATA, {"sequence_length_mask": [True, True]}),
    "sequence_mask_rank_3": data(SEQ, *SEQ_DATA, {"sequence_length_mask": [[[True], [True]], [[True], [False]]]}),
    "sequence_mask_other_shape": data(SEQ, *SEQ_DATA, {"sequence_length_mask": [[True, True, True]]}),
    "sequence_logits_rank_1": data(SEQ, [0.3, 0.5], [1, 0], {"sequence_length_mask": [[True, True]]}),
    "sequence_column_missing": data(
        head(SEQUENCE, static_head=WEIGHTED, feature_columns=["w"]),
        *SEQ_DATA,
        {"sequence_length_mask": [[True, True], [True, False]]},
    ),
}

BINARY_OK = {"logits": [[1.0], [2.0]], "labels": [[1], [0]], "features": {"x": [0.0]}}
BAD_SPECS = {
    "train_without_optimizer_and_train_op_fn": {"mode": TRAIN},
    "train_with_optimizer_and_train_op_fn": {"mode": TRAIN, "optimizer": "sgd", "train_op_fn": True, "variables": []},
    "train_without_variables": {"mode": TRAIN, "optimizer": "sgd"},
    "train_variables_not_a_list": {"mode": TRAIN, "optimizer": "sgd", "variables": "all"},
    "train_optimizer_not_an_optimizer": {"mode": TRAIN, "optimizer": "text", "variables": []},
    "train_update_ops_not_a_list": {"mode": TRAIN, "train_op_fn": True, "update_ops": "all"},
    "train_without_labels": {"mode": TRAIN, "train_op_fn": True, "labels": None},
    "eval_without_labels": {"mode": EVAL, "labels": None},
    "mode_unknown": {"mode": "unknown"},
    "prediction_keys_unknown": {"keys": ["zz"]},
    "regularization_not_a_list": {"mode": EVAL, "regularization_losses": 1.0},
}


def losses(head_spec, batch):
    """The error of ``loss`` and of ``create_estimator_spec`` (EVAL, in a graph) for one batch, or None."""

    def given():
        return {key: value if value is None else tf_heads.tensors(value) for key, value in batch.items()}

    def in_graph():
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            spec = tf_heads.build(head_spec).create_estimator_spec(
                mode=TRAIN, train_op_fn=lambda loss: tf.no_op(), **given()
            )
            session.run(tf.compat.v1.tables_initializer())
            session.run(spec.loss)

    return {
        "eager": tf_heads.error_of(lambda: tf_heads.build(head_spec).loss(mode=TRAIN, **given())),
        "graph": tf_heads.error_of(in_graph),
    }


def bad_spec(options):
    def call():
        with tf.Graph().as_default():
            given = {key: tf_heads.tensors(value) for key, value in BINARY_OK.items()}
            made = tf.estimator.BinaryClassHead()
            if "keys" in options:
                return made.predictions(given["logits"], keys=options["keys"])
            arguments = dict(options)
            if "optimizer" in arguments:
                arguments["optimizer"] = (
                    tf.keras.optimizers.legacy.SGD() if arguments["optimizer"] == "sgd" else arguments["optimizer"]
                )
            if arguments.pop("train_op_fn", None):
                arguments["train_op_fn"] = lambda loss: tf.no_op()
            if "variables" in arguments:
                arguments["trainable_variables"] = arguments.pop("variables")
            return made.create_estimator_spec(**{**given, **arguments})

    return tf_heads.error_of(call)


def main():
    cases = {}
    for name, head_spec in BAD_ARGUMENTS.items():
        made = tf_heads.error_of(lambda spec=head_spec: tf_heads.build(spec))
        cases[f"arguments_{name}"] = {"head": head_spec, "error": made}
    for name, (head_spec, batch) in BAD_DATA.items():
        cases[f"data_{name}"] = {"head": head_spec, "batch": batch, "errors": losses(head_spec, batch)}
    for name, options in BAD_SPECS.items():
        cases[f"spec_{name}"] = {"head": head(B), "batch": BINARY_OK, "options": options, "error": bad_spec(options)}
    tf_heads.write(__file__, cases)


if __name__ == "__main__":
    main()
