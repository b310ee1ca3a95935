"""Allow list, block list and off switch: applied before anything is imported."""

import logging
import re

import pytest

from estimator_core._plugins import Plugins
from estimator_core._plugins.commands import CommandTable
from estimator_core._plugins.policy import Policy
from estimator_core._plugins.records import PluginRecord
from estimator_core._plugins.settings import PluginSettings
from estimator_core.errors import ArgumentError, PluginLookupError

EXPLOSIVE = "raise AssertionError('this module must not be imported')"


def add(site):
    site.add("acme-explosive", EXPLOSIVE, name="explosive")
    site.add_component("acme-sound", "head", "sound")


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        ({"block": ["acme-explosive"]}, {}),
        ({"block": ["Acme_Explosive"]}, {}),
        ({"only": ["acme-sound"]}, {}),
        ({}, {"ESTIMATOR_PLUGINS": " acme_sound , "}),
        ({}, {"ESTIMATOR_PLUGINS": "acme-sound,acme-explosive", "ESTIMATOR_PLUGINS_BLOCK": "acme.explosive"}),
        ({}, {"ESTIMATOR_DISABLE_PLUGIN_AUTOLOAD": "1", "ESTIMATOR_PLUGINS": "acme-sound"}),
    ],
)
def test_what_is_not_selected_is_not_imported(site, arguments, environ):
    add(site)
    plugins = Plugins(environ=environ, **arguments)
    assert plugins.find("head", "sound").plugin.distribution == "acme-sound"
    (record,) = [record for record in plugins.records() if record.name == "explosive"]
    assert record.status == "blocked"
    assert record.error


def test_everything_off_leaves_the_core(site):
    add(site)
    plugins = Plugins(environ={"ESTIMATOR_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert [record.name for record in plugins.records() if record.usable] == ["core"]
    assert plugins.names("backend") == ("cpu",)


def test_a_look_up_says_that_the_owner_is_blocked(site):
    add(site)
    with pytest.raises(PluginLookupError, match=r"acme-sound 1\.0"):
        Plugins(environ={}, block=["acme-sound", "acme-explosive"]).find("head", "sound")
    with pytest.raises(PluginLookupError, match="provides it, but is blocked: blocked by name"):
        Plugins(environ={}, block=["acme-sound", "acme-explosive"]).find("head", "acme-sound:sound")


def test_a_name_that_matches_nothing_is_reported(site, caplog):
    add(site)
    with caplog.at_level(logging.WARNING, logger="estimator_core.plugins"):
        site.plugins(block=["acme-explosive", "acme-tpyo"]).records()
    assert ["'acme-tpyo'" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("listed", ["heads", "estimator-heads"])
def test_an_allow_list_cannot_be_met_by_the_name_of_an_entry_point(site, listed):
    """Anybody may give an entry point any name; the distribution is what was installed."""
    site.add("free-widgets", EXPLOSIVE, name=listed)
    (record,) = [one for one in site.plugins(only=[listed]).records() if one.distribution == "free-widgets"]
    assert record.status == "blocked"


def test_a_block_list_names_distributions_too(site):
    site.add_component("acme-sound", "head", "sound")
    assert site.plugins(block=["acme_sound"]).names("head") == ()
    assert site.plugins(block=["sound"]).names("head") == ("sound",)


@pytest.mark.parametrize("empty", ["", " ", ",", " , "])
def test_an_empty_allow_list_allows_nothing(site, empty):
    add(site)
    plugins = Plugins(environ={"ESTIMATOR_PLUGINS": empty})
    assert [record.name for record in plugins.records() if record.usable] == ["core"]


def test_the_name_of_an_entry_point_on_a_list_is_explained(site, caplog):
    site.add("acme-explosive", EXPLOSIVE, name="explosive")
    with caplog.at_level(logging.WARNING, logger="estimator_core.plugins"):
        site.plugins(only=["explosive"]).records()
    assert "plugins are named by their distribution: 'acme-explosive'" in caplog.text


def test_options_reach_no_other_distribution_with_that_entry_point(site):
    """A secret meant for one package must not come to another that took the name of its entry point."""
    options = """
    from estimator_core._plugins import Option, Component

    def estimator_options():
        return [Option(name="token", type=str, default="", help="A fixture.")]

    def estimator_components():
        return [Component(kind="head", name=__name__.partition(".")[0], target="json:loads", summary="A fixture.")]
    """
    site.add("acme", options, name="acme")
    site.add("free-widgets", options, name="acme")
    for plugins in (
        site.plugins(options={"Acme": {"token": "secret"}}),
        Plugins(environ={"ESTIMATOR_OPTION_ACME_TOKEN": "secret"}, only=["acme", "free-widgets"]),
    ):
        tokens = {one.distribution: _token(plugins, one) for one in plugins.records() if one.name == "acme"}
        assert tokens == {"acme": "secret", "free-widgets": ""}


def _token(plugins, record):
    (component,) = record.components
    return plugins.options("head", component.name)["token"]


def test_options_named_by_an_entry_point_are_refused(site):
    site.add("acme-sound", "", name="sound")
    with pytest.raises(ArgumentError, match="plugins are named by their distribution: 'acme-sound'"):
        site.plugins(options={"sound": {"token": "secret"}}).records()


def test_one_string_is_no_list():
    with pytest.raises(ArgumentError, match=r"only=\['heads'\]"):
        Plugins(only="heads")


def test_a_switch_must_be_yes_or_no():
    with pytest.raises(ArgumentError, match="ESTIMATOR_STRICT_PLUGINS='maybe'"):
        Plugins(environ={"ESTIMATOR_STRICT_PLUGINS": "maybe"})


def test_the_switches_of_the_command(site):
    add(site)
    assert '"acme-sound"' in site.run("--plugins", "acme-sound", "plugins", "--json", "--kind", "head").stdout
    assert "this module must not be imported" not in site.run("--block-plugin", "acme-explosive", "plugins").stdout
    assert "the allow list is empty" in site.run("--no-plugins", "plugins").stdout


@pytest.mark.parametrize(
    ("settings", "helps"),
    [
        (PluginSettings(only=()), True),
        (PluginSettings(only=("acme-heads",)), True),
        (PluginSettings(block=("Estimator_Exporters",)), False),
        (PluginSettings(only=("acme-heads",), block=("estimator-exporters",)), False),
        (PluginSettings(policy=Policy(files=("estimator.toml",), block=("estimator-exporters",))), False),
        (PluginSettings(only=(), policy=Policy(files=("estimator.toml",), allow=("acme-heads",))), False),
    ],
)
def test_a_switch_is_named_only_where_it_loads_the_command(settings, helps):
    refusal = settings.refusal("estimator-exporters")
    named = {"name": "exporters", "distribution": "estimator-exporters", "version": "1.0"}
    record = PluginRecord(**named, status="blocked", error=refusal)
    with pytest.raises(PluginLookupError, match=re.escape(f"is blocked: {refusal}.")) as caught:
        CommandTable([record], settings).find("serve")
    assert ("`estimator --plugins estimator-exporters serve ...`" in str(caught.value)) == helps
    with pytest.raises(PluginLookupError, match=r"declares no such command\.$"):
        CommandTable([PluginRecord(**named, status="loaded")], settings).find("serve")


@pytest.mark.plugins
def test_a_blocked_command_of_ours_has_no_switch():
    with pytest.raises(PluginLookupError, match=r"\(block list: estimator-exporters\)\.$"):
        Plugins(block=["estimator-exporters"], environ={}).commands().find("serve")
