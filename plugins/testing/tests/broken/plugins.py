"""Plugins that break their contract, each in one way; `fails` names the tests of the suite that catch it."""

from typing import ClassVar

import pytest

from estimator_testing import PluginSuite, plugin_suite
from tests.plugins.fake_site import Site

COMPONENTS = """
from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="head", name="broken_head", target={target!r}, summary={summary!r})]
"""


def components(target="json:loads", summary="A fixture."):
    return COMPONENTS.format(target=target, summary=summary)


class Suite(PluginSuite):
    plugin = "broken"
    fails = ()
    source = components()
    requires = "estimator-core>=0.1,<0.2"
    files: ClassVar[dict[str, str]] = {}
    others: ClassVar[dict[str, str]] = {}

    @pytest.fixture(autouse=True)
    def installed(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(str(tmp_path))
        site = Site(tmp_path)
        site.add("broken", self.source, requires=self.requires, files=self.files)
        for name, source in self.others.items():
            site.add(name, source)
        plugin_suite._examined.cache_clear()
        yield
        site.forget()
        plugin_suite._examined.cache_clear()


class TestDoesNotLoad(Suite):
    fails = ("test_loads",)
    source = "raise ValueError('no licence')"


class TestAnotherContract(Suite):
    fails = ("test_loads",)
    source = "ESTIMATOR_PLUGIN_API = (2, 0)"


class TestIsAnotherTheSecondTime(Suite):
    fails = ("test_loads",)
    source = """
import itertools
from estimator_core.plugins import Component
calls = itertools.count()

def estimator_components():
    return [Component(kind="head", name=f"head_{next(calls)}", target="json:loads", summary="A fixture.")]
"""


class TestImportsJax(Suite):
    fails = ("test_import_is_light",)
    source = "import jax\n" + components()


class TestImportsNumpyByItsPackage(Suite):
    fails = ("test_import_is_light",)
    source = "from broken import helper\n" + components()
    files: ClassVar[dict[str, str]] = {"helper.py": "import numpy\n"}


class TestPrints(Suite):
    fails = ("test_import_is_silent",)
    source = "print('thank you for installing')\n" + components()


class TestSetsTheEnvironment(Suite):
    fails = ("test_import_changes_nothing",)
    source = "import os\nos.environ['XLA_FLAGS'] = '--xla_gpu_autotune_level=0'\n" + components()


class TestStartsAThread(Suite):
    fails = ("test_import_changes_nothing",)
    source = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(5,), daemon=True).start()\n" + components()
    )


class TestConfiguresLogging(Suite):
    fails = ("test_import_changes_nothing",)
    source = "import logging\nlogging.basicConfig(level='DEBUG')\n" + components()


class TestOrderOfASet(Suite):
    fails = ("test_order_is_fixed",)
    source = """
from estimator_core.plugins import Component

def estimator_components():
    names = {f"head_{letter}" for letter in "abcdefghij"}
    return [Component(kind="head", name=name, target="json:loads", summary="A fixture.") for name in names]
"""


class TestTargetIsMissing(Suite):
    fails = ("test_targets_exist",)
    source = components(target="broken.heads:Head")


class TestTargetCannotBeCalled(Suite):
    fails = ("test_targets_exist",)
    source = components(target="sys:path")


COMMAND = """
from estimator_core.plugins import Command

def estimator_commands():
    return [Command(name="broken", target="broken.command", summary="A fixture.")]
"""


class TestCommandWithoutRun(Suite):
    fails = ("test_commands_work",)
    source = COMMAND
    files: ClassVar[dict[str, str]] = {"command.py": '"""Does nothing."""\ndef configure(parser): pass\n'}


class TestCommandFailsToConfigure(Suite):
    fails = ("test_commands_work",)
    source = COMMAND
    files: ClassVar[dict[str, str]] = {
        "command.py": '"""Twice."""\ndef configure(parser):\n    parser.add_argument("--x")\n'
        '    parser.add_argument("--x")\ndef run(args): return 0\n'
    }


class TestTakesABuiltInName(Suite):
    fails = ("test_names_are_free",)
    source = components().replace('kind="head", name="broken_head"', 'kind="backend", name="cpu"')


class TestTakesTheNameOfAnother(Suite):
    fails = ("test_names_are_free",)
    others: ClassVar[dict[str, str]] = {"other": components()}


SOUND_COMMAND = '"""Does nothing."""\ndef configure(parser): pass\ndef run(args): return 0\n'


class TestTakesACommandOfTheCore(Suite):
    fails = ("test_names_are_free",)
    source = COMMAND.replace('name="broken"', 'name="audit"')
    files: ClassVar[dict[str, str]] = {"command.py": SOUND_COMMAND}


class TestTakesACommandOfAnother(Suite):
    fails = ("test_names_are_free",)
    source = COMMAND
    files: ClassVar[dict[str, str]] = {"command.py": SOUND_COMMAND}
    others: ClassVar[dict[str, str]] = {"other": COMMAND}


class TestWithoutASummary(Suite):
    fails = ("test_summaries",)
    source = components(summary="")


class TestSummaryOfManyLines(Suite):
    fails = ("test_summaries",)
    source = components(summary="One.\nTwo.")


class TestDefaultForAnArgument(Suite):
    fails = ("test_signatures",)
    source = "def estimator_run_start(run=None):\n    pass\n"


class TestWrongAnnotation(Suite):
    fails = ("test_signatures",)
    source = "def estimator_run_start(run: str):\n    pass\n"


class TestSameHookForEveryRun(Suite):
    fails = ("test_run_hooks",)
    source = """
def estimator_run_hooks(run):
    from broken import hook
    return [hook.HOOK]
"""
    files: ClassVar[dict[str, str]] = {"hook.py": "from estimator_core.hooks import Hook\nHOOK = Hook()\n"}


class TestHooksFailInEvaluation(Suite):
    fails = ("test_run_hooks",)
    source = "def estimator_run_hooks(run):\n    return {'train': []}[run.mode]\n"


class TestObserverFailsAfterAnError(Suite):
    fails = ("test_run_hooks",)
    source = "def estimator_run_end(error):\n    if error:\n        raise error\n"


class TestSendsWithoutAWord(Suite):
    fails = ("test_network_is_declared",)
    source = """
def estimator_run_end(run, error):
    import urllib.request

    try:
        urllib.request.urlopen("http://tracker.acme.example/ended", timeout=1)
    except OSError:
        pass  # the tracker is down; a run does not fail for that
"""


class TestDoesNotRequireTheCore(Suite):
    fails = ("test_requires_the_core",)
    requires = ""


class TestRequiresAnyCore(Suite):
    fails = ("test_requires_the_core",)
    requires = "estimator-core"


class TestIsInstalledWithoutItsRequirements(Suite):
    fails = ("test_requirements_are_met",)
    requires = "estimator-core>=0.1,<0.2\nRequires-Dist: acme-absent"


class TestDoesNotRequireThePackageOfAKind(Suite):
    fails = ("test_requires_the_core",)
    source = """
from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="sampler", name="even", target="broken.even:Even", summary="A fixture.")]
"""
    files: ClassVar = {"even.py": "class Even:\n    pass\n"}
    others: ClassVar = {
        "samplers": """
from estimator_core.plugins import Kind

def estimator_kinds():
    names = {"contract": "collections.abc:Iterator", "suite": "broken.suite:Suite"}
    return [Kind(name="sampler", title="samplers", target="a class", **names)]
"""
    }


class TestExporterWithoutItsFirstArguments(Suite):
    fails = ("test_needs",)
    source = """
from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="exporter", name="broken_exporter", target="broken.exporter:Last", summary="A fixture.")]
"""
    files: ClassVar = {
        "exporter.py": """
class Last:
    def __init__(self, name: str, keep: int = 1) -> None:
        self.name, self.keep = name, keep
"""
    }


class TestHidesWhatItNeeds(Suite):
    fails = ("test_needs",)
    source = """
from estimator_core.plugins import Component

def estimator_components():
    return [Component(kind="hook", name="broken_hook", target="broken.hook:Bound", summary="A fixture.")]
"""
    files: ClassVar = {
        "hook.py": """
from collections.abc import Callable

from estimator_core.hooks import Hook

class Bound(Hook):
    def __init__(self, name: str, input_fn: Callable[[], object]) -> None:
        self.name, self.input_fn = name, input_fn
"""
    }
