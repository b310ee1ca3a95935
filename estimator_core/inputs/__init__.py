"""Inputs: batches, where an input stands, and the inputs that ship with the core."""

from estimator_core.inputs.arrays import numpy_input_fn
from estimator_core.inputs.batch import Batch
from estimator_core.inputs.context import InputContext
from estimator_core.inputs.options import InputOptions
from estimator_core.inputs.position import InputPosition
from estimator_core.inputs.source import BatchSource, open_input

__all__ = ["Batch", "BatchSource", "InputContext", "InputOptions", "InputPosition", "numpy_input_fn", "open_input"]
