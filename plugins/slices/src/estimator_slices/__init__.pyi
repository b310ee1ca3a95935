"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_slices.gate import SliceGate as SliceGate
from estimator_slices.hook import SliceHook as SliceHook
from estimator_slices.rows import RESULT as RESULT
from estimator_slices.rows import SliceRow as SliceRow
from estimator_slices.rows import rows_of as rows_of
from estimator_slices.rows import slice_name as slice_name

__version__: str
