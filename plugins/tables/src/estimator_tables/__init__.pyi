"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_tables.all_to_all import AllToAll as AllToAll
from estimator_tables.growing import GrowingTable as GrowingTable
from estimator_tables.growing import known_ids as known_ids
from estimator_tables.wide_ids import WideIds as WideIds

__version__: str
