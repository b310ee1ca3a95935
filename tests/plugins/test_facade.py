"""Tests of `Plugins` as an object: it is lazy, equal when built twice, and usable in another process."""

import importlib
import multiprocessing
import operator
import pickle
import sys
from dataclasses import replace

import pytest

from estimator_core._plugins import Plugins, default_plugins
from estimator_core._plugins.manifest import compare_versions
from estimator_core._plugins.not_found import COMMANDS, explain_absence, explain_unknown_kind
from estimator_core._plugins.records import KINDS, Kind
from estimator_core.errors import ArgumentError, PluginLookupError

# Made of importable parts, because a worker cannot import a function of a test module.
ask_for_heads = operator.methodcaller("names", "head")
ask_for_versions = operator.methodcaller("versions")


def test_nothing_is_imported_before_the_first_question(site):
    site.add_component("acme", "head", "one")
    plugins = site.plugins()
    assert "acme.plugin" not in sys.modules
    assert plugins.names("head") == ("one",)
    assert "acme.plugin" in sys.modules


def test_targets_are_imported_when_they_are_got(site):
    site.add_component("acme", "head", "one", "acme.heads:One")
    (site.path / "acme" / "heads.py").write_text("class One:\n    pass\n")
    plugins = site.plugins()
    assert plugins.find("head", "one").component.target == "acme.heads:One"
    assert "acme.heads" not in sys.modules
    assert plugins.used() == []
    assert plugins.get("head", "one") is sys.modules["acme.heads"].One
    assert plugins.used() == [{"kind": "head", "name": "one", "distribution": "acme"}]


def test_two_objects_know_the_same_and_share_nothing(site):
    site.add_component("acme", "head", "one")
    first, second = site.plugins(), site.plugins()
    first.get("head", "one")
    assert second.used() == []
    assert [record.components for record in first.records()] == [record.components for record in second.records()]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_another_process_finds_its_plugins_again(site, method):
    site.add_component("acme", "head", "one")
    plugins = site.plugins()
    with multiprocessing.get_context(method).Pool(1) as pool:
        for ask in (ask_for_heads, ask_for_versions, ask_for_versions):
            assert pool.apply(ask, (plugins,)) == ask(plugins)


def test_pickling_keeps_what_was_given_in_code(site):
    site.add_component("acme", "head", "one")
    module = importlib.import_module("acme.plugin")
    plugins = pickle.loads(pickle.dumps(Plugins(autoload=False, extra=[module], environ={})))
    assert [record.name for record in plugins.records() if record.usable] == ["core", "acme.plugin"]


def test_default_plugins_follow_the_environment(monkeypatch):
    first = default_plugins()
    assert default_plugins() is first
    monkeypatch.setenv("ESTIMATOR_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert default_plugins() is not first
    assert [record.name for record in default_plugins().records() if record.usable] == ["core"]


def test_versions_name_the_core_and_every_plugin_in_use(site):
    site.add("acme", "")
    site.add("broken", "raise ValueError")
    assert [(row["distribution"], row["version"]) for row in site.plugins().versions()] == [
        ("acme", "1.0"),
        ("estimator-core", "0.1.0"),
    ]


def test_recorded_versions_are_compared():
    recorded = [{"distribution": "acme", "version": "1.0"}, {"distribution": "beta", "version": "2.0"}]
    assert compare_versions(recorded, recorded) == []
    assert compare_versions(recorded, [{"distribution": "beta", "version": "3.0"}], what="this export") == [
        "this export was made with acme 1.0, which is not in use here: pip install acme==1.0",
        "this export was made with beta 2.0; here it is 3.0",
    ]


def test_an_absent_name_gets_close_names_and_the_distribution_to_install(site):
    site.add_component("acme", "head", "binary")
    plugins = site.plugins()
    with pytest.raises(PluginLookupError) as caught:
        plugins.get("head", "binry")
    assert "Did you mean 'binary'?" in str(caught.value)
    assert "Installed heads: binary." in str(caught.value)


def test_the_package_of_a_kind_that_is_not_installed_is_named():
    text = explain_unknown_kind("schema", KINDS, [])
    assert text.endswith("estimator-inputs, which is not installed: pip install estimator-inputs")
    assert "did you mean" not in text  # the kind 'head' resembles it
    assert explain_unknown_kind("hed", KINDS, []).startswith("did you mean 'head'? kinds are head")


def test_a_known_name_says_what_to_install():
    table = explain_absence(KINDS["backend"], "gpu", ("cpu",), [])
    assert "It comes with estimator-backends-gpu, which is not installed: pip install estimator-backends-gpu" in table


def test_a_command_is_no_component_of_a_kind_with_that_name():
    commands = Kind(
        name="command", title="commands", contract="acme:Command", target="a function", suite="acme:CommandSuite"
    )
    assert explain_absence(commands, "serve", (), []) == "there is no command 'serve'.\n  No commands are installed."
    with pytest.raises(ArgumentError):
        replace(commands, name=COMMANDS)


def test_explain_never_raises_for_a_name(site):
    site.add_component("acme", "head", "binary")
    plugins = site.plugins()
    assert plugins.explain("head", "binary") == "head 'binary' of acme 1.0 (json:loads)"
    assert plugins.explain("head", "nonsense").startswith("there is no head 'nonsense'")
    with pytest.raises(ArgumentError, match="kinds are head, hook"):
        plugins.explain("heads", "binary")


def test_every_builtin_component_can_be_imported():
    plugins = Plugins(autoload=False, environ={})
    found = [(kind, name) for kind in KINDS for name in plugins.names(kind)]
    assert ("backend", "cpu") in found
    for kind, name in found:
        assert callable(plugins.get(kind, name)), (kind, name)
