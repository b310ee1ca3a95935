"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_terminal.completion import completion_script as completion_script
from estimator_terminal.package_changes import installed_packages as installed_packages
from estimator_terminal.package_changes import replaced_packages as replaced_packages

__version__: str
