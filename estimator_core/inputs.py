"""Inputs: batches, where an input stands, host transforms, and the inputs that ship with the core."""

from estimator_core import _moved
from estimator_core._inputs import Batch, BatchSource, InputContext, InputFn, InputOptions, InputPosition, open_input
from estimator_core._inputs.arrays import ArrayInput, numpy_input_fn
from estimator_core._inputs.calling import call_input_fn
from estimator_core._inputs.preparation import DataContract
from estimator_core._inputs.transform_files import INDEX, load_transforms, save_transforms
from estimator_core._inputs.transforms import HostTransform, apply_transforms, with_transforms
from estimator_core._inputs.wrapped import from_iterable

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
