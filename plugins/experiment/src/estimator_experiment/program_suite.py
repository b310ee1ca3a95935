"""The suite for program formats."""

from __future__ import annotations

from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_experiment.experiment import Experiment
from estimator_experiment.program import Program, ProgramFormat


class ProgramFormatSuite:
    """Proves the contract of a program format; a subclass says what it is made with.

    Attributes:
        broken: a text that the format refuses.
    """

    broken: str

    def program_format(self) -> ProgramFormat:
        """The format under test."""
        raise NotImplementedError

    def write(self, folder: Path) -> Path:
        """Writes a file of the format, with whatever it needs; returns its path."""
        raise NotImplementedError

    def test_gives_a_program(self, tmp_path: Path) -> None:
        """It is named after the file, and makes an Experiment with the RunConfig it is given."""
        path = self.write(tmp_path)
        program = self.program_format()(path, [])
        assert isinstance(program, Program)
        assert program.path == path
        config = program.run_config(str(tmp_path / "model"))
        experiment = program.experiment_fn(config, program.hparams(""))
        assert isinstance(experiment, Experiment)
        assert experiment.estimator.model_dir == str(tmp_path / "model")

    def test_settings_of_the_command_line_count(self, tmp_path: Path) -> None:
        """`--set run_config.FIELD=VALUE` is understood by every format."""
        program = self.program_format()(self.write(tmp_path), ["run_config.tf_random_seed=5"])
        assert program.run_config(str(tmp_path / "model")).tf_random_seed == 5

    def test_a_broken_file_is_named(self, tmp_path: Path) -> None:
        """The message names the file."""
        path = self.write(tmp_path)
        path.write_text(self.broken)
        told = ""
        try:
            self.program_format()(path, [])
        except ArgumentError as error:
            told = str(error)
        assert path.name in told, f"{path.name} holds {self.broken!r}"
