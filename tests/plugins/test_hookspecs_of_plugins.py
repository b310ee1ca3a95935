"""Tests of hook specifications of plugins: one plugin defines and calls them, and other plugins implement them."""

import asyncio

import pytest

from estimator_core._plugins import Plugins
from estimator_core.errors import ArgumentError, PluginError, PluginLookupError
from tests.plugins.fake_site import API

API_1_1 = API.replace("(1, 0)", "(1, 1)")
SPECS = """
from estimator_core._plugins import hookspec

@hookspec
def acme_batch_drawn(size, origin, options):
    "Observes a batch."

@hookspec
def estimator_acme_rank(rows):
    "Ranks rows."

def helper():
    return "not a specification"
"""
DEFINES = """
def estimator_hookspecs():
    from acme_host import specs
    return specs
"""
IMPLEMENTS = """
from estimator_core._plugins import hookimpl, Option

def estimator_options():
    return [Option(name="factor", type=int, default=10, help="What sizes are multiplied by.")]

@hookimpl
def acme_batch_drawn(size, options):
    return size * options["factor"]

def estimator_acme_rank(rows):
    return sorted(rows)
"""


def define(site, distribution="acme-host", specs=SPECS):
    package = distribution.replace("-", "_")
    site.add(distribution, DEFINES.replace("acme_host", package), api=API_1_1, files={"specs.py": specs})


def failed(plugins):
    return {record.distribution: record.error for record in plugins.records() if record.status == "failed"}


@pytest.mark.parametrize("guest", ["aaa-guest", "zzz-guest"], ids=["implementer first", "implementer last"])
def test_the_definer_calls_what_others_implement(site, guest):
    site.add(guest, IMPLEMENTS, api=API_1_1)
    define(site)
    plugins = site.plugins(strict=True, options={guest.replace("-", "_"): {"factor": 3}})
    assert plugins.call("acme_batch_drawn", size=4, origin="file") == [12]
    assert plugins.call("estimator_acme_rank", rows=[2, 1]) == [[1, 2]]
    records = {record.distribution: record for record in plugins.records()}
    assert records["acme-host"].specs == ("acme_batch_drawn", "estimator_acme_rank")
    assert set(records[guest].hooks) == {"acme_batch_drawn", "estimator_acme_rank", "estimator_options"}


def test_implementations_are_called_in_the_order_of_plugins_and_none_is_left_out(site):
    define(site)
    for name, value in (("b-guest", "2"), ("a-guest", "1"), ("c-guest", "None")):
        site.add(name, f"def estimator_acme_rank():\n    return {value}\n")
    assert site.plugins(strict=True).call("estimator_acme_rank", rows=[]) == [1, 2]


def test_one_that_fails_is_reported_and_left_out(site, caplog):
    define(site)
    site.add("a-guest", "def estimator_acme_rank(rows):\n    raise ValueError('no rows')\n")
    site.add("b-guest", "def estimator_acme_rank(rows):\n    return len(rows)\n")
    assert site.plugins().call("estimator_acme_rank", rows=[1]) == [1]
    assert "estimator_acme_rank of a-guest 1.0 failed and was left out: ValueError: no rows" in caplog.text
    with pytest.raises(PluginError, match=r"estimator_acme_rank of a-guest 1\.0 failed: ValueError: no rows"):
        site.plugins(strict=True).call("estimator_acme_rank", rows=[1])


def test_a_class_and_the_plugin_module_itself_can_hold_specifications():
    from estimator_core.hookspecs import hookimpl, hookspec

    class Specifications:
        @hookspec
        def acme_named(self, name):
            """Observes a name."""

    class Host:
        ESTIMATOR_PLUGIN_API = (1, 1)

        @hookspec
        def estimator_acme_own(self, name):
            """Observes a name."""

        def estimator_hookspecs(self):
            return Host

    class Second:
        ESTIMATOR_PLUGIN_API = (1, 1)

        def estimator_hookspecs(self):
            return Specifications

        @hookimpl
        def acme_named(self, name):
            return name.upper()

        def estimator_acme_own(self, name):
            return name

    plugins = Plugins(autoload=False, extra=[Host(), Second()], environ={}, strict=True)
    assert plugins.call("acme_named", name="x") == ["X"]
    assert plugins.call("estimator_acme_own", name="x") == ["x"]


def test_a_plugin_awaits_and_iterates_what_its_own_specifications_return():
    """The core checks the return values of its own specifications only."""
    from estimator_core.hookspecs import hookspec

    class Host:
        ESTIMATOR_PLUGIN_API = (1, 1)

        @hookspec
        async def estimator_acme_started(self, seen) -> None:
            """Awaited by the host."""

        @hookspec
        def estimator_acme_around(self, seen) -> None:
            """Iterated by the host."""

        def estimator_hookspecs(self):
            return Host

    class Guest:
        ESTIMATOR_PLUGIN_API = (1, 1)

        async def estimator_acme_started(self, seen):
            seen.append("started")

        def estimator_acme_around(self, seen):
            yield seen.append("around")

    seen: list[str] = []
    plugins = Plugins(autoload=False, extra=[Host(), Guest()], environ={}, strict=True)
    (started,) = plugins.call("estimator_acme_started", seen=seen)
    asyncio.run(started)
    (around,) = plugins.call("estimator_acme_around", seen=seen)
    list(around)
    assert seen == ["started", "around"]


def test_without_the_definer_an_implementation_must_be_optional(site):
    site.add("a-guest", "def estimator_acme_rank(rows):\n    return 1\n")
    site.add(
        "b-guest",
        "from estimator_core._plugins import hookimpl\n"
        "@hookimpl(optionalhook=True)\ndef estimator_acme_rank(rows):\n    return 1\n",
    )
    plugins = site.plugins()
    assert "there is no hook specification estimator_acme_rank" in failed(plugins)["a-guest"]
    assert set(failed(plugins)) == {"a-guest"}
    with pytest.raises(PluginLookupError, match=r"no plugin in use defines .* 'estimator_acme_rank'"):
        plugins.call("estimator_acme_rank", rows=[])


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("def estimator_hookspecs():\n    return None\n", "estimator_hookspecs() returned None"),
        ("def estimator_hookspecs():\n    import json\n    return json\n", "no function is marked with `hookspec`"),
        ("def estimator_hookspecs():\n    import no_such_module\n", "No module named 'no_such_module'"),
    ],
    ids=["none", "no mark", "raises"],
)
def test_broken_specifications_are_isolated(site, source, cause):
    site.add("acme-host", source, api=API_1_1)
    site.add_component("sound", "head", "sound")
    plugins = site.plugins()
    assert cause in failed(plugins)["acme-host"]
    assert plugins.names("head") == ("sound",)


@pytest.mark.parametrize("mark", ["firstresult=True", "historic=True"])
def test_marks_this_contract_does_not_have_are_refused(site, mark):
    define(site, specs=SPECS.replace("@hookspec", f"@hookspec({mark})", 1))
    assert "acme_batch_drawn is marked firstresult or historic" in failed(site.plugins())["acme-host"]


def test_collisions_name_both(site):
    define(site)
    define(site, "rival-host")
    errors = failed(site.plugins())
    assert "defines the hook specification 'acme_batch_drawn', and so does rival-host 1.0" in errors["acme-host"]
    assert "defines the hook specification 'acme_batch_drawn', and so does acme-host 1.0" in errors["rival-host"]


def test_a_specification_of_the_core_cannot_be_defined_again(site):
    define(site, specs=SPECS.replace("estimator_acme_rank", "estimator_run_end"))
    assert "'estimator_run_end', and so does estimator-core" in failed(site.plugins())["acme-host"]


def test_wrong_arguments_are_refused(site):
    define(site)
    plugins = site.plugins()
    with pytest.raises(ArgumentError, match=r"acme_batch_drawn takes the arguments \['size', 'origin'\], given"):
        plugins.call("acme_batch_drawn", size=3)
    with pytest.raises(PluginLookupError, match="did you mean 'acme_batch_drawn'"):
        plugins.call("acme_batch_drwn", size=3)
    with pytest.raises(PluginLookupError, match=r"no plugin in use defines .* 'estimator_run_end'"):
        plugins.call("estimator_run_end", run=None, error=None)


def test_an_argument_the_specification_lacks_is_an_error_of_the_implementer(site):
    define(site)
    site.add("a-guest", "def estimator_acme_rank(row):\n    return 1\n")
    plugins = site.plugins()
    assert "row" in failed(plugins)["a-guest"]
    assert plugins.call("estimator_acme_rank", rows=[]) == []


def test_the_list_of_plugins_shows_specifications(site):
    define(site)
    site.add("a-guest", "def estimator_acme_rank():\n    return 1\n")
    text = site.run("--plugins", "acme-host,a-guest", "plugins").stdout
    assert "defines hook specification acme_batch_drawn" in text
    assert "implements: estimator_acme_rank" in text
