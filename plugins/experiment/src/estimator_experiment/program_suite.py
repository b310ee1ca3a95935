"""The test suite of program formats."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_experiment.experiment import Experiment
from estimator_experiment.program import Program, ProgramFormat


class ProgramFormatSuite:
    """Tests the contract of a program format. A subclass defines the format and its files.

    Attributes:
        broken: a text that the format refuses.
        hparam: a hyperparameter that the file of `write` sets, with its value. None: it sets no hyperparameter.
    """

    broken: str
    hparam: tuple[str, Any] | None = None

    def program_format(self) -> ProgramFormat:
        """Returns the format under test."""
        raise NotImplementedError

    def write(self, folder: Path) -> Path:
        """Writes a file of the format, with everything that it needs, and returns its path."""
        raise NotImplementedError

    def test_gives_a_program(self, tmp_path: Path) -> None:
        """The program is named after the file, and makes an Experiment with the given RunConfig."""
        path = self.write(tmp_path)
        program = self.program_format()(path, [])
        assert isinstance(program, Program)
        assert program.path == path
        config = program.run_config(str(tmp_path / "model"))
        experiment = program.experiment_fn(config, program.hparams(""))
        assert isinstance(experiment, Experiment)
        assert experiment.estimator.model_dir == str(tmp_path / "model")

    def test_settings_of_the_command_line_count(self, tmp_path: Path) -> None:
        """Every format accepts `--set run_config.FIELD=VALUE`."""
        program = self.program_format()(self.write(tmp_path), ["run_config.tf_random_seed=5"])
        assert program.run_config(str(tmp_path / "model")).tf_random_seed == 5

    def test_hyperparameters_of_the_command_line_count(self, tmp_path: Path) -> None:
        """The hyperparameters of the file are the default, and `--hparams` replaces them."""
        program = self.program_format()(self.write(tmp_path), [])
        if self.hparam is None:
            pytest.skip("its file sets no hyperparameter")
        name, value = self.hparam
        given, changed = program.hparams(""), program.hparams(f"{name}={value + 1}")
        assert given is not None
        assert changed is not None
        assert (given.values()[name], changed.values()[name]) == (value, value + 1)

    def test_reads_the_same_from_anywhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files in its directory are found by its path. A second reading has the same result, and changes nothing."""
        path = self.write(tmp_path)
        (elsewhere := tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(elsewhere)
        texts, environment = _texts(tmp_path), dict(os.environ)
        one, other = (self.program_format()(path, []) for _ in range(2))
        assert one.run_config("m") == other.run_config("m"), "read again, it leads to other settings"
        values = [program.hparams("") for program in (one, other)]
        assert len({repr(value and value.values()) for value in values}) == 1, (
            "read again, it has other hyperparameters"
        )
        assert isinstance(one.experiment_fn(one.run_config(str(tmp_path / "model")), values[0]), Experiment)
        assert _texts(tmp_path) == texts, "it writes files"
        assert dict(os.environ) == environment, "it changes the environment"
        assert Path.cwd() == elsewhere, "it changes the working directory"

    def test_a_setting_that_nobody_has_is_refused(self, tmp_path: Path) -> None:
        """The message names a field that RunConfig does not have."""
        path = self.write(tmp_path)
        with pytest.raises((ArgumentError, ArgumentTypeError), match="no_such_field"):
            self.program_format()(path, ["run_config.no_such_field=1"]).run_config(str(tmp_path / "model"))

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        """The message names the file."""
        path = self.write(tmp_path)
        path.unlink()
        with pytest.raises(ArgumentError, match=path.name):
            self.program_format()(path, [])

    def test_a_broken_file_is_named(self, tmp_path: Path) -> None:
        """The message names the file, even if the file is not a text."""
        path = self.write(tmp_path)
        for content in (self.broken.encode(), b"\x00\xff{["):
            path.write_bytes(content)
            told = ""
            try:
                self.program_format()(path, [])
            except ArgumentError as error:
                told = str(error)
            assert path.name in told, f"{path.name} holds {content!r}"


def _texts(folder: Path) -> dict[str, bytes]:
    """Returns the content of a folder, without the files that Python compiles."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(path): path.read_bytes() for path in files}
