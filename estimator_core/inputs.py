"""Inputs: batches, where an input stands, host transforms, and the inputs that ship with the core."""

from estimator_core._inputs import (
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
    pandas_input_fn,
    save_transforms,
    with_transforms,
)
from estimator_core._inputs.calling import call_input_fn
from estimator_core._inputs.transform_files import INDEX

__all__ = [
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
