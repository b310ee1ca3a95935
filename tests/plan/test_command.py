"""`estimator plan`."""

import json

import pytest

from estimator_core._cli.main import main
from tests.cli.test_run import PROGRAM
from tests.plan.lent_cpus import LentCPUs


class Backends:
    """The part of `Plugins` that the command asks."""

    def __init__(self, backend):
        self.backend = backend

    def get(self, kind, name):
        assert kind == "backend"
        return lambda: self.backend

    def names(self, kind):
        return ("lent_cpus",)


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setattr("estimator_core._plugins.default_plugins", lambda: Backends(LentCPUs()))
    path = tmp_path / "planned_line.py"
    path.write_text(PROGRAM.replace("SCALE", "1.0"))
    monkeypatch.chdir(tmp_path)
    return path


def test_prints_tables_and_writes_nothing(program, capsys, tmp_path):
    assert main(["plan", str(program), "--topology", "cpux1"]) == 0
    text = capsys.readouterr().out
    for words in (
        "cpux1   1 x cpu",
        "global batch 8",
        "memory of one device",
        "It fits",
        "time of a step",
        "compiled in",
    ):
        assert words in text
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["planned_line.py"]


def test_prints_json(program, capsys):
    assert main(["plan", str(program), "--topology", "lostx8", "--batch-size", "32", "--fully-sharded", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["examples"], values["mesh"], values["memory"]["compiled"]) == (32, {"data": 8}, False)


def test_mesh_and_settings_count(program, capsys):
    arguments = ["--mesh", "data=2,model=-1", "--set", "run_config.accumulate_steps=2"]
    assert main(["plan", str(program), "--topology", "lostx8", "--json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["mesh"] == {"data": 2, "model": 4}


def test_a_step_that_does_not_fit_has_its_own_exit_code(program, capsys, monkeypatch):
    monkeypatch.setattr("estimator_core._plugins.default_plugins", lambda: Backends(LentCPUs(memory_bytes=16)))
    assert main(["plan", str(program), "--topology", "cpux1"]) == 3
    assert "DOES NOT FIT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--topology", "v5e:2x4"], "No installed backend knows"),
        (["--topology", "cpu"], "has no known form"),
        (["--topology", "cpux1", "--mesh", "data"], "has no known form"),
        (["--topology", "cpux1", "--mesh", "data=2"], "devices"),
        (["--topology", "cpux1", "--batch-size", "0"], "batch_size"),
    ],
)
def test_refusals(program, capsys, arguments, words):
    assert main(["plan", str(program), *arguments]) == 1
    assert words in capsys.readouterr().err


def test_an_empty_input_is_named(program, capsys):
    program.write_text(
        program.read_text().replace("ec.inputs.numpy_input_fn(**inputs, num_epochs=None)", "lambda: iter(())")
    )
    assert main(["plan", str(program), "--topology", "cpux1"]) == 1
    assert "the training input is empty" in capsys.readouterr().err
