"""Tests of the effects of plugins on runs that did not request them: they are declared and logged, and refused if not
declared.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import optax
import pytest

import estimator_core as ec
from estimator_core._plugins import Plugins
from estimator_core.errors import ExportError, HookError, PluginError, VariableError
from estimator_core.hooks import Hook
from estimator_core.testing import FakeRun

API = "ESTIMATOR_PLUGIN_API = (1, 2)\n"
TAKES_EVERYTHING = """
from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="adapter", name="everything", target="acme.adapter:Everything", summary="A fixture.")]
"""
EVERYTHING = """
class Everything:
    name, library = "everything", "builtins"

    def handles(self, module):
        return callable(module)

    def bind(self, binding):
        def apply(x):
            import jax

            return x @ binding.variable("w", (x.shape[-1], 1), x.dtype, jax.nn.initializers.zeros)

        return apply

    def write_back(self, module, values):
        raise NotImplementedError
"""
PRIORITY = """
def estimator_capabilities():
    return ["priority"]
"""
CHANGES_BATCHES = """
from estimator_core.hooks import Hook

class Doubling(Hook):
    def begin(self, run):
        run.transform_batches(lambda features, labels: ({"x": features["x"] * 2}, labels))

def estimator_run_hooks(run):
    return [Doubling()]

def estimator_capabilities():
    return [%s]
"""
READS_METRICS = """
def estimator_evaluation_finished(run, metrics):
    metrics["loss"] = 0.0

def estimator_capabilities():
    return ["reads_metrics"]
"""


def linear(x):
    return x @ ec.get_variable("k", (x.shape[-1], 1))


def model_fn(features, mode):
    loss = (ec.module(linear, name="net")(features["x"]) ** 2).mean()
    return ec.EstimatorSpec(mode, loss=loss, predictions=features["x"], train_op=optax.sgd(0.1))


def batches():
    return iter([{"x": np.ones((4, 3), np.float32)}])


@pytest.fixture
def estimator(site, tmp_path):
    return lambda **arguments: ec.Estimator(model_fn, str(tmp_path / "model"), plugins=site.plugins(**arguments))


def lines_of(caplog, call):
    caplog.clear()
    with caplog.at_level(logging.INFO, "estimator_core"):
        made = call(batches)
        if isinstance(made, Iterator):
            list(made)
    return [one.getMessage() for one in caplog.records]


@pytest.mark.parametrize("api", ["ESTIMATOR_PLUGIN_API = (1, 0)\n", API])
def test_an_installed_adapter_that_handles_every_callable_leaves_a_function_to_the_core(site, estimator, api):
    site.add("acme", TAKES_EVERYTHING, files={"adapter.py": EVERYTHING}, api=api)
    trained = estimator()
    trained.train(batches, steps=1)
    assert trained.get_variable_names() == ["net/k"]


def test_an_adapter_that_declares_priority_takes_it_with_a_word(site, estimator, caplog):
    site.add("acme", TAKES_EVERYTHING + PRIORITY, files={"adapter.py": EVERYTHING}, api=API)
    trained = estimator()
    lines = lines_of(caplog, lambda batches: trained.train(batches, steps=1))
    assert trained.get_variable_names() == ["net/w"]
    assert any("preferred to built-ins by default: acme 1.0" in line for line in lines)
    assert any("the adapter 'everything', not the core's, handles the function" in line for line in lines)


def test_an_observer_cannot_transform_batches_in_estimator_run_start(site, estimator, caplog):
    source = "def estimator_run_start(run):\n    run.transform_batches(lambda features, labels: (features, labels))\n"
    site.add("acme", source, api=API)
    lines = lines_of(caplog, lambda batches: estimator().train(batches, steps=1))
    assert any("acme 1.0 may not use run.transform_batches: observers only read" in line for line in lines)
    with pytest.raises(PluginError, match=r"acme 1\.0 may not use run\.transform_batches"):
        estimator(strict=True).train(batches, steps=1)


@pytest.mark.parametrize(
    "source",
    [
        "run.request_stop('mine')",
        "run.assign({})",
        "run.add_result('loss', 0.0)",
        "run.step = 7",
        "run.follow('loss')",
    ],
)
def test_an_observer_cannot_change_the_run(site, source):
    site.add("acme", f"def estimator_run_start(run):\n    {source}\n", api=API)
    run = FakeRun()
    with pytest.raises(PluginError, match=r"acme 1\.0 may not (use|set) run\."):
        site.plugins(strict=True).run_start(run)
    assert run.step == 0


def test_an_observer_gets_copies_and_the_members_of_the_contract_alone(site):
    source = """
def estimator_run_start(run):
    run.params["rate"] = 7
    run.batch["x"][0] = 7
    run.texts["note"] = "mine"
    try:
        run.results["loss"] = 0.0
    except AttributeError as error:
        assert "estimator_core.hooks.Run lists its attributes" in str(error)
    else:
        raise AssertionError("an observer reached what no contract has")
"""
    site.add("acme", source, api=API)
    run = FakeRun(params={"rate": 0.1}, batch={"x": np.zeros(2)})
    site.plugins(strict=True).run_start(run)
    assert (run.params, run.batch["x"].tolist(), run.texts, run.results) == ({"rate": 0.1}, [0, 0], {}, {})


def test_who_adds_hooks_cannot_change_batches_before_it_has_given_them(site, estimator):
    source = """
def estimator_run_hooks(run):
    run.transform_batches(lambda features, labels: ({"x": features["x"] * 2}, labels))
    return []

def estimator_capabilities():
    return [%s]
"""
    site.add("acme", source % "'adds_hooks'", api=API)
    with pytest.raises(PluginError, match=r"acme 1\.0 may not use run\.transform_batches: its plugin does"):
        estimator(strict=True).train(batches, steps=1)
    site.remove("acme")
    site.add("acme", source % "'adds_hooks', 'changes_batches'", api=API)
    estimator(strict=True).train(batches, steps=1)


def test_a_hook_of_a_plugin_cannot_replace_a_metric(site, estimator):
    source = """
from estimator_core.hooks import Hook

class Flattering(Hook):
    def end(self, run):
        if run.mode == "eval":
            run.add_result("loss", 0.0)

def estimator_run_hooks(run):
    return [Flattering()]

def estimator_capabilities():
    return ["adds_hooks"]
"""
    site.add("acme", source, api=API)
    trained = estimator()
    trained.train(batches, steps=1)
    with pytest.raises(HookError, match="A hook adds the results loss, which are metrics of the model"):
        trained.evaluate(batches)


def test_an_observer_cannot_change_the_metrics_that_evaluate_returns(site, estimator, caplog):
    site.add("acme", READS_METRICS, api=API)
    trained = estimator()
    trained.train(batches, steps=1)
    with caplog.at_level(logging.WARNING, "estimator_core"):
        assert trained.evaluate(batches)["loss"] > 0
    assert "estimator_evaluation_finished of acme 1.0 failed and was left out: TypeError" in caplog.text


def test_an_observer_cannot_change_the_arrays_of_metrics(site):
    site.add("acme", READS_METRICS.replace('metrics["loss"] = 0.0', 'metrics["curve"][0] = 7'), api=API)
    metrics = {"curve": np.zeros(2)}
    with pytest.raises(PluginError, match="read-only"):
        site.plugins(strict=True).evaluation_finished(FakeRun(mode="eval"), metrics)
    assert metrics["curve"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def estimator_run_hooks(run):\n    return []\n", "estimator_run_hooks and does not declare 'adds_hooks'"),
        (
            "def estimator_evaluation_finished(metrics):\n    pass\n",
            "estimator_evaluation_finished and does not declare 'reads_metrics'",
        ),
        ("def estimator_capabilities():\n    return ['add_hooks']\n", "'add_hooks', which is not a capability; did"),
        ("def estimator_capabilities():\n    return [7]\n", "returned 7; it must return names"),
        ("def estimator_capabilities():\n    return ['network', 'network']\n", "declares 'network' twice"),
    ],
)
def test_what_is_not_declared_is_refused_by_name(site, source, message):
    site.add("acme", source, api=API)
    (record,) = [one for one in site.plugins().records() if one.distribution == "acme"]
    assert record.status == "failed"
    assert message in record.error


def test_a_hook_of_a_plugin_that_does_not_say_so_cannot_change_batches(site, estimator):
    site.add("acme", CHANGES_BATCHES % "'adds_hooks'", api=API)
    with pytest.raises(PluginError, match=r"Doubling of acme 1\.0 may not use run\.transform_batches: its plugin does"):
        estimator().train(batches, steps=1)


def test_a_hook_of_one_that_says_so_changes_them_and_is_named(site, estimator, caplog):
    site.add("acme", CHANGES_BATCHES % "'adds_hooks', 'changes_batches'", api=API)
    trained = estimator()
    lines = lines_of(caplog, lambda batches: trained.train(batches, steps=1))
    assert any("hooks added to every run by: acme 1.0" in line for line in lines)
    assert any("batches may be changed by: acme 1.0" in line for line in lines)


def test_a_plugin_of_an_older_contract_is_taken_to_do_what_it_implements(site, estimator):
    site.add("acme", CHANGES_BATCHES.replace("def estimator_capabilities", "def _unused") % "")
    (record,) = [one for one in site.plugins().records() if one.distribution == "acme"]
    assert record.capabilities == ("adds_hooks", "changes_batches")
    estimator().train(batches, steps=1)


@pytest.mark.parametrize("call", ["train", "evaluate", "predict"])
def test_a_plugin_given_in_code_that_adds_hooks_is_in_the_opening_line_and_in_the_manifest(tmp_path, caplog, call):
    class Adding:
        ESTIMATOR_PLUGIN_API = (1, 2)

        def estimator_capabilities(self):
            return ["adds_hooks", "network"]

        def estimator_run_hooks(self, run):
            return [Hook()]

    def adding():
        plugins = Plugins(autoload=False, environ={}, extra=[Adding()])
        return ec.Estimator(model_fn, str(tmp_path / "model"), plugins=plugins)

    adding().train(batches, steps=1)
    trained = adding()
    with caplog.at_level(logging.WARNING, "estimator_core"):  # nobody sees a line of this call
        trained.evaluate(batches)
    (opening,) = [line for line in lines_of(caplog, getattr(trained, call)) if line.startswith("plugins:")]
    assert not [line for line in lines_of(caplog, getattr(trained, call)) if line.startswith("plugins:")]
    assert "hooks added to every run by: Adding (given in code);" in opening
    assert "the network is used by: Adding (given in code)" in opening
    from estimator_core._checkpoint.manifest import read_manifest

    rows = read_manifest(Path(trained.latest_checkpoint())).extras["plugins"]
    assert [(row["distribution"], row.get("does")) for row in rows] == [
        ("code:Adding", "adds_hooks, network"),
        ("estimator-core", None),
    ]


BACKEND = """
from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="backend", name="acme", target="acme.backend:make", summary="A fixture.")]
"""
MAKE = """
from estimator_core.backends import Available
from estimator_core._backends.contract import CPUBackend

class Acme(CPUBackend):
    name = "acme"

    def probe(self):
        return Available(priority=99, summary="A fixture.")

def make():
    return Acme()
"""


def test_a_backend_of_a_stranger_is_not_taken_where_nobody_chooses(site):
    site.add("acme", BACKEND, files={"backend.py": MAKE}, api=API)
    plugins = site.plugins()
    assert plugins.automatic("backend") == ("cpu",)
    assert plugins.names("backend") == ("acme", "cpu")  # and it is available by name


def test_one_that_declares_priority_is_taken_with_a_word(site, caplog):
    from estimator_core._backends.devices import select_backend

    site.add("acme", BACKEND + PRIORITY, files={"backend.py": MAKE}, api=API)
    plugins = site.plugins()
    with caplog.at_level(logging.INFO, "estimator_core"):
        taken = select_backend("auto", lambda name: plugins.get("backend", name), plugins.automatic("backend"))
    assert taken.name == "acme"
    assert "backend 'acme' is preferred to cpu: RunConfig(backend=...) chooses another" in caplog.text


SCALE = """
class Scale:
    __module__ = "acme"
"""
ADAPTER_OF_SCALE = """
from acme.modules import Scale

class %(name)s:
    name, library = "%(name)s", "builtins"

    def handles(self, module):
        return isinstance(module, Scale)

    def bind(self, binding):
        import numpy as np

        return lambda x: x @ binding.variable("%(variable)s", (3, 1), "float32", np.ones((3, 1), "float32"))

    def write_back(self, module, values):
        raise NotImplementedError
"""


def _module_of_two(site, *, more=""):
    """Installs a library with its adapter and another package whose adapter handles the same modules. Returns a
    model_fn.
    """
    component = TAKES_EVERYTHING.replace("everything", "%s").replace("Everything", "%s").replace("acme", "%s")
    own = ADAPTER_OF_SCALE % {"name": "Own", "variable": "own"}
    site.add("acme", component % ("own", "acme", "Own"), files={"modules.py": SCALE, "adapter.py": own}, api=API)
    other = ADAPTER_OF_SCALE % {"name": "Aaa", "variable": "taken"}
    site.add("aaa", component % ("aaa", "aaa", "Aaa") + more, files={"adapter.py": other}, api=API)
    from acme.modules import Scale  # type: ignore[import-not-found]

    def scaled(features, mode):
        loss = (ec.module(Scale(), name="net")(features["x"]) ** 2).mean()
        return ec.EstimatorSpec(mode, loss=loss, predictions=features["x"], train_op=optax.sgd(0.1))

    return scaled


def test_a_module_that_two_plugins_take_is_given_to_neither(site, tmp_path):
    scaled = _module_of_two(site)
    with pytest.raises(VariableError, match="The adapters 'Aaa', 'Own' all handle the module Scale"):
        ec.Estimator(scaled, str(tmp_path / "model"), plugins=site.plugins()).train(batches, steps=1)
    trained = ec.Estimator(scaled, str(tmp_path / "model"), plugins=site.plugins(block=["aaa"]))
    assert trained.train(batches, steps=1).get_variable_names() == ["net/own"]


def test_of_two_that_take_a_module_the_one_that_declares_priority_has_it_with_a_word(site, tmp_path, caplog):
    scaled = _module_of_two(site, more=PRIORITY)
    trained = ec.Estimator(scaled, str(tmp_path / "model"), plugins=site.plugins())
    lines = lines_of(caplog, lambda batches: trained.train(batches, steps=1))
    assert trained.get_variable_names() == ["net/taken"]
    assert "ec.module: the adapter 'Aaa' handles Scale instead of ['Own']" in lines


FORMAT = """
from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="format", name="%s", target="%s.plugin:Format", summary="A fixture.")]

class Format:
    name = "fixture"

    def write(self, request, directory):
        pass

    def recognizes(self, directory):
        return True

    def load(self, directory):
        return "%s"
"""


def test_an_export_that_two_formats_take_is_read_by_neither_without_a_word(site, tmp_path, caplog):
    site.add("acme", FORMAT % ("own", "acme", "own"), api=API)
    site.add("aaa", FORMAT % ("aaa", "aaa", "aaa"), api=API)
    with pytest.raises(ExportError, match="can be read by the formats aaa, own"):
        ec.export.load(tmp_path, plugins=site.plugins())
    assert ec.export.load(tmp_path, plugins=site.plugins(block=["aaa"])) == "own"
    site.remove("aaa")
    site.add("aaa", FORMAT % ("aaa", "aaa", "aaa") + PRIORITY, api=API)
    with caplog.at_level(logging.INFO, "estimator_core"):
        assert ec.export.load(tmp_path, plugins=site.plugins()) == "aaa"
    assert f"export format 'aaa' is preferred to ['own'] for {tmp_path}" in caplog.text


def test_the_list_of_plugins_calls_no_declaration_a_part_of_runs(site):
    site.add("acme-metrics", API + READS_METRICS)
    text = site.run("--plugins", "acme-metrics", "plugins").stdout
    assert "takes part in every run: estimator_evaluation_finished\n" in text
