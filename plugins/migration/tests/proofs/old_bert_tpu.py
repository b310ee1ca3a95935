"""The parts of bert_tpu.py that are compared, with Python 3.7 and tensorflow-cpu 1.15.0.

Dropout is left out because it is random. The program increases the step and updates the weights in no fixed order, so
the rate sees either step. Here the increase waits for the update. The norm for clipping counts each lookup of a row of
word_table separately. Here the lookups are added first, as in their gradient. The rate is divided by 100, so that
rounding errors stay small.
"""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
import bert_tpu
import tensorflow as tf


def _in_order():
    """Makes the step wait for the update, and computes the norm of whole gradients."""
    updates, apply_gradients = [], bert_tpu.AdamDecayOptimizer.apply_gradients
    get_step = tf.train.get_or_create_global_step

    def noted(self, *args, **kwargs):
        updates.append(apply_gradients(self, *args, **kwargs))
        return updates[-1]

    def waiting():
        step = get_step()
        assign_add = step.assign_add

        def after_the_update(by):
            with tf.control_dependencies(updates[-1:]):
                return assign_add(by)

        step.assign_add = after_the_update
        return step

    clip = tf.clip_by_global_norm
    tf.clip_by_global_norm = lambda slopes, norm: clip([tf.convert_to_tensor(each) for each in slopes], norm)
    bert_tpu.AdamDecayOptimizer.apply_gradients = noted
    tf.train.get_or_create_global_step = waiting


def tickets(model_dir):
    bert_tpu.FLAGS(["proof"])
    _in_order()
    tf.nn.dropout = lambda x, rate: x
    work = tempfile.mkdtemp()
    files = [
        bert_tpu.write_records(bert_tpu.make_tickets(600, 1), os.path.join(work, "train")),
        bert_tpu.write_records(bert_tpu.make_tickets(150, 2, multiple_of=32), os.path.join(work, "dev")),
    ]
    config = tf.contrib.tpu.RunConfig(model_dir=model_dir, tf_random_seed=11, save_checkpoints_steps=1000)
    estimator = tf.contrib.tpu.TPUEstimator(
        model_fn=bert_tpu.model_fn_builder(None, 3e-5, 150, 15),
        config=config,
        use_tpu=False,
        train_batch_size=32,
        eval_batch_size=32,
        predict_batch_size=32,
    )
    return {
        "estimator": estimator,
        "train_input_fn": bert_tpu.file_input_fn_builder(files[0], 12, True, True),
        "eval_input_fn": bert_tpu.file_input_fn_builder(files[1], 12, False, False),
    }
