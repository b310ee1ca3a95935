"""Inputs: batches, where an input stands, and the inputs that ship with the core."""

from estimator_core._inputs.arrays import ArrayInput, numpy_input_fn
from estimator_core._inputs.batch import Batch
from estimator_core._inputs.calling import InputFn
from estimator_core._inputs.context import InputContext
from estimator_core._inputs.iterables import from_iterable
from estimator_core._inputs.options import InputOptions
from estimator_core._inputs.position import InputPosition
from estimator_core._inputs.prefetch import PrefetchedSource, prefetch
from estimator_core._inputs.source import BatchSource, open_input
from estimator_core._inputs.transform_files import load_transforms, save_transforms
from estimator_core._inputs.transforms import HostTransform, apply_transforms, with_transforms

__all__ = [
    "ArrayInput",
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
    "prefetch",
    "save_transforms",
    "with_transforms",
]
