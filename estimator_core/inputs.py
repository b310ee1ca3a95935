"""Inputs: batches, positions of an input, host transforms, and the inputs that ship with the core."""

from estimator_core import _moved
from estimator_core._inputs import Batch, BatchSource, InputContext, InputFn, InputOptions, InputPosition, open_input
from estimator_core._inputs.arrays import ArrayInput, numpy_input_fn
from estimator_core._inputs.input_fn import call_input_fn, from_iterable
from estimator_core._inputs.preparation import DataContract
from estimator_core._inputs.transforms import (
    INDEX,
    HostTransform,
    apply_transforms,
    load_transforms,
    save_transforms,
    with_transforms,
)

__all__ = [
    "ArrayInput",
    "Batch",
    "BatchSource",
    "DataContract",
    "HostTransform",
    "INDEX",
    "InputContext",
    "InputFn",
    "InputOptions",
    "InputPosition",
    "apply_transforms",
    "call_input_fn",
    "from_iterable",
    "load_transforms",
    "numpy_input_fn",
    "open_input",
    "save_transforms",
    "with_transforms",
]

__getattr__ = _moved.names_of("inputs")
