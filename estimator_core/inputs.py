"""Inputs: batches, where an input stands, host transforms, and the inputs that ship with the core."""

from typing import TYPE_CHECKING

from estimator_core import _moved
from estimator_core._inputs import (
    ArrayInput,
    Batch,
    BatchSource,
    HostTransform,
    InputContext,
    InputFn,
    InputOptions,
    InputPosition,
    apply_transforms,
    from_iterable,
    load_transforms,
    numpy_input_fn,
    open_input,
    save_transforms,
    with_transforms,
)
from estimator_core._inputs.calling import call_input_fn
from estimator_core._inputs.transform_files import INDEX

if TYPE_CHECKING:
    from estimator_inputs import pandas_input_fn

__all__ = [
    "ArrayInput",
    "Batch",
    "BatchSource",
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
    "pandas_input_fn",
    "save_transforms",
    "with_transforms",
]

__getattr__ = _moved.names_of("inputs")
