"""Inputs: batches, where an input stands, and the inputs that ship with the core."""

from estimator_core.inputs.arrays import numpy_input_fn
from estimator_core.inputs.batch import Batch
from estimator_core.inputs.calling import InputFn
from estimator_core.inputs.context import InputContext
from estimator_core.inputs.frames import pandas_input_fn
from estimator_core.inputs.iterables import from_iterable
from estimator_core.inputs.options import InputOptions
from estimator_core.inputs.position import InputPosition
from estimator_core.inputs.prefetch import PrefetchedSource, prefetch
from estimator_core.inputs.source import BatchSource, open_input
from estimator_core.inputs.transform_files import load_transforms, save_transforms
from estimator_core.inputs.transforms import HostTransform, apply_transforms, with_transforms

__all__ = [
    "Batch",
    "BatchSource",
    "HostTransform",
    "InputContext",
    "InputFn",
    "InputOptions",
    "InputPosition",
    "PrefetchedSource",
    "apply_transforms",
    "from_iterable",
    "load_transforms",
    "numpy_input_fn",
    "open_input",
    "pandas_input_fn",
    "prefetch",
    "save_transforms",
    "with_transforms",
]
