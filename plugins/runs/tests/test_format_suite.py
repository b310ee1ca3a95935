"""Configuration files keep the contract of program formats."""

import pytest
from line_files import CODE, YAML, write_line

from estimator_experiment.program_suite import ProgramFormatSuite
from estimator_runs import read_program


class TestToml(ProgramFormatSuite):
    broken = "[model"

    def program_format(self):
        return read_program

    def write(self, folder):
        return write_line(folder)


class TestYaml(ProgramFormatSuite):
    broken = "model: ["

    @pytest.fixture(autouse=True)
    def reader(self):
        pytest.importorskip("ruamel.yaml")

    def program_format(self):
        return read_program

    def write(self, folder):
        (folder / "line_code.py").write_text(CODE)
        path = folder / "line.yaml"
        path.write_text(YAML)
        return path
