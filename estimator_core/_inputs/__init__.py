"""Inputs: batches, the position of an input, and the inputs that ship with the core."""

from estimator_core._inputs.contract import Batch as Batch
from estimator_core._inputs.contract import InputContext as InputContext
from estimator_core._inputs.contract import InputOptions as InputOptions
from estimator_core._inputs.contract import InputPosition as InputPosition
from estimator_core._inputs.input_fn import InputFn as InputFn
from estimator_core._inputs.source import BatchSource as BatchSource
from estimator_core._inputs.source import open_input as open_input
