"""The initial values of variables from a checkpoint of TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import jax
import numpy as np

from estimator_core.errors import ArgumentError
from estimator_core.model import InitialValue, VariableSpec
from estimator_warm_start.settings import WarmStartSettings
from estimator_warm_start.tensorflow.bundle import read_tensorflow
from estimator_warm_start.tensorflow.prefix import tensorflow_prefix


class TensorFlowCheckpoint:
    """The initial values of the variables that a checkpoint of TensorFlow has under the same name.

    Args:
        path: a model_dir of tf.estimator, a prefix such as `model.ckpt-50`, or its index file.

    Example:
        >>> TensorFlowCheckpoint("runs/of_tensorflow").path
        'runs/of_tensorflow'
    """

    title = "TensorFlow"
    conversion = "estimator migrate checkpoint {path} OUT --program FILE"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def initial_values(
        self, specs: Mapping[str, VariableSpec], key: Callable[[str], jax.Array]
    ) -> Mapping[str, InitialValue]:
        """Returns the values of the variables that the checkpoint has."""
        return WarmStartSettings(self.path, reader=TensorFlowCheckpoint.load).initial_values(specs, key)

    @staticmethod
    def load(path: str) -> dict[str, np.ndarray]:
        """Returns all numbers of the checkpoint by name.

        Raises:
            ArgumentError: the path names no checkpoint, or several.
            CheckpointCorruptError: the checkpoint is damaged.
        """
        prefix = tensorflow_prefix(path)
        if prefix is None:
            raise ArgumentError(f"There is no checkpoint of TensorFlow at {path}.")
        return read_tensorflow(prefix)
