"""The reader of all formats of pretrained weights, for `init_from_checkpoint` and `WarmStartSettings`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_canned_bert.weights.hugging_face import INDEX, OLD_INDEX, OLD_WEIGHTS, WEIGHTS, read_hugging_face
from estimator_core.errors import ArgumentError
from estimator_warm_start.tensorflow import read_tensorflow, tensorflow_prefix

# The slots of an optimizer, and counters.
_NOT_WEIGHTS = re.compile(
    r".*/(adam_[mv]|Adam(_1)?|lamb_[mv]|AdamWeightDecayOptimizer.*)|global_step|_CHECKPOINTABLE.*"
)


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Returns the weights of a checkpoint of any format, by the names of google-research.

    Args:
        path: a Hugging Face directory, a TensorFlow checkpoint of google-research (its prefix, index or directory), or
            a model_dir or checkpoint of ours.

    Returns:
        The arrays by name. Arrays outside of encoder and output layer keep their names.

    Raises:
        ArgumentError: there are no weights.
        CheckpointCorruptError: the weights are damaged or incomplete.

    Example:
        >>> import estimator_core as ec
        >>> settings = ec.WarmStartSettings("uncased_L-2", "bert/", reader=read_checkpoint)
    """
    place = Path(path)
    if any((place / name).is_file() for name in (WEIGHTS, INDEX)):
        return read_hugging_face(place)
    prefix = tensorflow_prefix(place)
    if prefix is not None:
        return read_tensorflow(prefix, lambda name: not _NOT_WEIGHTS.fullmatch(name))
    if any((place / name).is_file() for name in (OLD_WEIGHTS, OLD_INDEX)):
        return read_hugging_face(place)
    if (place / "checkpoints").is_dir() or (place.parent.name == "checkpoints" and place.is_dir()):
        return dict(ec.load_variables(place))
    raise ArgumentError(
        f"There are no pretrained weights at {place}: neither {WEIGHTS} (Hugging Face), nor an .index file "
        "(TensorFlow), nor checkpoints of an Estimator."
    )


def get_assignment_map_from_checkpoint(
    tvars: Iterable[Any], init_checkpoint: str | os.PathLike[str]
) -> tuple[dict[str, str], dict[str, int]]:
    """Returns the result of `ec.get_assignment_map_from_checkpoint` for all formats that `read_checkpoint` reads.

    Pass the map to `ec.init_from_checkpoint(init_checkpoint, map, reader=read_checkpoint)`.

    Args:
        tvars: the variables, as `ec.trainable_variables` lists them.
        init_checkpoint: see `read_checkpoint`.

    Source: `modeling.get_assignment_map_from_checkpoint` of google-research/bert.
    """
    return ec.get_assignment_map_from_checkpoint(tvars, init_checkpoint, reader=read_checkpoint)
