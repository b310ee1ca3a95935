"""Tests that `estimator run --hook NAME(a=1) --exporter NAME(a=1)` passes the arguments to the component."""

from pathlib import Path

import pytest

from estimator_core.cli import main
from estimator_core.errors import ArgumentError, HookError
from estimator_experiment.cli.named_component import made, parsed
from estimator_testing.cli.scaffold import write_package
from plugins.experiment.tests.test_run import PROGRAM

SERVED = """
def serving_input_receiver_fn():
    return ec.export.build_raw_serving_input_receiver_fn({"x": ec.export.Feature((None,), "float32")})()
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "line.py"
    path.write_text(PROGRAM.replace("SCALE", "1.0") + SERVED)
    return path


def install(folder: Path, name: str, module: str) -> None:
    """Writes the metadata of a package, as an installer does."""
    metadata = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text(f"[estimator.plugins]\n{name.replace('-', '_')} = {module}\n")


@pytest.mark.parametrize(
    ("text", "name", "named"),
    [
        ("best", "best", {}),
        ("best()", "best", {}),
        ("best(metric=auc, keep=3)", "best", {"metric": "auc", "keep": 3}),
        ("acme:best(metric='auc/x', keys=[1, 'b'], rate=-0.5, on=True)", "acme:best", None),
    ],
)
def test_a_name_and_its_arguments(text, name, named):
    expected = {"metric": "auc/x", "keys": [1, "b"], "rate": -0.5, "on": True} if named is None else named
    assert parsed(text, "--exporter") == (name, expected)


@pytest.mark.parametrize(
    "text", ["best(", "best(3)", "best(a=)", "best(a=f(1))", "best(**b)", "best(a=1)(b=2)", "b(a=1)+1"]
)
def test_other_forms_are_refused(text):
    with pytest.raises(ArgumentError, match=r"must have the form NAME or NAME\(a=1, b=word\)"):
        parsed(text, "--hook")


def test_a_hook_gets_its_arguments(program):
    assert main(["run", str(program), "--hook", "stop_at_step(last_step=5)", "--hparams", "train_steps=12"]) == 0
    assert "5" in [path.name for path in Path("runs/line/checkpoints").iterdir()]
    assert "12" not in [path.name for path in Path("runs/line/checkpoints").iterdir()]


def test_arguments_that_it_does_not_take_are_named(program, capsys):
    assert main(["run", str(program), "--hook", "stop_at_step(steps=5)"]) == 2
    assert "unexpected keyword argument 'steps'" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_values_that_it_refuses_are_named(program, capsys):
    assert main(["run", str(program), "--hook", "step_counter(every_n_steps=0)"]) == 2
    assert "--hook step_counter(every_n_steps=0): step_counter refuses it: " in capsys.readouterr().err
    assert not Path("runs").exists()


def test_an_error_within_a_component_says_whose_it_is(tmp_path, monkeypatch):
    (tmp_path / "acme_fails.py").write_text(
        "from estimator_core.plugins import Component\n"
        "ESTIMATOR_PLUGIN_API = (1, 1)\n"
        "def estimator_components():\n"
        "    return [Component(kind='hook', name='fails', target='acme_fails:fails', summary='Fails.')]\n"
        "def fails(key='a'):\n"
        "    return {}[key]\n"
    )
    install(tmp_path, "acme-fails", "acme_fails")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(KeyError) as caught:
        made("hook", "fails(key=b)")
    assert caught.value.__notes__ == [
        "while hook 'fails' of acme-fails 0.1.0 (acme_fails:fails) was made for --hook fails(key=b)"
    ]


def test_an_error_of_the_house_within_a_component_says_whose_it_is(monkeypatch):
    """A command prints only the message, without notes."""

    def fails():
        raise HookError("it needs a tracker.")

    monkeypatch.setattr("estimator_core.builtin_hooks.NanTensorHook.__init__", lambda self: fails())
    with pytest.raises(HookError, match=r"^--hook nan_tensor: it needs a tracker\.$"):
        made("hook", "nan_tensor")


@pytest.mark.plugins
def test_a_function_that_is_a_default_is_shown_by_its_name(program, capsys):
    assert main(["run", str(program), "--exporter", "best(metric=auc)"]) == 2
    told = capsys.readouterr().err
    assert "compare_fn: 'Callable[..., bool]' = loss_smaller, " in told
    assert " at 0x" not in told


def test_the_exporter_of_the_template_exports(program, tmp_path, monkeypatch):
    write_package("acme-goal", "exporter", tmp_path)
    source = tmp_path / "acme-goal" / "src"
    install(source, "acme-goal", "acme_goal.plugin")
    install(source, "acme-arrays", "estimator_testing.array_format")
    monkeypatch.syspath_prepend(str(source))
    given = "acme_goal(goal=1e9, export_format=arrays)"
    assert main(["run", str(program), "--exporter", given, "--hparams", "train_steps=4"]) == 0
    assert len(list(Path("runs/line/export/acme_goal").rglob("arrays.json"))) == 1


def test_what_needs_a_program_is_refused_with_the_reason(program, tmp_path, monkeypatch, capsys):
    (tmp_path / "acme_needs.py").write_text(
        "from estimator_core.plugins import Component\n"
        "ESTIMATOR_PLUGIN_API = (1, 1)\n"
        "def estimator_components():\n"
        "    return [Component(kind='hook', name='bound', target='json:loads', summary='Two.', needs='an input_fn')]\n"
    )
    install(tmp_path, "acme-needs", "acme_needs")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("bound", "acme-needs:bound(a=1)"):
        assert main(["run", str(program), "--hook", name]) == 2
        assert (
            "bound needs an input_fn, which only a program can supply. Create it in the program."
            in capsys.readouterr().err
        )
    assert not Path("runs").exists()
    assert main(["plugins", "--kind", "hook"]) == 0
    assert "hook bound: Two. (only in a program: needs an input_fn)" in capsys.readouterr().out
