"""Tests of plugins broken in every known way: they are listed with the cause, named where they are missed, and harm
nothing.
"""

import json

import pytest

from estimator_core.errors import PluginError, PluginLookupError
from estimator_core.testing import tiny_estimator, tiny_input_fn

COMPONENT = """
from estimator_core._plugins import Component

def estimator_components():
    return [Component(kind="head", name="wanted", target="json:loads", summary="A fixture.")]
"""

#: the source of the plugin module, and the text that its cause must contain
BROKEN = {
    "import-error": ("import module_that_is_not_there\n" + COMPONENT, "No module named 'module_that_is_not_there'"),
    "syntax-error": ("def broken(:\n", "SyntaxError"),
    "exits": ("import sys\nsys.exit(3)\n", "sys.exit(3) was called"),
    "raises": ("raise ValueError('no licence')\n", "ValueError: no licence"),
    "misspelt-hook": ("def estimator_componets():\n    return []\n", "did you mean 'estimator_components'?"),
    "a-list-for-a-hook": ("estimator_components = []\n", "estimator_components is []; it must be a function"),
    "renamed-argument": (
        "def estimator_run_hooks(the_run):\n    return []\n",
        "estimator_run_hooks takes the argument 'the_run', which the specification lacks; it has: run, options",
    ),
    "declares-none": ("def estimator_components():\n    return None\n", "estimator_components() returned None"),
    "declares-one": (COMPONENT.replace("[", "").replace("]", ""), "it must return a list of Component records"),
    "declares-a-text": ("def estimator_capabilities():\n    return 'network'\n", "it must return a list of names"),
    "declares-dicts": ("def estimator_components():\n    return [{}]\n", "estimator_components() returned {}"),
    "unknown-kind": (
        COMPONENT.replace('kind="head"', 'kind="haed"'),
        "its kind is 'haed', which no plugin defines; did you mean 'head'?",
    ),
    "no-target": (COMPONENT.replace("json:loads", "json.loads"), "target of head 'wanted' is 'json.loads'"),
    "declares-twice": (
        COMPONENT + "    \nfirst = estimator_components\ndef estimator_components():\n    return first() * 2\n",
        "twice",
    ),
    "fails-when-asked": ("def estimator_components():\n    raise OSError('disk')\n", "raised OSError: disk ("),
    "exits-when-asked": ("def estimator_components():\n    raise SystemExit\n", "sys.exit(None) was called"),
    "wrapper": (
        "from estimator_core._plugins import hookimpl\n"
        "@hookimpl(wrapper=True)\ndef estimator_components():\n    return (yield)\n",
        "hook wrapper",
    ),
}
WRONG_API = {
    "no-contract": ("", "states no contract version"),
    "newer-contract": (
        "ESTIMATOR_PLUGIN_API = (1, 99)\n",
        "contract 1.99; this core offers 1.3: upgrade estimator-core",
    ),
    "next-contract": ("ESTIMATOR_PLUGIN_API = (2, 0)\n", "contract 2.0; this core offers 1.3: upgrade estimator-core"),
    "old-contract": ("ESTIMATOR_PLUGIN_API = (0, 9)\n", "contract 0.9; this core offers 1.3: upgrade the plugin"),
    "odd-contract": ("ESTIMATOR_PLUGIN_API = '1.0'\n", "must be a pair of integers"),
    "negative-contract": ("ESTIMATOR_PLUGIN_API = (1, -1)\n", "(1, -1); it must be a pair of integers from 0"),
    "logical-contract": ("ESTIMATOR_PLUGIN_API = (True, 0)\n", "(True, 0); it must be a pair of integers from 0"),
}


def add_everything_broken(site):
    for name, (source, _) in BROKEN.items():
        site.add(f"hostile-{name}", source)
    for name, (api, _) in WRONG_API.items():
        site.add(f"hostile-{name}", COMPONENT, api=api)
    return {f"hostile-{name}": cause for name, (_, cause) in {**BROKEN, **WRONG_API}.items()}


def test_each_is_listed_with_its_cause_and_harms_no_other(site):
    causes = add_everything_broken(site)
    site.add_component("sound", "head", "sound")
    plugins = site.plugins()
    failed = {record.distribution: record for record in plugins.records() if record.status == "failed"}
    assert set(failed) == set(causes)
    for distribution, cause in causes.items():
        assert cause in failed[distribution].error, (distribution, failed[distribution].error)
        assert failed[distribution].traceback
    assert plugins.names("head") == ("sound",)
    assert plugins.get("backend", "cpu") is not None


@pytest.mark.parametrize("name", [*BROKEN, *WRONG_API])
def test_asking_for_what_it_should_have_given_names_it_and_the_cause(site, name):
    source, cause = {**{key: (COMPONENT, cause) for key, (_, cause) in WRONG_API.items()}, **BROKEN}[name]
    site.add(f"hostile-{name}", source, **({"api": WRONG_API[name][0]} if name in WRONG_API else {}))
    with pytest.raises(PluginLookupError) as caught:
        site.plugins().get("head", "wanted")
    assert f"hostile-{name} 1.0 failed to load" in str(caught.value)
    assert cause in str(caught.value)


@pytest.mark.parametrize("name", [*BROKEN, *WRONG_API])
def test_strict_raises_and_says_what_to_do(site, name):
    site.add(
        f"hostile-{name}",
        BROKEN[name][0] if name in BROKEN else COMPONENT,
        **({"api": WRONG_API[name][0]} if name in WRONG_API else {}),
    )
    with pytest.raises(PluginError, match="strict") as caught:
        site.plugins(strict=True).names("head")
    assert f"hostile-{name}" in str(caught.value)
    assert "block them by name" in str(caught.value)
    assert site.plugins(strict=True, block=[f"hostile-{name}"]).names("head") == ()


def test_the_command_lists_all_of_them(site):
    causes = add_everything_broken(site)
    site.add("noisy", 'print("hello from a plugin")')
    done = site.run("plugins", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["distribution"]: row for row in json.loads(done.stdout)}
    assert {name for name, row in rows.items() if row["status"] == "failed"} == set(causes)
    assert rows["noisy"]["status"] == "loaded"
    assert rows["noisy"]["notes"] == ["printed at import: 'hello from a plugin'"]
    text = site.run("plugins")
    assert text.returncode == 0
    assert all(name in text.stdout for name in causes)
    assert "hello from a plugin" not in text.stdout.replace("printed at import: 'hello from a plugin'", "")


def test_a_cause_of_several_lines_is_indented_in_the_list_and_one_line_in_the_log(site):
    site.add("ill", "raise ValueError('first\\nsecond  third')")
    site.add_component("sound", "head", "sound")
    lines = site.run("plugins").stdout.splitlines()
    at = lines.index("    failed: ValueError: first")
    assert lines[at + 1] == "        second  third"
    assert "failed to load: ill 1.0 (ValueError: first second third)" in site.plugins().opening_line()


def test_the_strict_switch_of_the_command(site):
    site.add("hostile", BROKEN["raises"][0])
    done = site.run("--strict-plugins", "plugins")
    assert done.returncode == 1
    assert "no licence" in done.stderr
    assert "Traceback" not in done.stderr


def test_interrupts_are_not_swallowed(site):
    site.add("hostile", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        site.plugins().records()


@pytest.mark.parametrize(
    ("words", "program"), [(["--help"], "estimator"), ([], "estimator"), (["plugins"], "estimator plugins")]
)
def test_an_interrupt_while_a_plugin_is_imported_ends_the_command_in_one_line(site, words, program):
    site.add("hostile", "raise KeyboardInterrupt\n")
    done = site.run(*words)
    assert (done.returncode, done.stderr) == (130, f"{program}: interrupted\n")


def test_a_broken_plugin_where_strict_ends_the_help_in_one_line(site):
    site.add("hostile", BROKEN["raises"][0])
    done = site.run("--strict-plugins", "--help")
    assert done.returncode == 1
    assert done.stderr.startswith("estimator: error: ")
    assert "no licence" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_target_that_does_not_exist(site):
    site.add_component("hostile", "head", "wanted", "hostile.heads:Wanted")
    plugins = site.plugins()
    assert plugins.names("head") == ("wanted",)
    with pytest.raises(
        PluginError, match=r"head 'wanted' of hostile 1\.0 \(hostile\.heads:Wanted\) cannot be imported"
    ):
        plugins.get("head", "wanted")
    rows = {row["name"]: row for row in json.loads(site.run("plugins", "--json").stdout)}
    assert rows["hostile"]["notes"] == ["head 'wanted' cannot work: module hostile.heads does not exist"]


def test_a_target_whose_module_fails(site):
    site.add_component("hostile", "head", "wanted", "hostile.heads:Wanted")
    (site.path / "hostile" / "heads.py").write_text("raise RuntimeError('Wanted: no driver')\n")
    with pytest.raises(PluginError, match="RuntimeError: Wanted: no driver"):
        site.plugins().get("head", "wanted")


def test_a_target_that_cannot_be_called(site):
    site.add_component("hostile", "head", "wanted", "hostile.heads:WANTED")
    (site.path / "hostile" / "heads.py").write_text("WANTED = 3\n")
    with pytest.raises(PluginError, match=r"head 'wanted' of hostile 1\.0 .* is 3, which cannot be called"):
        site.plugins().get("head", "wanted")


@pytest.mark.libraries
def test_slow_and_heavy_imports_are_noted(site):
    site.add("hostile", "import time\ntime.sleep(0.15)\nimport pandas\n")
    done = site.run("plugins", "--json")
    (notes,) = [row["notes"] for row in json.loads(done.stdout) if row["name"] == "hostile"]
    assert any("pandas" in note and "at start-up" in note for note in notes), notes
    assert any(note.startswith("importing it took") for note in notes), notes


def test_a_program_that_shows_warnings_alone_is_told_once_of_what_takes_no_part(site, tmp_path, caplog):
    site.add("hostile-tracker", "raise ValueError('no licence')\n")
    estimator = tiny_estimator(tmp_path / "model", plugins=site.plugins())
    with caplog.at_level("WARNING", logger="estimator_core.plugins"):
        estimator.train(tiny_input_fn(), steps=1).evaluate(tiny_input_fn(epochs=1))
    told = [record.getMessage() for record in caplog.records if "hostile-tracker" in record.getMessage()]
    assert told == ["hostile-tracker 1.0 failed to load and is not used: ValueError: no licence"]


COMMANDS = """
from estimator_core._plugins import Command, Option

def estimator_commands():
    return [Command(name="plugins", target="acme.cli", summary="Takes a name of the core.")]

def estimator_options():
    return [Option(name="every", type=int, default=5, help="Steps.")]
"""


def test_a_command_does_not_take_the_name_of_one_of_the_core(site):
    site.add("acme", COMMANDS, files={"cli.py": "def configure(parser): ...\n"})
    listed = site.run("--help").stdout
    assert "  plugins  " in listed
    assert "acme:plugins  " in listed
    done = site.run("acme:plugins")
    assert "command 'plugins': acme.cli has no run(args)" in done.stderr


def test_an_option_that_nobody_has_is_told(site):
    site.add("acme", COMMANDS)
    typed = site.run("--plugin-option", "acme.ever_y=2", "plugins").stderr
    inherited = site.run("plugins", environ={"ESTIMATOR_OPTION_ACME_EVER_Y": "2"}).stderr
    for told in (typed, inherited):
        assert "ESTIMATOR_OPTION_ACME_EVER_Y" in told
        assert "did you mean ESTIMATOR_OPTION_ACME_EVERY?" in told
