"""Tests of kinds of component that a plugin defines with a contract and a suite, and of components from other
plugins.
"""

import json
import sys

import pytest

from estimator_core._plugins.records import KINDS, Component, Kind
from estimator_core.errors import ArgumentError, PluginLookupError
from tests.plugins.fake_site import API

API_1_1 = API.replace("(1, 0)", "(1, 1)")
DEFINES = """
from estimator_core._plugins import Component, Kind

def estimator_kinds():
    return [
        Kind(
            name="sampler",
            title="samplers",
            contract="{package}.samplers:Sampler",
            target="a class whose call gives a Sampler",
            suite="{package}.suite:SamplerSuite",
            scaffold="{package}:templates",
        )
    ]

def estimator_components():
    return [Component(kind="sampler", name="all", target="{package}.samplers:All", summary="Every row.")]
"""
CONTRACT = """
from typing import Protocol, runtime_checkable

@runtime_checkable
class Sampler(Protocol):
    def sample(self, count: int) -> list[int]: ...

class All:
    def sample(self, count):
        return list(range(count))
"""
SUITE = """
from estimator_core.testing import Suite
from acme_samplers.samplers import Sampler

class SamplerSuite(Suite):
    def test_is_a_sampler(self):
        assert isinstance(self.make(), Sampler)

    def test_samples_rows_that_are_there(self):
        assert set(self.make().sample(5)) <= set(range(5))
"""
GIVES = """
from estimator_core._plugins import Component

def estimator_components():
    return [Component(kind="sampler", name="even", target="{package}.even:Even", summary="Every second row.")]
"""
EVEN = """
class Even:
    def sample(self, count):
        return list(range(0, count, 2))
"""
PROOF = """
from acme_samplers.suite import SamplerSuite
from estimator_core._plugins import Plugins

class TestEven(SamplerSuite):
    def make(self):
        return Plugins().get("sampler", "even")()
"""


def define(site, distribution="acme-samplers", **more):
    package = distribution.replace("-", "_")
    files = {"samplers.py": CONTRACT, "suite.py": SUITE}
    site.add(distribution, DEFINES.format(package=package), api=API_1_1, files=files, **more)


def give(site, distribution="other-rows"):
    package = distribution.replace("-", "_")
    site.add(distribution, GIVES.format(package=package), api=API_1_1, files={"even.py": EVEN})


def failed(plugins):
    return {record.distribution: record.error for record in plugins.records() if record.status == "failed"}


@pytest.mark.parametrize("giver", ["aaa-rows", "zzz-rows"], ids=["giver first", "giver last"])
def test_a_component_of_another_plugins_kind(site, giver):
    give(site, giver)
    define(site)
    plugins = site.plugins(strict=True)
    assert plugins.names("sampler") == ("all", "even")
    assert plugins.get("sampler", "even")().sample(5) == [0, 2, 4]
    assert plugins.find("sampler", "even").plugin.distribution == giver
    assert list(plugins.kinds()) == [*KINDS, "sampler"]
    assert plugins.kinds()["sampler"].suite == "acme_samplers.suite:SamplerSuite"
    with pytest.raises(PluginLookupError, match=r"there is no sampler 'evn'\.\s+Did you mean 'even'") as caught:
        plugins.get("sampler", "evn")
    assert "Installed samplers: all, even" in str(caught.value)


def test_its_suite_proves_components_of_other_plugins(site, tmp_path):
    define(site)
    give(site)
    (tmp_path / "test_even.py").write_text(PROOF)
    done = site.python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_even.py"))
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_nothing_of_a_kind_is_imported_before_it_is_asked_for(site):
    define(site)
    give(site)
    site.plugins().names("sampler")
    assert not {"acme_samplers.samplers", "acme_samplers.suite", "other_rows.even"} & set(sys.modules)


def test_a_kind_nobody_defines_is_refused_where_it_is_registered(site):
    assert Component(kind="sampler", name="even", target="json:loads").kind == "sampler"
    give(site)
    plugins = site.plugins()
    (error,) = failed(plugins).values()
    assert "component 'even': its kind is 'sampler', which no plugin defines; kinds are head, hook" in error
    with pytest.raises(ArgumentError, match=r"no kind of component 'sampler'.*(?s:.)*other-rows 1.0 failed to load"):
        plugins.names("sampler")


def test_a_typo_in_a_kind_names_the_nearest(site):
    define(site)
    site.add_component("other-rows", "samplr", "even")
    assert "did you mean 'sampler'?" in failed(site.plugins())["other-rows"]


def test_a_blocked_plugin_that_may_define_the_kind_is_named(site):
    define(site)
    give(site)
    assert "may define it: acme-samplers 1.0" in failed(site.plugins(block=["acme-samplers"]))["other-rows"]


def test_a_broken_definer_takes_down_its_kind_alone(site):
    site.add("acme-samplers", "def estimator_kinds():\n    return ['sampler']\n", api=API_1_1)
    give(site)
    site.add_component("sound", "head", "sound")
    plugins = site.plugins()
    errors = failed(plugins)
    assert set(errors) == {"acme-samplers", "other-rows"}
    assert "estimator_kinds() returned 'sampler'; it must return Kind records" in errors["acme-samplers"]
    assert (
        "acme-samplers 1.0 failed to load and may be what defines it: estimator_kinds() returned"
        in errors["other-rows"]
    )
    assert plugins.names("head") == ("sound",)


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("def estimator_kinds():\n    return None\n", "estimator_kinds() returned None"),
        ("def estimator_kinds():\n    raise OSError('disk')\n", "OSError: disk"),
        (DEFINES.replace('"sampler"', '"Sampler kind"'), "the name of a kind is 'Sampler kind'"),
        (DEFINES.replace(".samplers:Sampler", "-samplers"), "contract of kind 'sampler' is"),
        (DEFINES + "\nonce = estimator_kinds\ndef estimator_kinds():\n    return once() * 2\n", "'sampler' twice"),
        (DEFINES.replace('kind="sampler"', 'kind="smpler"'), "its kind is 'smpler'"),
    ],
    ids=["none", "raises", "name", "contract", "twice", "its own component"],
)
def test_a_broken_kind_is_isolated(site, source, cause):
    site.add("acme-samplers", source.replace("{package}", "acme_samplers"), api=API_1_1)
    site.add_component("sound", "head", "sound")
    plugins = site.plugins()
    assert cause in failed(plugins)["acme-samplers"]
    assert plugins.names("head") == ("sound",)
    assert "sampler" not in plugins.kinds()


def test_two_plugins_that_define_one_kind_are_both_named(site):
    define(site)
    define(site, "rival-samplers")
    give(site)
    errors = failed(site.plugins())
    assert "it defines the kind 'sampler', and so does rival-samplers 1.0" in errors["acme-samplers"]
    assert "it defines the kind 'sampler', and so does acme-samplers 1.0" in errors["rival-samplers"]
    assert set(errors) == {"acme-samplers", "rival-samplers", "other-rows"}
    assert site.plugins(block=["rival-samplers"], strict=True).names("sampler") == ("all", "even")


def test_a_kind_of_the_core_cannot_be_defined_again(site):
    define(site)
    site.add("rival", DEFINES.format(package="rival").replace('"sampler"', '"hook"'), api=API_1_1)
    plugins = site.plugins()
    assert "it defines the kind 'hook', and so does estimator-core" in failed(plugins)["rival"]
    assert "nan_tensor" in plugins.names("hook")


def test_two_components_of_one_name_are_told_apart(site):
    define(site)
    give(site)
    give(site, "third-rows")
    assert site.plugins().names("sampler") == ("all", "other-rows:even", "third-rows:even")


def test_the_list_of_plugins_shows_kinds(site):
    define(site)
    give(site)
    text = site.run("--plugins", "acme-samplers,other-rows", "plugins").stdout
    assert "defines kind sampler: acme_samplers.samplers:Sampler" in text
    assert "sampler even: Every second row." in text
    rows = json.loads(
        site.run("--plugins", "acme-samplers,other-rows", "plugins", "--json", "--kind", "sampler").stdout
    )
    assert {row["distribution"] for row in rows if row["provides"] or row["kinds"]} == {"acme-samplers", "other-rows"}
    explained = site.run("--plugins", "acme-samplers,other-rows", "plugins", "explain", "sampler", "even").stdout
    assert explained.startswith("sampler 'even' of other-rows 1.0")
    wrong = site.run("--plugins", "acme-samplers", "plugins", "--kind", "smpler")
    assert wrong.returncode != 0
    assert "did you mean 'sampler'?" in wrong.stderr


@pytest.mark.parametrize(
    ("field", "value"), [("name", "My Kind"), ("contract", "acme.Sampler"), ("suite", "a:b:c"), ("scaffold", "folder")]
)
def test_a_kind_has_a_form(field, value):
    fields = {"name": "sampler", "title": "samplers", "contract": "acme:Sampler", "target": "a class", "suite": "S"}
    with pytest.raises(ArgumentError, match="it must look like"):
        Kind(**{**fields, field: value})


def test_a_plugin_for_contract_1_0_works_beside(site):
    define(site)
    site.add_component("old", "head", "old")
    plugins = site.plugins(strict=True)
    assert {record.api for record in plugins.records() if record.status == "loaded"} == {(1, 0), (1, 1)}
