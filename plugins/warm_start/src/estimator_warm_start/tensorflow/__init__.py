"""Checkpoints of TensorFlow, read without TensorFlow."""

from estimator_warm_start.tensorflow.bundle import read_tensorflow
from estimator_warm_start.tensorflow.initial_values import TensorFlowCheckpoint
from estimator_warm_start.tensorflow.prefix import tensorflow_prefix

__all__ = ["TensorFlowCheckpoint", "read_tensorflow", "tensorflow_prefix"]
