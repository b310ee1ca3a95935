"""The parts of two_tower_heads.py that are compared, with tensorflow-cpu 2.15.1. Dropout is left out: it is random."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
import tensorflow as tf
import two_tower_heads


def towers(model_dir):
    two_tower_heads.FLAGS(["proof"])
    # Layers of Keras do not draw their initial weights from the seed of the config. Any seed works: see proof_list.py.
    tf.keras.utils.set_random_seed(2)
    folder = tempfile.mkdtemp()
    train = two_tower_heads.write_examples(os.path.join(folder, "train.rec"), 2000, seed=21)
    held_out = two_tower_heads.write_examples(os.path.join(folder, "eval.rec"), 420, seed=22)
    columns = two_tower_heads.make_columns()
    spec = tf.feature_column.make_parse_example_spec([column for side in columns for column in side])
    spec["label"] = tf.io.FixedLenFeature([1], tf.int64)
    config = tf.estimator.RunConfig(model_dir=model_dir, tf_random_seed=5)
    return {
        "estimator": two_tower_heads.TowerEstimator(
            lambda: two_tower_heads.TwoTower(*columns, [16, 8], dropout=0.0),
            two_tower_heads.ClickHead(model_dir, thresholds=[0.3, 0.7]),
            config,
            {"learning_rate": 0.03},
        ),
        "train_input_fn": lambda: two_tower_heads.input_fn(train, spec, None, shuffle_buffer_size=1000),
        "eval_input_fn": lambda: two_tower_heads.input_fn(held_out, spec, 1),
    }
