"""Tests of `estimator plan`."""

import json
import sys
from pathlib import Path

import pytest

import estimator_plan.kept_program
from estimator_core.cli import main
from estimator_core.plugins import Plugins, default_plugins
from estimator_plan import load_preset
from plugins.plan.tests.lent_cpus import LentCPUs

PROGRAM = Path(__file__).parent / "line_program.py"


def lend(monkeypatch, backend):
    """Makes a backend the only one. It patches methods, because a module could keep a function under its own name."""
    get, names = Plugins.get, Plugins.names
    monkeypatch.setattr(
        Plugins, "get", lambda self, kind, name: (lambda: backend) if kind == "backend" else get(self, kind, name)
    )
    monkeypatch.setattr(Plugins, "names", lambda self, kind: ("lent_cpus",) if kind == "backend" else names(self, kind))


@pytest.fixture
def program(tmp_path, monkeypatch):
    lend(monkeypatch, LentCPUs())
    path = tmp_path / "planned_line.py"
    path.write_text(PROGRAM.read_text())
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


def test_a_lent_backend_hides_no_other_component(program):
    """A module that is first imported during the test keeps `default_plugins` after it."""
    import estimator_core.plugins

    assert estimator_core.plugins.default_plugins is default_plugins
    assert default_plugins().names("backend") == ("lent_cpus",)
    assert "lent_cpus" not in default_plugins().names("head")


def test_prints_json(program, capsys):
    assert main(["plan", str(program), "--topology", "lostx8", "--batch-size", "32", "--fully-sharded", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["examples"], values["mesh"], values["memory"]["compiled"]) == (32, {"data": 8}, False)


def test_mesh_and_settings_count(program, capsys):
    arguments = ["--mesh", "data=2,model=-1", "--set", "run_config.accumulate_steps=2"]
    assert main(["plan", str(program), "--topology", "lostx8", "--json", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["mesh"] == {"data": 2, "model": 4}


def test_a_step_that_does_not_fit_has_its_own_exit_code(program, capsys, monkeypatch):
    lend(monkeypatch, LentCPUs(memory_bytes=16))
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
        (["--topology", "cpux1", "--search", "--meshes", "-1"], "meshes must not be negative"),
        (["--topology", "cpux1", "--search", "--dollars", "nan"], "must be finite and not negative"),
        (["--topology", "cpux1", "--search", "--dollars", "-2"], "must be finite and not negative"),
        (["--topology", "cpux1", "--search", "--save", "missing/plan.toml"], "there is no directory missing"),
        (["--topology", "cpux1", "--search", "--save", "."], "choose another name"),
    ],
)
def test_refusals(program, capsys, arguments, words):
    assert main(["plan", str(program), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_plan_is_saved_over_a_plan_and_over_nothing_else(program, capsys):
    given = "[hparams]\nrate = 0.3\n"
    Path("line.toml").write_text(given)
    command = ["plan", str(program), "--topology", "cpux1", "--search", "--meshes", "0", "--save"]
    assert main([*command, "line.toml"]) == 2
    assert "line.toml exists and is not a plan" in capsys.readouterr().err
    assert Path("line.toml").read_text() == given
    for _ in range(2):
        assert main([*command, "plan.toml"]) == 0
    assert load_preset("plan.toml").mesh == {"data": -1}


def test_an_empty_input_is_named(program, capsys):
    program.write_text(
        program.read_text().replace("ec.inputs.numpy_input_fn(**inputs, num_epochs=None)", "lambda: iter(())")
    )
    assert main(["plan", str(program), "--topology", "cpux1"]) == 2
    assert "the training input is empty" in capsys.readouterr().err


def test_an_input_that_a_hook_makes_ready_is_planned_for(program, capsys):
    """The arrays exist only after the hook's `begin` has been called."""
    text = program.read_text().replace(
        "        train_steps=hparams.train_steps,\n",
        "        train_steps=hparams.train_steps,\n        train_hooks=[Load(), ec.Hook()],\n",
    )
    text = text.replace("ec.inputs.numpy_input_fn(**inputs, num_epochs=None)", "lambda: iter(arrays)")
    program.write_text(text + LOADS_IN_BEGIN)
    assert main(["plan", str(program), "--topology", "cpux1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 6


LOADS_IN_BEGIN = """

arrays = []


class Load(ec.Hook):
    def begin(self, run):
        assert run.mode == ec.ModeKeys.TRAIN
        arrays.append(({"x": np.zeros(6, np.float32)}, np.zeros(6, np.float32)))
"""


def test_what_reads_the_file_is_named_where_it_is_not_installed(program, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "estimator_experiment", None)  # Python marks a missing module like this
    assert main(["plan", str(program), "--topology", "cpux1"]) == 2
    assert 'estimator-experiment, which is not installed: pip install "estimator-plan[cli]"' in capsys.readouterr().err


def test_programs_are_kept_for_the_plan_and_for_the_winner_of_a_search(program, monkeypatch):
    """Each program has its own way of splitting. The tests of `keep_program` check the content."""
    asked = []
    monkeypatch.setattr(
        "estimator_plan.kept_program.keep_program", lambda _, batch, found, folder, **way: asked.append((folder, way))
    )
    monkeypatch.setattr("estimator_plan.keep_program", estimator_plan.kept_program.keep_program, raising=False)
    common = ["plan", str(program), "--topology", "cpux1", "--programs", "kept", "--json"]
    assert main([*common, "--mesh", "data=1", "--batch-size", "16"]) == 0
    assert main([*common, "--search"]) == 0
    (folder, plain), (_, best) = asked
    assert (folder, plain["mesh"], plain["batch_size"]) == ("kept", {"data": 1}, 16)
    assert best["batch_size"] == 8
    assert {"mesh", "partition_rules", "remat"} <= set(best)
