"""Tests of start-up with fifty plugins: neither the commands nor a look-up imports a heavy module or a component."""

import json

import pytest

from estimator_core._plugins.loader import HEAVY_PACKAGES

PLUGIN = """
from estimator_core._plugins import Command, Component

def estimator_components():
    return [
        Component(kind="head", name="head_{i}", target="generated_{i}.heavy:Head", summary="A generated head."),
        Component(kind="hook", name="hook_{i}", target="generated_{i}.heavy:Hook", summary="A generated hook."),
    ]

def estimator_commands():
    return [Command(name="generated-{i}", target="generated_{i}.command", summary="A generated command.")]
"""
REPORT = """
import contextlib, io, json, sys
from estimator_core._cli.main import main
out = io.StringIO()
with contextlib.redirect_stdout(out):
    code = main({words!r})
print(json.dumps([code, out.getvalue(), sorted(sys.modules)]))
"""


@pytest.fixture
def fifty(site):
    for i in range(50):
        heavy = {"heavy.py": "import jax\nclass Head: pass\nclass Hook: pass\n", "command.py": "import jax\n"}
        site.add(f"generated-{i}", PLUGIN.format(i=i), files=heavy)
    return site


ONLY_THESE = {"ESTIMATOR_PLUGINS": ",".join(f"generated_{i}" for i in range(50))}


def run(site, words):
    done = site.python("-c", REPORT.format(words=words), environ=ONLY_THESE)
    assert done.returncode == 0, done.stderr
    code, output, modules = json.loads(done.stdout)
    return code, output, set(modules)


@pytest.mark.parametrize("words", [["--help"], ["plugins"], ["plugins", "--json", "--kind", "head"]])
def test_commands_import_nothing_heavy(fifty, words):
    code, output, modules = run(fifty, words)
    assert code == 0
    assert all(f"generated-{i}" in output for i in range(50))
    assert not modules & HEAVY_PACKAGES
    assert not [name for name in modules if name.endswith((".heavy", ".command"))]
    assert "generated_49.plugin" in modules


@pytest.mark.plugins
@pytest.mark.parametrize("words", [["--help"], ["plugins"]])
def test_commands_with_every_package_of_ours_import_nothing_heavy(site, words):
    done = site.python("-c", REPORT.format(words=words), environ={})
    code, output, modules = json.loads(done.stdout)
    assert code == 0, done.stderr
    assert "estimator-experiment" in output
    assert {"estimator_experiment.plugin", "estimator_plan.plugin"} <= set(modules)
    assert not set(modules) & HEAVY_PACKAGES


def test_a_core_command_loads_no_plugin(fifty):
    script = (
        "import sys; from estimator_core._cli.main import find_command; find_command('plugins'); print(*sys.modules)"
    )
    modules = fifty.python("-c", script).stdout.split()
    assert "generated_0.plugin" not in modules
    assert not set(modules) & HEAVY_PACKAGES


def test_importing_the_package_imports_no_plugin_machinery(fifty):
    modules = fifty.python("-c", "import estimator_core, sys; print(*sys.modules)").stdout.split()
    assert "pluggy" not in modules
    assert "generated_0.plugin" not in modules
    assert not set(modules) & HEAVY_PACKAGES


def test_a_plugins_command_imports_that_command_alone(fifty):
    command = fifty.path / "generated_7" / "command.py"
    command.write_text(
        '"""Say hello."""\nimport sys\ndef configure(parser):\n    parser.add_argument("name")\n'
        "def run(args):\n    print('hello', args.name, *[name for name in sys.modules if name.endswith('.command')])\n"
    )
    done = fifty.run("generated-7", "you")
    assert (done.returncode, done.stdout) == (0, "hello you generated_7.command\n"), done.stderr
