"""Tests of run-level hooks: they are isolated from each other, disabled by name, receive their options, and are traced
on request.
"""

import logging

import pytest

from estimator_core._plugins import Plugins
from estimator_core.config import RunConfig
from estimator_core.errors import ArgumentError, PluginError
from estimator_core.testing import FakeRun

EVENTS = """
import builtins
from estimator_core._plugins import Option

seen = []

def estimator_options():
    return [
        Option(name="url", type=str, default="nowhere", help="Address of the tracker."),
        Option(name="every", type=int, default=10, help="Steps between points."),
        Option(name="verbose", type=bool, default=False, help="Whether to say more."),
    ]

def estimator_run_start(run, options):
    seen.append(("start", run.mode, options))

def estimator_run_end(error):
    seen.append(("end", error))

def estimator_checkpoint_saved(path, step):
    seen.append(("saved", step, path))

def estimator_evaluation_finished(run, metrics):
    seen.append(("evaluated", run.name, metrics["loss"]))

def estimator_export_written(estimator, path, format_name):
    seen.append(("exported", path, format_name))
"""
V3 = "ESTIMATOR_PLUGIN_API = (1, 3)\ndef estimator_capabilities():\n    return ['adds_hooks', 'rehearses']\n"
FAILING = """
from estimator_core.hooks import Hook

def estimator_run_start(run):
    raise OSError("tracker is down")

def estimator_run_hooks(run):
    return [Hook(), Hook, 7]
"""


def seen(plugin="tracker"):
    import importlib

    return importlib.import_module(f"{plugin}.plugin").seen


def tell_everything(plugins, run):
    error = ValueError("boom")
    plugins.run_start(run)
    plugins.checkpoint_saved(run, 5, "model/checkpoints/5")
    plugins.evaluation_finished(run, {"loss": 0.5, "global_step": 5})
    plugins.export_written(run.estimator, "exports/1", "stablehlo")
    plugins.run_end(run, error)
    return error


def test_observers_see_every_event_with_the_arguments_they_name(site):
    site.add("tracker", EVENTS)
    error = tell_everything(site.plugins(), FakeRun(mode="eval", name="test"))
    assert seen() == [
        ("start", "eval", {"url": "nowhere", "every": 10, "verbose": False}),
        ("saved", 5, "model/checkpoints/5"),
        ("evaluated", "test", 0.5),
        ("exported", "exports/1", "stablehlo"),
        ("end", error),
    ]


def test_a_failing_plugin_is_named_and_harms_no_other(site, caplog):
    site.add("broken", FAILING)
    site.add("tracker", EVENTS)
    plugins = site.plugins()
    with caplog.at_level(logging.WARNING, logger="estimator_core.plugins"):
        plugins.run_start(FakeRun())
        hooks = plugins.run_hooks(FakeRun())
    assert len(hooks) == 1
    assert len(seen()) == 1
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 3
    assert "estimator_run_start of broken 1.0 failed and was left out: OSError: tracker is down" in messages[0]
    assert "ESTIMATOR_PLUGINS_BLOCK=broken" in messages[0]
    assert "returned class Hook; return an object" in messages[1]
    assert "returned 7, which is not a Hook" in messages[2]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("async def estimator_run_start(run):\n    pass\n", "`estimator_run_start` has `async`"),
        ("def estimator_run_end(error):\n    yield\n", "`estimator_run_end` has `yield`"),
    ],
)
def test_an_observer_that_never_runs_is_refused(site, source, words):
    site.add("tracker", source)
    (record,) = [one for one in site.plugins().records() if one.name == "tracker"]
    assert record.status == "failed"
    assert f"{words}, so calling it runs nothing" in record.error


def test_lists_may_be_yielded(site):
    site.add("tracker", "def estimator_capabilities():\n    yield 'network'\n")
    (record,) = [one for one in site.plugins().records() if one.name == "tracker"]
    assert record.capabilities == ("network",)


def test_strict_raises(site):
    site.add("broken", FAILING)
    with pytest.raises(PluginError, match=r"estimator_run_start of broken 1\.0 failed: OSError: tracker is down"):
        site.plugins(strict=True).run_start(FakeRun())
    with pytest.raises(PluginError, match=r"which is not a Hook|return an object"):
        site.plugins(strict=True).run_hooks(FakeRun())


@pytest.mark.parametrize(
    ("default_hooks", "active"),
    [(True, True), (False, False), ((), False), (("tracker",), False), (("acme-tracker",), True), (("other",), False)],
)
def test_run_config_switches_them_off(site, default_hooks, active):
    site.add("acme-tracker", EVENTS, name="tracker")
    run = FakeRun(config=RunConfig(model_dir="unused", default_hooks=default_hooks))
    tell_everything(site.plugins(), run)
    assert bool(seen("acme_tracker")) == active


def test_a_name_that_no_plugin_has_is_told_once(site, caplog):
    """Without the warning, a misspelt name would silently disable every hook."""
    site.add("acme-tracker", EVENTS, name="tracker")
    site.add("blocked", "")
    plugins = site.plugins(block=["blocked"])
    for names in (("acme-traker", "blocked"), ("tracker", "Acme_Tracker"), ("acme-traker",)):
        plugins.run_start(FakeRun(config=RunConfig(model_dir="unused", default_hooks=names)))
    assert [record.getMessage() for record in caplog.records] == [
        "RunConfig(default_hooks=...) names plugin 'acme-traker', which is not installed; did you mean 'acme-tracker'?",
        "RunConfig(default_hooks=...) names plugin 'tracker', which is not installed; "
        "plugins are named by their distribution: 'acme-tracker'",
    ]


def test_hooks_are_fresh_for_each_run(site):
    site.add("fresh", "from estimator_core.hooks import Hook\n\ndef estimator_run_hooks():\n    return [Hook()]\n")
    plugins = site.plugins()
    (first,), (second,) = plugins.run_hooks(FakeRun()), plugins.run_hooks(FakeRun())
    assert first is not second


def test_options_from_arguments_and_environment(site):
    site.add("tracker", EVENTS)
    environ = {"ESTIMATOR_OPTION_TRACKER_URL": "host:1", "ESTIMATOR_OPTION_TRACKER_VERBOSE": "yes"}
    plugins = site.plugins(environ=environ, options={"tracker": {"url": "host:2", "every": "5"}})
    plugins.run_start(FakeRun())
    assert seen()[0][2] == {"url": "host:1", "every": 5, "verbose": True}  # the environment takes precedence


@pytest.mark.parametrize(
    ("options", "environ", "message"),
    [
        ({"tracker": {"ulr": "x"}}, {}, "has no option 'ulr'; did you mean 'url'?"),
        ({"trakcer": {"url": "x"}}, {}, "'trakcer', which is not installed; did you mean 'tracker'?"),
        ({"tracker": 3}, {}, "options of plugin 'tracker' must be a mapping from names to values, not 3"),
        ({"tracker": ["url"]}, {}, "options of plugin 'tracker' must be a mapping from names to values, not ['url']"),
        ({"tracker": {"every": "often"}}, {}, "option tracker.every is 'often'; it must be int"),
        ({}, {"ESTIMATOR_OPTION_TRACKER_VERBOSE": "very"}, "ESTIMATOR_OPTION_TRACKER_VERBOSE is 'very'"),
    ],
)
def test_options_that_cannot_be_used_are_refused(site, options, environ, message):
    site.add("tracker", EVENTS)
    with pytest.raises(ArgumentError) as caught:
        site.plugins(options=options, environ=environ).records()
    assert message in str(caught.value)


def test_the_opening_line_names_who_adds_hooks(site):
    site.add("acme-tracker", "def estimator_run_hooks():\n    return []\n", name="tracker")
    site.add("broken", "raise ValueError('no')")
    line = site.plugins().opening_line()
    assert "plugins: acme-tracker 1.0; hooks added to every run by: acme-tracker 1.0" in line
    assert "(switch off: ESTIMATOR_PLUGINS_BLOCK=acme-tracker)" in line
    assert "failed to load: broken 1.0 (ValueError: no)" in line


def test_a_failure_names_what_the_block_list_takes(site, caplog):
    site.add("acme-broken", "def estimator_run_start():\n    raise OSError('down')\n", name="tracker")
    site.plugins().run_start(FakeRun())
    assert "switch the plugin off: ESTIMATOR_PLUGINS_BLOCK=acme-broken;" in caplog.text


def test_trace_logs_every_call(site, caplog):
    site.add("tracker", EVENTS)
    with caplog.at_level(logging.INFO, logger="estimator_core.plugins"):
        site.plugins(environ={"ESTIMATOR_TRACE_PLUGINS": "1"}).run_start(FakeRun())
    assert "estimator_run_start of tracker 1.0 took" in caplog.text


def test_a_module_given_in_code_takes_part():
    class Given:
        ESTIMATOR_PLUGIN_API = (1, 0)

        def __init__(self):
            self.modes = []

        def estimator_run_start(self, run):
            self.modes.append(run.mode)

    one, two = Given(), Given()
    plugins = Plugins(autoload=False, extra=[one, two], environ={})
    plugins.run_start(FakeRun())
    assert (one.modes, two.modes) == (["train"], ["train"])
    assert [record.label for record in plugins.records() if record.status == "loaded"] == [
        "Given (given in code)",
        "Given#2 (given in code)",
    ]


def test_what_is_no_list_is_refused_by_name(site, caplog):
    site.add(
        "broken", "def estimator_run_hooks():\n    return object()\n\ndef estimator_rehearse():\n    return 7\n", api=V3
    )
    run, plugins = FakeRun(), site.plugins()
    with caplog.at_level(logging.WARNING, logger="estimator_core.plugins"):
        assert plugins.run_hooks(run) == []
        assert plugins.rehearse(run, None, []) == []
    hooks, faults = [record.getMessage() for record in caplog.records]
    assert "estimator_run_hooks of broken 1.0 failed" in hooks
    assert "returned an object of type object; it must return a list of hooks" in hooks
    assert "type int; it must return a list of exceptions" in faults


def test_a_fault_says_who_reports_it(site):
    site.add("cluster", "def estimator_rehearse():\n    return [ValueError('too long')]\n", api=V3)
    (fault,) = site.plugins().rehearse(FakeRun(), None, [])
    assert fault.__notes__ == ["reported by estimator_rehearse of cluster 1.0"]
