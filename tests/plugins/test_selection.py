"""Tests of the allow list, the block list and the off switch, which apply before anything is imported."""

import json
import logging
import re

import pytest

from estimator_core._plugins import Plugins
from estimator_core._plugins.commands import CommandTable
from estimator_core._plugins.records import Component, Option, PluginRecord
from estimator_core._plugins.settings import PluginSettings, Policy
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
    """An entry point may have any name, but the distribution identifies what was installed."""
    site.add("free-widgets", EXPLOSIVE, name=listed)
    for door in ({"only": [listed]}, {"environ": {"ESTIMATOR_PLUGINS": listed}}, {"environ": {}, "only": []}):
        (record,) = [one for one in site.plugins(**door).records() if one.distribution == "free-widgets"]
        assert record.status == "blocked"


def test_the_switches_of_the_command_name_distributions_too(site):
    site.add("free-widgets", EXPLOSIVE, name="heads")
    for words in (["--plugins", "heads"], ["--plugins", ""], ["--plugins", " , "]):
        rows = json.loads(site.run(*words, "plugins", "--json").stdout)
        assert {one["distribution"]: one["status"] for one in rows}["free-widgets"] == "blocked", words
    done = site.run("--block-plugin", "heads", "--plugin-option", "heads.token=secret", "plugins", "--json")
    assert {one["distribution"]: one["status"] for one in json.loads(done.stdout)}["free-widgets"] == "failed"
    assert "plugin 'heads' is named on a list of plugins but is not installed" in done.stderr
    assert "ESTIMATOR_OPTION_HEADS_TOKEN (or --plugin-option) sets no option" in done.stderr


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
    """A secret for one package must not reach another package that uses the name of its entry point."""
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


def test_an_entry_point_does_not_stand_for_the_distribution_of_a_qualified_name(site):
    """A request for `acme-heads:quantile` must not return a component of another distribution whose entry point has
    that name.
    """
    source = """
    from estimator_core._plugins import Command, Component

    def estimator_components():
        return [Component(kind="head", name="quantile", target="json:loads", summary="A fixture.")]

    def estimator_commands():
        return [Command(name="score", target="acme.cli", summary="A fixture.")]
    """
    site.add("free-widgets", source, name="acme-heads")
    plugins = site.plugins()
    assert plugins.find("head", "free-widgets:quantile").plugin.distribution == "free-widgets"
    with pytest.raises(PluginLookupError, match="there is no head 'acme-heads:quantile'"):
        plugins.find("head", "acme-heads:quantile")
    assert plugins.commands().find("free-widgets:score").target == "acme.cli"
    with pytest.raises(PluginLookupError, match="there is no command 'acme-heads:score'"):
        plugins.commands().find("acme-heads:score")


def test_an_entry_point_named_after_the_core_takes_no_default(site):
    site.add(
        "free-widgets",
        """
        from estimator_core._plugins import Component

        def estimator_components():
            return [Component(kind="backend", name="cpu", target="json:loads", summary="A fixture.")]
        """,
        name="estimator-core",
    )
    plugins = site.plugins()
    assert plugins.find("backend", plugins.default("backend", "cpu")).plugin.builtin


@pytest.mark.parametrize(
    ("kind", "name"), [("coordinator", "jax"), ("hook", "slices"), ("initial_values", "warm_start")]
)
def test_what_the_core_takes_by_itself_is_not_that_of_a_stranger(site, kind, name):
    """If the package that the core requests is not installed, no other package replaces it."""
    site.add_component("free-widgets", kind, name)
    plugins = site.plugins()
    assert plugins.find(kind, name).plugin.distribution == "free-widgets"  # available by its name
    with pytest.raises(PluginLookupError, match=r"which is not installed|on the allow list"):
        plugins.find(kind, plugins.default(kind, name))


@pytest.mark.parametrize("metadata", ["Metadata-Version: 2.1\nVersion: 1.0\n", None])
def test_a_distribution_without_a_name_is_met_by_no_list(site, metadata):
    """The name of its entry point does not replace the missing name."""
    site.add("acme", EXPLOSIVE, name="acme-trusted")
    file = site.path / "acme-1.0.dist-info" / "METADATA"
    if metadata is None:  # an incomplete installation
        file.unlink()
    else:
        file.write_text(metadata)
    (record,) = [one for one in site.plugins(only=["acme-trusted"]).records() if one.name == "acme-trusted"]
    assert (record.distribution, record.status) == ("unnamed", "blocked")


def test_a_module_of_a_blocked_package_stays_out_though_code_hands_it_over(site):
    import importlib

    site.add_component("acme-widgets", "head", "sound")
    module = importlib.import_module("acme_widgets.plugin")
    assert Plugins(environ={}, only=[], extra=[module]).names("head") == ("sound",)  # it needs no list entry
    for arguments in ({"block": ["acme-widgets"]}, {"environ": {"ESTIMATOR_PLUGINS_BLOCK": "acme_widgets"}}):
        plugins = Plugins(**{"only": [], "environ": {}, "extra": [module], **arguments})
        assert plugins.names("head") == ()
        assert "blocked by name" in next(one.error for one in plugins.records() if one.distribution is None)


def test_a_module_of_a_namespace_belongs_to_its_own_package(site):
    import importlib

    source = "from estimator_core._plugins import Component\nESTIMATOR_PLUGIN_API = (1, 0)\n"
    source += "def estimator_components():\n"
    source += "    return [Component(kind='head', name=__name__[-3:], target='json:loads', summary='A fixture.')]\n"
    for name in ("one", "two"):
        (site.path / "spread" / name).mkdir(parents=True)
        (site.path / "spread" / name / "__init__.py").write_text(source)
        (info := site.path / f"acme_{name}-1.0.dist-info").mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[estimator.plugins]\n{name} = spread.{name}\n")
    modules = [importlib.import_module(f"spread.{name}") for name in ("one", "two")]
    assert Plugins(environ={}, only=[], block=["acme-one"], extra=modules).names("head") == ("two",)


class acme_tracker:
    """A plugin that is passed in code and has the name of a package."""

    ESTIMATOR_PLUGIN_API = (1, 0)

    def estimator_options(self):
        return [Option(name="token", type=str, default="", help="A fixture.")]

    def estimator_components(self):
        return [Component(kind="head", name="given", target="json:loads", summary="A fixture.")]


def test_a_plugin_given_in_code_gets_no_options_of_a_package(site):
    options = {"acme-tracker": {"token": "secret"}}
    environ = {"ESTIMATOR_OPTION_ACME_TRACKER_TOKEN": "secret"}
    alone = Plugins(autoload=False, environ={}, extra=[acme_tracker()], options=options)
    assert alone.options("head", "given") == {"token": "secret"}  # the name is unambiguous
    source = """
    from estimator_core._plugins import Option

    def estimator_options():
        return [Option(name="token", type=str, default="", help="A fixture.")]
    """
    site.add("acme_tracker", source)
    for arguments in ({"options": options}, {"environ": environ}):
        plugins = site.plugins(extra=[acme_tracker()], **arguments)
        assert plugins.options("head", "given") == {"token": ""}


def test_a_variable_that_sets_options_of_two_packages_is_refused(site):
    source = """
    from estimator_core._plugins import Option

    def estimator_options():
        return [Option(name="%s", type=str, default="", help="A fixture.")]
    """
    site.add("acme", source % "tracker_token")
    site.add("acme-tracker", source % "token")
    assert site.plugins().records()
    environ = {"ESTIMATOR_OPTION_ACME_TRACKER_TOKEN": "secret"}
    with pytest.raises(ArgumentError, match=r"sets both acme\.tracker_token and acme-tracker\.token; block one of"):
        site.plugins(environ=environ).records()
    assert site.plugins(environ=environ, block=["acme"]).records()


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
