"""Reads exports with TensorFlow only: `python check_saved_model.py DIRECTORY`."""

import sys

import compare
import tensorflow as tf


def load(path):
    module = tf.saved_model.load(str(path))
    signature = module.signatures["serving_default"]

    def run(**inputs):
        assert module is not None  # its variables exist only while it exists
        outputs = signature(**{name: tf.constant(value) for name, value in inputs.items()})
        return {name: value.numpy() for name, value in outputs.items()}

    return run


if __name__ == "__main__":
    compare.check(sys.argv[1], load, (*compare.ABSENT, "jax"))
    print(f"TensorFlow {tf.__version__}")
