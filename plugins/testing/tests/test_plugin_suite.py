"""The plugin suite passes a sound plugin and catches broken ones, and the doctor reports the same faults."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from estimator_testing import PluginSuite, plugin_suite
from estimator_testing.plugin_checks import CHECKS, _takes_first
from tests.plugins.fake_site import Site

#: The type of the argument is an alias of `str` that only type checkers import.
OF_WORDS = """
from __future__ import annotations

from typing import TYPE_CHECKING

from estimator_core.hooks import Hook

if TYPE_CHECKING:
    from sound.words import Words

class OfWords(Hook):
    def __init__(self, words: Words) -> None:
        self.words = words
"""


class TestSoundPlugin(PluginSuite):
    plugin = "sound"

    @pytest.fixture(autouse=True)
    def installed(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(str(tmp_path))
        site = Site(tmp_path)
        install_sound(site)
        yield
        site.forget()
        plugin_suite._examined.cache_clear()


def install_sound(site):
    site.add(
        "sound",
        """
        from collections.abc import Mapping
        from typing import Any

        from estimator_core.plugins import Command, Component, Option

        def estimator_components():
            return [
                Component(kind="hook", name="sound", target="sound.hook:SoundHook", summary="Does nothing."),
                Component(kind="hook", name="of_words", target="sound.of_words:OfWords", summary="Does nothing."),
            ]

        def estimator_commands():
            return [Command(name="sound", target="sound.command", summary="Say hello.")]

        def estimator_options():
            return [Option(name="volume", type=int, default=3, help="How loud.")]

        def estimator_run_hooks(run: "Run", options: Mapping[str, Any]):
            from sound.hook import SoundHook
            return [SoundHook()] if options["volume"] else []
        """,
        files={
            "hook.py": "import jax\nfrom estimator_core.hooks import Hook\nclass SoundHook(Hook):\n    pass\n",
            "of_words.py": OF_WORDS,
            "words.py": "from collections.abc import Sequence\nWords = Sequence[str]\n",
            "command.py": '"""Say hello."""\ndef configure(parser):\n    pass\ndef run(args):\n    return 0\n',
        },
    )


@pytest.mark.slow
def test_broken_plugins_are_caught(assert_each_is_caught):
    assert_each_is_caught("plugins")


def test_every_check_of_the_doctor_is_a_test_of_the_suite():
    tests = {name.removeprefix("test_") for name in vars(PluginSuite) if name.startswith("test_")}
    assert {check.__name__.removeprefix("check_") for check in CHECKS} == tests
    assert all(check.__doc__ for check in CHECKS)


def test_the_doctor_finds_a_sound_plugin_well(tmp_path):
    site = Site(tmp_path)
    install_sound(site)
    done = site.run("plugins", "doctor", "sound")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("sound 1.0, entry point 'sound': module sound.plugin")
    assert done.stdout.count("  ok  ") == len(CHECKS)
    assert "with HookSuite of estimator_testing" in done.stdout


def test_the_doctor_names_what_is_heavy_missing_and_colliding(tmp_path):
    site = Site(tmp_path)
    source = """
        import jax
        from estimator_core.plugins import Command, Component

        def estimator_components():
            return [
                Component(kind="backend", name="cpu", target="ill.backend:Backend", summary="A second CPU backend."),
            ]

        def estimator_commands():
            return [Command(name="audit", target="ill.audit", summary="A second audit.")]
        """
    site.add("ill", source)
    done = site.run("plugins", "doctor", "ill")
    assert done.returncode == 1
    assert "importing ill.plugin imports jax" in done.stdout
    assert "backend 'cpu': ill.backend:Backend cannot be imported: No module named 'ill.backend'" in done.stdout
    assert "backend 'cpu' is also provided by estimator-core 0.1.0" in done.stdout
    assert "command 'audit' is also provided by estimator-core; ask for 'ill:audit'" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("serving_input_receiver_fn, name, *args", True),
        ("first, *args, **named", True),
        ("*args, name='x', **named", True),
        ("name, *args, **named", False),
        ("*args, **named", False),
        ("name, serving_input_receiver_fn, *args", False),
    ],
)
def test_an_exporter_with_swapped_arguments_is_found(arguments, fault):
    """Those before `*args` were once not examined."""
    names: dict[str, Any] = {}
    exec(f"def make({arguments}): pass", names)
    signature = inspect.signature(names["make"])
    assert _takes_first(signature, ("name", "serving_input_receiver_fn")) is not fault


def test_the_doctor_takes_a_name_for_that_of_a_distribution_first(tmp_path):
    """An entry point of another package may have the same name."""
    site = Site(tmp_path)
    for distribution, entry_point in (("acme", "tools"), ("tools", "ztools")):
        site.add(distribution, "", name=entry_point)
    for name, examined in (
        ("tools", "tools 1.0, entry point 'ztools': module tools.plugin"),
        ("ztools", "tools 1.0, entry point 'ztools': module tools.plugin"),
        ("acme", "acme 1.0, entry point 'tools': module acme.plugin"),
    ):
        assert site.run("plugins", "doctor", name).stdout.startswith(examined)


def test_the_doctor_examines_all_entry_points_of_a_distribution(tmp_path):
    site = Site(tmp_path)
    site.add("acme", "", files={"more.py": "raise ValueError('no licence')"})
    (file,) = site.path.glob("acme-*.dist-info/entry_points.txt")
    file.write_text(file.read_text() + "more = acme.more\n")
    done = site.run("plugins", "doctor", "acme", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["plugin"], found["options"]) == (1, "acme 1.0", 0)
    assert "ValueError: no licence" in found["faults"][0]
    assert "acme 1.0, entry point 'acme': module acme.plugin" in done.stderr
    assert "acme 1.0, entry point 'more': failed" in done.stderr
    assert site.run("plugins", "doctor", "acme:more").returncode == 1
    assert "no plugin 'acme:nothing' is installed" in site.run("plugins", "doctor", "acme:nothing").stderr


@pytest.mark.parametrize("parts", [("acme_a", "acme_b"), ("acme.a.plugin", "acme.b.plugin")])
def test_the_doctor_reads_the_sources_of_each_entry_point_once(tmp_path, parts):
    """It once read only the last module at the top of the import path, and it read modules of one package twice."""
    site = Site(tmp_path)
    site.add("acme", "")
    (file,) = site.path.glob("acme-*.dist-info/entry_points.txt")
    file.write_text("[estimator.plugins]\n" + "".join(f"{part[5]} = {part}\n" for part in parts))
    for part in parts:
        path = site.path / f"{part.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "from estimator_core.hooks import Hook\nfrom estimator_experiment import Experiment\n"
            "class Old(Hook):\n    slack = 3\n"
        )
    (also := tmp_path / "more.py").write_text((site.path / f"{parts[0].replace('.', '/')}.py").read_text())
    found = json.loads(site.run("plugins", "doctor", "acme", "--json", "--also", str(also)).stdout)
    assert sorted(Path(one["file"]).name for one in found["old"]) == sorted(
        ["more.py", *(f"{part.replace('.', '/')}.py".rpartition("/")[2] for part in parts)]
    )
    assert found["lacks"] == ["estimator-experiment"]


def test_a_command_of_two_entry_points_of_one_package(tmp_path):
    """The advice once offered 'acme:hi' twice, and the doctor took the core for the other plugin."""
    site = Site(tmp_path)
    site.add(
        "acme",
        "from estimator_core.plugins import Command\n\ndef estimator_commands():\n"
        "    return [Command(name='hi', target='acme.hi', summary='Say hi.')]\n",
        files={"hi.py": '"""Say hi."""\ndef configure(parser):\n    pass\ndef run(args):\n    return 0\n'},
    )
    (file,) = site.path.glob("acme-*.dist-info/entry_points.txt")
    file.write_text(file.read_text() + "again = acme.again\n")
    (site.path / "acme" / "again.py").write_text((site.path / "acme" / "plugin.py").read_text())
    assert "'hi' is provided by several plugins; only one entry point of acme may declare it" in site.run("hi").stderr
    done = site.run("plugins", "doctor", "acme")
    assert (
        done.stdout.count("command 'hi' is also provided by acme 1.0; only one entry point of acme may declare it") == 2
    )


def test_the_doctor_shows_why_a_plugin_does_not_load(tmp_path):
    site = Site(tmp_path)
    site.add("ill", "raise ValueError('no licence')")
    done = site.run("plugins", "doctor", "ill")
    assert done.returncode == 1
    assert "ValueError: no licence" in done.stdout
    assert "raise ValueError('no licence')" in done.stderr
    as_json = site.run("plugins", "doctor", "ill", "--json")
    assert (as_json.returncode, json.loads(as_json.stdout)["plugin"]) == (1, "ill 1.0")
    assert "ValueError: no licence" in json.loads(as_json.stdout)["faults"][0]
    unknown = site.run("plugins", "doctor", "nobody")
    assert unknown.returncode == 2
    assert "no plugin 'nobody' is installed" in unknown.stderr
    elsewhere = site.run("plugins", "doctor", "numpy")
    assert elsewhere.returncode == 2
    assert "is installed, but has no entry point in the group 'estimator.plugins', only in: " in elsewhere.stderr


@pytest.mark.parametrize(
    ("requirement", "fault"),
    [
        ("acme-absent>=2", 'ill requires acme-absent>=2, which is not installed; pip install "acme-absent>=2"'),
        ("numpy<1", "ill requires numpy<1, which is not numpy "),
        ("numpy>=1", ""),
        ("acme-absent; python_version < '3'", ""),
        ("acme-absent; extra == 'test'", ""),
    ],
)
def test_the_doctor_finds_requirements_that_are_not_met(tmp_path, requirement, fault):
    """A package that was installed with `pip install --no-deps` was once found well."""
    site = Site(tmp_path)
    site.add("ill", "", requires=f"estimator-core>=0.1,<0.2\nRequires-Dist: {requirement}")
    done = site.run("plugins", "doctor", "ill")
    assert (done.returncode, fault in done.stdout) == (int(bool(fault)), True), done.stdout


def test_the_doctor_finds_missing_requirements_of_a_plugin_that_does_not_load(tmp_path):
    site = Site(tmp_path)
    site.add("ill", "import acme_absent", requires="estimator-core>=0.1,<0.2\nRequires-Dist: acme-absent")
    done = site.run("plugins", "doctor", "ill", "--json")
    fault = 'ill requires acme-absent, which is not installed; pip install "acme-absent"'
    assert json.loads(done.stdout)["faults"] == ["ModuleNotFoundError: No module named 'acme_absent'", fault]


def test_the_doctor_calls_functions_of_a_plugin_that_needs_another(tmp_path):
    """It left the other plugin out, so that this one did not load: it reported a fault, and noticed no network."""
    site = Site(tmp_path)
    kind = 'Kind(name="sampler", title="samplers", contract="a:B", target="a class", suite="a.suite:Suite")'
    site.add("samplers", f"from estimator_core.plugins import Kind\ndef estimator_kinds():\n    return [{kind}]\n")
    component = 'Component(kind="sampler", name="even", target="json:loads", summary="A fixture.")'
    source = f"""
        from estimator_core.plugins import Component

        def estimator_components():
            return [{component}]

        def estimator_run_end(run, error):
            import socket
            try:
                socket.getaddrinfo("tracker.acme.example", 80)
            except OSError:
                pass
        """
    site.add("rows", source)
    done = site.run("plugins", "doctor", "rows")
    assert "ok     Its run-level hooks work on a run of each mode" in done.stdout
    assert "it uses the network in runs, but does not declare it" in done.stdout
    assert "rows does not require samplers, which defines a kind of its components" in done.stdout
