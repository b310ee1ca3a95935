"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_runs.configuration.layers import Layer as Layer
from estimator_runs.configuration.layers import Origin as Origin
from estimator_runs.configuration.layers import Resolved as Resolved
from estimator_runs.configuration.layers import resolve as resolve
from estimator_runs.configuration.problems import ConfigurationError as ConfigurationError
from estimator_runs.configuration.problems import Problem as Problem
from estimator_runs.configuration.reading import read_configuration as read_configuration
from estimator_runs.configuration.reading import read_program as read_program

__version__: str
