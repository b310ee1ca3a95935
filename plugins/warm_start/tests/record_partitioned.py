"""Records checkpoints of TensorFlow for test_tensorflow.py.

One has partitioned variables and every type of number, and one has the slots of a partitioned variable. Run it in an
environment with tensorflow-cpu 2.15.1: `python record_partitioned.py`.
"""

import os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
TYPES = ("float64", "int8", "uint8", "int16", "int64", "float16", "bfloat16", "uint16", "uint32", "uint64", "complex64")


def counted(columns):
    """Returns an initializer that counts from 0 over the whole variable."""

    def initializer(shape, dtype=None, partition_info=None):
        first = partition_info.var_offset[0] * columns
        return tf.reshape(tf.range(first, first + shape[0] * columns, dtype=tf.float32), shape)

    return initializer


def main(folder):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("w", [7, 3], initializer=counted(3), partitioner=v1.fixed_size_partitioner(3))
        v1.get_variable("deep/er", [300, 2], initializer=counted(2), partitioner=v1.fixed_size_partitioner(2))
        for name in TYPES:
            v1.get_variable(name, initializer=tf.cast(np.arange(1, 5).reshape(2, 2), name), use_resource=True)
        v1.get_variable("flag", initializer=tf.constant([True, False]))
        v1.get_variable("text", initializer=tf.constant(["one", "two"]))
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(folder / "model.ckpt-3"), write_meta_graph=False)


def slots(folder):
    """Records the slots of a variable in eleven parts, in the scope of the optimizer, and again without one part."""
    for scope in ("linear", "dnn"):
        with tf.Graph().as_default(), v1.Session() as session, v1.variable_scope(scope):
            parts = v1.fixed_size_partitioner(11)
            whole = v1.get_variable("w", [14, 2], initializer=counted(2), partitioner=parts)
            loss = tf.reduce_sum(tf.convert_to_tensor(whole) * tf.reshape(tf.range(28, dtype=tf.float32), [14, 2]))
            train_op = v1.train.MomentumOptimizer(0.1, 0.5).minimize(loss)
            session.run(v1.global_variables_initializer())
            session.run(train_op)
            for name, without in ((scope, "nothing"), (f"{scope}_lost", "part_3/Momentum")):
                kept = [each for each in v1.global_variables() if without not in each.op.name]
                v1.train.Saver(kept).save(session, str(folder / name), write_meta_graph=False, write_state=False)


if __name__ == "__main__":
    main(Path(__file__).parent / "recorded" / "partitioned")
    slots(Path(__file__).parent / "recorded" / "slots")
