"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_tables.all_to_all import AllToAll as AllToAll

__version__: str
