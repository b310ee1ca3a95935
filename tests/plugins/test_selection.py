"""Allow list, block list and off switch: applied before anything is imported."""

import logging

import pytest

from estimator_core._plugins import Plugins
from estimator_core.errors import ArgumentError, PluginLookupError

EXPLOSIVE = "raise AssertionError('this module must not be imported')"


def add(site):
    site.add("acme-explosive", EXPLOSIVE, name="explosive")
    site.add_component("acme-sound", "head", "sound")


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        ({"block": ["explosive"]}, {}),
        ({"block": ["Acme_Explosive"]}, {}),
        ({"only": ["acme-sound"]}, {}),
        ({}, {"ESTIMATOR_PLUGINS": " acme_sound , "}),
        ({}, {"ESTIMATOR_PLUGINS": "acme-sound,explosive", "ESTIMATOR_PLUGINS_BLOCK": "explosive"}),
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
        Plugins(environ={}, block=["acme-sound", "explosive"]).find("head", "sound")
    with pytest.raises(PluginLookupError, match="gives it, but is blocked: blocked by name"):
        Plugins(environ={}, block=["acme-sound", "explosive"]).find("head", "acme-sound:sound")


def test_a_name_that_matches_nothing_is_reported(site, caplog):
    add(site)
    with caplog.at_level(logging.WARNING, logger="estimator_core.plugins"):
        site.plugins(block=["explosive", "acme-tpyo"]).records()
    assert ["'acme-tpyo'" in record.getMessage() for record in caplog.records] == [True]


def test_one_string_is_no_list():
    with pytest.raises(ArgumentError, match=r"only=\['heads'\]"):
        Plugins(only="heads")


def test_a_switch_must_be_yes_or_no():
    with pytest.raises(ArgumentError, match="ESTIMATOR_STRICT_PLUGINS='maybe'"):
        Plugins(environ={"ESTIMATOR_STRICT_PLUGINS": "maybe"})


def test_the_switches_of_the_command(site):
    add(site)
    assert '"acme-sound"' in site.run("--plugins", "acme-sound", "plugins", "--json", "--kind", "head").stdout
    assert "this module must not be imported" not in site.run("--block-plugin", "explosive", "plugins").stdout
    assert "switched off" in site.run("--no-plugins", "plugins").stdout
