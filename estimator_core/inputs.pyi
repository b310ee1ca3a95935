"""The public names of `inputs.py`, typed; those that live in a package of their own too."""

from estimator_core._inputs import Batch as Batch
from estimator_core._inputs import BatchSource as BatchSource
from estimator_core._inputs import InputContext as InputContext
from estimator_core._inputs import InputFn as InputFn
from estimator_core._inputs import InputOptions as InputOptions
from estimator_core._inputs import InputPosition as InputPosition
from estimator_core._inputs import open_input as open_input
from estimator_core._inputs.arrays import ArrayInput as ArrayInput
from estimator_core._inputs.arrays import numpy_input_fn as numpy_input_fn
from estimator_core._inputs.input_fn import call_input_fn as call_input_fn
from estimator_core._inputs.input_fn import from_iterable as from_iterable
from estimator_core._inputs.preparation import DataContract as DataContract
from estimator_core._inputs.transforms import INDEX as INDEX
from estimator_core._inputs.transforms import HostTransform as HostTransform
from estimator_core._inputs.transforms import apply_transforms as apply_transforms
from estimator_core._inputs.transforms import load_transforms as load_transforms
from estimator_core._inputs.transforms import save_transforms as save_transforms
from estimator_core._inputs.transforms import with_transforms as with_transforms
from estimator_inputs import pandas_input_fn as pandas_input_fn
