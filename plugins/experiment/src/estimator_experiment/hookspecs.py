"""Hook specifications that other plugins may implement around `estimator run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from estimator_core.plugins import hookspec

if TYPE_CHECKING:
    from estimator_core.hooks import Hook
    from estimator_experiment.experiment import Experiment


@dataclass(frozen=True, kw_only=True)
class RunCommand:
    """The arguments of an `estimator run` command that trains.

    Args:
        file: the program, as given on the command line.
        settings: texts of `--set`.
        hparams: the text of `--hparams`.
        schedule: the method of the Experiment. None: the role of the process decides.
        hooks: the names of `--hook`.
        exporters: the names of `--exporter`.
    """

    file: str
    settings: tuple[str, ...] = ()
    hparams: str = ""
    schedule: str | None = None
    hooks: tuple[str, ...] = ()
    exporters: tuple[str, ...] = ()

    def words(self) -> list[str]:
        """Returns the words of the command line after `estimator`, without the model_dir.

        Example:
            >>> RunCommand(file="line.py", hparams="rate=0.1", hooks=("bell",)).words()
            ['run', 'line.py', '--hparams', 'rate=0.1', '--hook', 'bell']
        """
        options = [("--hparams", self.hparams), ("--schedule", self.schedule)]
        lists = [("--set", self.settings), ("--hook", self.hooks), ("--exporter", self.exporters)]
        options += [(name, each) for name, given in lists for each in given]
        return ["run", self.file, *(word for name, value in options if value for word in (name, value))]


class ProgramSpecifications:
    """Additions of plugins to programs that `estimator run` runs."""

    @hookspec
    def estimator_program_hooks(self, command: RunCommand, experiment: Experiment, options: Any) -> Sequence[Hook]:
        """Returns hooks for the training of a program. They are added after the hooks of the program itself.

        Args:
            command: the arguments of `estimator run`.
            experiment: the Experiment that the program made.
            options: the options of the plugin, by name.
        """
        raise NotImplementedError
