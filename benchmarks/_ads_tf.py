"""tf.estimator 2.15 in a separate process, for `file_to_model.py`: a model from a file for each line read.

python _ads_tf.py csv|tfrecord train=FILE held_out=FILE rows=N result=FILE
"""

import os
import sys
import tempfile

import _ads
import tensorflow as tf

fc = tf.feature_column


def columns():
    """Returns the columns of the linear part and of the deep part."""
    ages = fc.bucketized_column(fc.numeric_column("age"), list(_ads.AGES))
    site = fc.categorical_column_with_vocabulary_list("site", list(_ads.SITES), num_oov_buckets=1)
    device = fc.categorical_column_with_vocabulary_list("device", list(_ads.DEVICES))
    user = fc.categorical_column_with_hash_bucket("user", _ads.USER_BUCKETS)
    deep = [fc.numeric_column(name) for name in _ads.NUMBERS]
    deep += [fc.embedding_column(site, _ads.SITE_WIDTH), fc.embedding_column(user, _ads.USER_WIDTH)]
    crossed = fc.crossed_column(["site", "device"], _ads.CROSS_BUCKETS)
    return [ages, site, user, crossed], [*deep, fc.indicator_column(device)]


def dataset(kind, path):
    """Returns one pass in the order of the file."""
    if kind == "csv":
        made = tf.data.experimental.make_csv_dataset(
            path, _ads.BATCH, label_name="label", num_epochs=1, shuffle=False, num_parallel_reads=1
        )
    else:
        spec = {name: tf.io.FixedLenFeature((), tf.float32) for name in _ads.NUMBERS}
        spec.update({name: tf.io.FixedLenFeature((), tf.int64) for name in ("age", "label")})
        spec.update({name: tf.io.FixedLenFeature((), tf.string) for name in ("site", "device", "user")})
        made = tf.data.experimental.make_batched_features_dataset(
            path, _ads.BATCH, spec, label_key="label", num_epochs=1, shuffle=False
        )
    return made


class Later(tf.compat.v1.train.SessionRunHook):
    """Records the start of the later part."""

    def __init__(self, noted, step):
        self._noted, self._left = noted, step

    def after_run(self, run_context, run_values):
        self._left -= 1
        if self._left == 0:
            self._noted.later()


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tf.compat.v1.logging.set_verbosity("ERROR")
    kind, given = sys.argv[1], dict(item.split("=", 1) for item in sys.argv[2:])
    rows = int(given["rows"])
    for _ in sys.stdin:
        noted = _ads.Pass()
        linear, deep = columns()
        made = tf.estimator.DNNLinearCombinedClassifier(
            tempfile.mkdtemp(prefix="bench-ads-tf-"),
            linear_feature_columns=linear,
            linear_optimizer=tf.keras.optimizers.legacy.Adagrad(_ads.RATE),
            dnn_feature_columns=deep,
            dnn_optimizer=tf.keras.optimizers.legacy.Adagrad(_ads.RATE),
            dnn_hidden_units=list(_ads.HIDDEN),
            config=tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=10**9, save_checkpoints_secs=None),
        )
        made.train(lambda: dataset(kind, given["train"]), hooks=[Later(noted, _ads.later_step(rows))])
        figures = noted.end(rows)
        _ads.answer(
            given["result"],
            figures,
            lambda made=made: float(made.evaluate(lambda: dataset(kind, given["held_out"]))["average_loss"]),
        )
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main()
