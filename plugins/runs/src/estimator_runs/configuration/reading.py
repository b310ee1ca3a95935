"""A configuration file as a program: the program format of .toml, .yaml and .yml files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from estimator_experiment.program import Program
from estimator_runs.configuration.build import build_program
from estimator_runs.configuration.checking import checked
from estimator_runs.configuration.files import read_layers
from estimator_runs.configuration.layers import Layer, Resolved, resolve
from estimator_runs.configuration.overrides import of_same_types, read_settings
from estimator_runs.configuration.problems import ConfigurationError, at
from estimator_runs.configuration.schema import Configuration

#: The maximum nesting, because the readers of values are recursive, and the number of parts of such a key that is
#: shown.
_DEEPEST, _SHOWN = 50, 4


@dataclass(frozen=True, kw_only=True)
class Read:
    """A configuration, and the origin of each of its values."""

    path: Path
    settings: tuple[str, ...]
    configuration: Configuration
    resolved: Resolved

    def program(self) -> Program:
        """Returns the program that the configuration describes.

        Raises:
            ConfigurationError: the configuration names code, components or arguments that do not exist.
        """
        return build_program(self.configuration, self.resolved, self.path)


def read_configuration(
    path: Path, settings: Sequence[str] = (), *, more: Sequence[Layer] = (), over: Sequence[Layer] = ()
) -> Read:
    """Reads and checks a configuration file.

    Args:
        path: the path of a TOML or YAML file.
        settings: the settings of the command line, `key.in.full=value`. The last ones win.
        more: layers below the file, such as those of an organisation.
        over: layers above the command line, such as the values of a trial.

    Raises:
        ConfigurationError: there are faults. The message names file, line, key and remedy of each.
    """
    files = [*more, *read_layers(path)]
    resolved = resolve([*files, *of_same_types(read_settings(settings), resolve(files)), *over])
    if deep := next((place for place in resolved.origins if len(place) > _DEEPEST), None):
        raise ConfigurationError([at(resolved, deep[:_SHOWN], "the value is nested too deeply.")])
    return Read(path=path, settings=tuple(settings), configuration=checked(resolved), resolved=resolved)


def read_program(path: Path, settings: Sequence[str] = ()) -> Program:
    """Returns the program that a configuration file describes.

    Raises:
        ConfigurationError: there are faults. The message names file, line, key and remedy of each.
    """
    return read_configuration(path, settings).program()
