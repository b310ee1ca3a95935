"""Old hook members and moved paths are found, reported with their new form, and rewritten where that is safe."""

import ast
import re
import textwrap

import pytest

from estimator_core.errors import EstimatorError
from estimator_testing.migration import migrate_file
from tests.plugins.fake_site import Site


def migrate(tmp_path, text):
    path = tmp_path / "old.py"
    path.write_text(textwrap.dedent(text).lstrip())
    return migrate_file(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "from estimator_core.loop.builtin_hooks import NanTensorHook",
            "from estimator_core.builtin_hooks import NanTensorHook",
        ),
        (
            "from estimator_core.loop.builtin_hooks.timer import SecondOrStepTimer as Timer",
            "from estimator_core.builtin_hooks import SecondOrStepTimer as Timer",
        ),
        ("from estimator_core.loop import builtin_hooks", "import estimator_core.builtin_hooks as builtin_hooks"),
        ("from estimator_core.export.outputs import PredictOutput", "from estimator_core.export import PredictOutput"),
        ("from estimator_core.cli.main import main", "from estimator_core.cli import main"),
        ("from estimator_core.plan import TrainingPlan", "from estimator_plan import TrainingPlan"),
        ("import estimator_core.plan as planning", "import estimator_plan as planning"),
        pytest.param(
            "from estimator_core.plan.hlo import read_module",
            "from estimator_plan.hlo import read_module",
            marks=pytest.mark.plugins,
        ),  # the rewrite inspects the modules of the package
        pytest.param(
            "from estimator_core.plan.lowering import trace_step",
            "from estimator_core.lowering import trace_step",
            marks=pytest.mark.plugins,
        ),  # the rewrite inspects the modules of the package
        ("from estimator_core import plan", "import estimator_plan as plan"),
        ("from estimator_core.experiment import Experiment", "from estimator_experiment import Experiment"),
        ("from estimator_core.hparams import HParams", "from estimator_experiment import HParams"),
        ("from estimator_core.testing.fake_run import FakeRun, drive", "from estimator_testing import FakeRun, drive"),
        (
            "from estimator_core.testing.exporter_suite import FakeExporting",
            "from estimator_testing.exporter_suite import FakeExporting",
        ),
        (
            "from estimator_core.model.adapters.nnx import NnxAdapter",
            "from estimator_modules.nnx_adapter import NnxAdapter",
        ),
        ("from estimator_core.model.vocabulary import VocabInfo", "from estimator_warm_start import VocabInfo"),
        (
            "from estimator_core.model.warm_start import WarmStartSettings",
            "from estimator_warm_start import WarmStartSettings",
        ),
        ("from estimator_core.export.feature_specs import VarLenFeature", "from estimator_inputs import VarLenFeature"),
        ("from estimator_core.inputs.frames import pandas_input_fn", "from estimator_inputs import pandas_input_fn"),
        ("from estimator_core.inputs.batch import Batch", "from estimator_core.inputs import Batch"),
    ],
)
def test_moved_paths_are_rewritten(tmp_path, old, new):
    migrated = migrate(tmp_path, f"x = 1\n{old}  # why\n")
    assert migrated.after == f"x = 1\n{new}  # why\n"
    (finding,) = migrated.findings
    assert (finding.line, finding.new, finding.fixable) == (2, new, True)
    assert f"-{old}" in migrated.diff()
    assert f"+{new}" in migrated.diff()


def test_names_of_one_import_go_to_their_places(tmp_path):
    old = """
        def f():
            from estimator_core.loop.builtin_hooks import (
                NanTensorHook,
                RunConfig as Config,
            )
        """
    new = """
        def f():
            from estimator_core.builtin_hooks import NanTensorHook
            from estimator_core.config import RunConfig as Config
        """
    assert migrate(tmp_path, old).after == textwrap.dedent(new).lstrip()


def test_an_import_that_moves_takes_in_what_the_hook_needs(tmp_path):
    old = """
        from estimator_core.hooks import Hook, NanTensorHook

        class MyHook(Hook):
            comes_along = True

            def next_step(self, step):
                return step + 1
        """
    new = """
        from estimator_core.hooks import Hook, Wake
        from estimator_core.builtin_hooks import NanTensorHook

        class MyHook(Hook):

            def next_step(self, step):
                return Wake(step=step + 1, joins=True)
        """
    assert migrate(tmp_path, old).after == textwrap.dedent(new).lstrip()


@pytest.mark.parametrize(
    "text",
    [
        "import estimator_core as ec\nhook = ec.Hook()\n",
        "from estimator_core.hooks import Hook, Run\n",
        "from estimator_core import Experiment, hooks, testing\n",
        "from estimator_core.testing import HookSuite\n",
        "import estimator_core.metrics\n",
        "target = 'estimator_core.hooks:Hook'\n",
        "class Table(dict):\n    def values(self):\n        return ('a',)\n",
        "class Mine:\n    def __init__(self):\n        self._x = 1\n",
    ],
)
def test_what_is_public_is_left_alone(tmp_path, text):
    assert migrate(tmp_path, text).findings == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from estimator_core._inputs import numpy_input_fn", "from estimator_core.inputs import numpy_input_fn"),
        ("from estimator_core._loop.run import LoopRun", "no public module has it"),
        ("from estimator_core.loop.run import LoopRun", "no public module has it"),
        ("from estimator_core.metrics import no_such_metric", "no public module has it"),
        ("from estimator_core.loop.run import *", "name what you import"),
        ("import estimator_core.loop.run", "import public names"),
        ("import estimator_core.plan", "import estimator_plan"),
        pytest.param(
            "patch('estimator_core.plan.hlo.read_module')",
            "estimator_plan.hlo.read_module, by hand",
            marks=pytest.mark.plugins,
        ),  # the check inspects the modules of the package
        pytest.param(
            "from estimator_core.plan.report import show", "no public module has it", marks=pytest.mark.plugins
        ),  # the check inspects the modules of the package
        ("import estimator_core as ec\nec.Estimator(f)._engine", "private"),
        ("import estimator_core as ec\nestimator = ec.Estimator(f)\nestimator._engine.step", "private"),
        ("from estimator_core.hooks import Run\ndef f(run: Run):\n    return run.estimator._engine", "private"),
    ],
)
def test_what_cannot_be_rewritten_is_reported(tmp_path, text, said):
    migrated = migrate(tmp_path, text + "\n")
    (finding,) = migrated.findings
    assert said in finding.new
    assert finding.line == text.count("\n") + 1
    assert not finding.fixable
    assert migrated.after == migrated.before


OLD_HOOK = '''
"""A hook."""
from estimator_core.hooks import Hook, Run, StepOutputs


class MyHook(Hook):
    comes_along = True

    def __init__(self, every: int) -> None:
        self.every = every

    def next_step(self, step: int) -> int | None:
        if step > 100:
            return None
        return step + self.every

    def slack(self, step: int) -> int:
        """Late is fine."""
        return self.every - 1

    def next_time(self) -> float | None:
        return self.due

    def values(self) -> tuple[str, ...]:
        return ("loss", "accuracy")

    def end(self, run: Run) -> None:
        pass
'''
NEW_HOOK = '''
"""A hook."""
from estimator_core.hooks import Hook, Run, StepOutputs, Wake


class MyHook(Hook):

    def __init__(self, every: int) -> None:
        self.every = every

    def next_step(self, step: int) -> Wake | None:
        if step > 100:
            return Wake(time=self.due, joins=True)
        return Wake(step=step + self.every, within=self.every - 1, time=self.due, joins=True)

    def begin(self, run: Run) -> None:
        run.follow("loss")
        run.follow("accuracy")

    def end(self, run: Run) -> None:
        pass
'''


def test_old_members_become_one_answer(tmp_path):
    migrated = migrate(tmp_path, OLD_HOOK)
    ast.parse(migrated.after)
    assert migrated.after == NEW_HOOK.lstrip()
    assert [one.old for one in migrated.findings] == [
        "MyHook.comes_along",
        "MyHook.slack",
        "MyHook.next_time",
        "MyHook.values",
    ]
    assert all(one.fixable for one in migrated.findings)
    assert not any(one.old.startswith("MyHook") for one in migrate(tmp_path, migrated.after).findings)


def test_values_go_into_a_begin_that_is_there(tmp_path):
    old = """
        import estimator_core as ec

        class Base(ec.Hook):
            def begin(self, given):
                "Starts."
                self.seen = []

            def values(self):
                return ["loss"]

        class Second(Base):
            def values(self):
                return ("accuracy",)
        """
    new = """
        import estimator_core as ec

        class Base(ec.Hook):
            def begin(self, given):
                "Starts."
                given.follow("loss")
                self.seen = []

        class Second(Base):
            def begin(self, run):
                super().begin(run)
                run.follow("accuracy")
        """
    assert migrate(tmp_path, old).after == textwrap.dedent(new).lstrip()


def test_wake_is_imported_once_where_the_hook_comes_by_the_facade(tmp_path):
    hook = "class {0}(ec.Hook):\n    def next_step(self, step):\n        return step + 1\n\n"
    hook += "    def slack(self, step):\n        return 2\n"
    migrated = migrate(tmp_path, "import estimator_core as ec\n" + hook.format("A") + hook.format("B"))
    assert migrated.after.count("from estimator_core.hooks import Wake\n") == 1
    assert migrated.after.count("return Wake(step=step + 1, within=2)") == 2
    assert "slack" not in migrated.after


@pytest.mark.parametrize(
    ("body", "member", "said"),
    [
        ("_slack = 3\n    def slack(self, step):\n        return step % 5", "slack", "within"),
        ("slack = other", "slack", "within"),
        ("@cached\n    def next_time(self):\n        return 1.0", "next_time", "time"),
        ("comes_along = decide()", "comes_along", "joins"),
        ("def values(self):\n        log()\n        return tuple(self.names)", "values", "run.follow"),
        ("def values(self):\n        return ()", "values", "run.follow"),
        ("def settle(self, run):\n        pass", "settle", "after_step"),
        ("def f(self):\n        return super().slack(3)", "super().slack", "within"),
        ("def on_epoch(self):\n        pass\n\nMyHook().on_epoch()", "on_epoch", "_on_epoch: names that begin with"),
    ],
)
def test_a_member_that_is_more_than_an_expression_is_reported(tmp_path, body, member, said):
    text = f"class MyHook(Hook):\n    def next_step(self, step):\n        return step + 1\n\n    {body}\n"
    migrated = migrate(tmp_path, text)
    (finding,) = migrated.findings
    assert finding.old.endswith(member)
    assert said in finding.new
    assert not finding.fixable
    assert migrated.after == migrated.before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (  # a method that does more than return stays one, and is called
            """
            def next_step(self, step):
                return step + 5

            def next_time(self):
                if self.last is None:
                    return None
                return self.last + 60
            """,
            """
            def next_step(self, step):
                return Wake(step=step + 5, time=self._next_time())

            def _next_time(self):
                if self.last is None:
                    return None
                return self.last + 60
            """,
        ),
        (  # slack was asked with the step that is due
            """
            def next_step(self, step):
                return step + 5

            def slack(self, step):
                return step % 3
            """,
            """
            def next_step(self, step):
                return Wake(step=step + 5, within=self._slack(step + 5))

            def _slack(self, step):
                return step % 3
            """,
        ),
        (  # a hook that is not due by itself
            """
            comes_along = True

            def end(self, run):
                pass
            """,
            """
            def end(self, run):
                pass

            def next_step(self, step):
                return Wake(joins=True)
            """,
        ),
        (  # one that is due at every step
            """
            def after_step(self, run, step, out) -> None:
                pass

            def next_time(self) -> float:
                return self.due
            """,
            """
            def after_step(self, run, step, out) -> None:
                pass

            def next_step(self, step: int) -> Wake:
                return Wake(step=step + 1, time=self.due)
            """,
        ),
        (
            """
            def values(self):
                return tuple(self.names)

            def after_create(self, run):
                self.names = sorted(run.output_names)
            """,
            """
            def after_create(self, run):
                self.names = sorted(run.output_names)
                for name in tuple(self.names):
                    run.follow(name)
            """,
        ),
        (
            """
            def next_step(self, step):
                return step + 5

            def settle(self, run, step):
                print(step)
            """,
            """
            def next_step(self, step):
                return step + 5

            place = "late"

            def after_step(self, run, step, out):
                print(step)
            """,
        ),
        (
            """
            def after_step(self, run, step, out):
                self.on_epoch(run)

            def on_epoch(self, run):
                pass
            """,
            """
            def after_step(self, run, step, out):
                self._on_epoch(run)

            def _on_epoch(self, run):
                pass
            """,
        ),
    ],
    ids=["next_time", "slack", "comes_along", "every step", "values", "settle", "reserved"],
)
def test_each_member_is_rewritten(tmp_path, old, new):
    def hook(body):
        return "from estimator_core.hooks import Hook{}\n\nclass MyHook(Hook):" + textwrap.indent(
            textwrap.dedent(body), "    "
        )

    migrated = migrate(tmp_path, hook(old).format(""))
    assert all(one.fixable for one in migrated.findings)
    assert re.sub(r"\n\s*\n", "\n", migrated.after) == re.sub(
        r"\n\s*\n", "\n", hook(new).format(", Wake" if "Wake" in new else "")
    )
    exec(compile(migrated.after, "hook.py", "exec"), {"__name__": "hook"})  # Hook refuses old and reserved names
    assert migrate(tmp_path, migrated.after).findings == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "import estimator_core.loop.builtin_hooks\nhook = estimator_core.loop.builtin_hooks.NanTensorHook()\n",
            "import estimator_core.builtin_hooks\nhook = estimator_core.builtin_hooks.NanTensorHook()\n",
        ),
        (
            "import estimator_core.export.directories as d\nd.exports_in(p), d.new_export\n",
            "import estimator_core.export as d\nd.exports_in(p), d.new_export\n",
        ),
        (
            "import estimator_core as ec\noutput = ec.export.outputs.PredictOutput\n",
            "import estimator_core as ec\noutput = ec.export.PredictOutput\n",
        ),
        (
            "from estimator_core import metrics as m\nmean = m.mean.mean\n",
            "from estimator_core import metrics as m\nmean = m.mean.mean\n",
        ),
        (
            "target = 'estimator_core.inputs.arrays:numpy_input_fn'\n",
            "target = 'estimator_core.inputs:numpy_input_fn'\n",
        ),
        (
            'CODE = """\n    from estimator_core.testing.tiny import tiny_input_fn\n    tiny_input_fn()\n"""\n',
            'CODE = """\n    from estimator_testing import tiny_input_fn\n    tiny_input_fn()\n"""\n',
        ),
        (
            'def f():\n    """Text.\n\n    >>> from estimator_core.inputs.batch import Batch\n    >>> f()\n    """\n',
            'def f():\n    """Text.\n\n    >>> from estimator_core.inputs import Batch\n    >>> f()\n    """\n',
        ),
    ],
    ids=["plain import", "import as", "through a face", "a name, no module", "target", "program", "example"],
)
def test_paths_are_rewritten_wherever_they_stand(tmp_path, old, new):
    assert migrate(tmp_path, old).after == new
    assert migrate(tmp_path, new).findings == ()


def test_a_program_with_escapes_is_reported(tmp_path):
    text = "CODE = 'from estimator_core.testing.tiny import tiny_input_fn\\ntiny_input_fn()'\n"
    (finding,) = migrate(tmp_path, text).findings
    assert finding.new == "from estimator_testing import tiny_input_fn, by hand"
    assert not finding.fixable


def test_slack_without_next_step_is_reported(tmp_path):
    migrated = migrate(tmp_path, "class MyHook(Hook):\n    def slack(self, step):\n        return 5\n")
    assert [one.fixable for one in migrated.findings] == [False]


def test_a_file_that_is_no_python_is_named(tmp_path):
    with pytest.raises(EstimatorError, match=r"old\.py:1 is not Python"):
        migrate(tmp_path, "def (:\n")


OLD_PLUGIN = {
    "hook.py": """
        from estimator_core.hooks import Hook
        from estimator_core.loop.builtin_hooks.timer import SecondOrStepTimer

        class AcmeHook(Hook):
            def __init__(self):
                self.timer = SecondOrStepTimer(every_steps=5)

            def next_step(self, step):
                return step + 5
        """,
    "input.py": """
        import numpy as np
        from estimator_core.inputs.arrays import numpy_input_fn

        def acme_input_fn():
            x = np.arange(20, dtype=np.float32)
            return numpy_input_fn({"x": x}, x > 9, batch_size=6, shuffle=True, seed=1)
        """,
    "transform.py": """
        import numpy as np
        from estimator_core.inputs.batch import Batch
        from estimator_core.inputs.transforms import HostTransform

        def as_transform(thing: HostTransform) -> HostTransform:
            return thing
        """,
    "check.py": """
        from acme_old.hook import AcmeHook
        from acme_old.input import acme_input_fn
        from acme_old.transform import Batch
        from estimator_core.testing.hook_suite import HookSuite
        from estimator_core.testing.input_suite import InputSuite

        class TestHook(HookSuite):
            def make(self):
                return AcmeHook()

        class TestInput(InputSuite):
            def make(self):
                return acme_input_fn()

        def test_batch():
            assert Batch.__module__.startswith("estimator_core")
        """,
}


@pytest.mark.slow
def test_the_doctor_names_old_paths_and_its_fix_makes_the_suites_pass(tmp_path):
    site = Site(tmp_path)
    site.add("acme-old", "", files=OLD_PLUGIN)
    package = tmp_path / "acme_old"
    suites = [str(package / "check.py"), "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", "/dev/null"]
    before = site.python("-m", "pytest", *suites)
    assert "No module named 'estimator_core.loop'" in before.stdout
    named = site.run("plugins", "doctor", "acme-old")
    assert named.returncode == 1
    told = "from estimator_core.loop.builtin_hooks.timer import SecondOrStepTimer -> "
    assert f"{package / 'hook.py'}:3: {told}from estimator_core.builtin_hooks import SecondOrStepTimer" in named.stdout
    assert named.stdout.count(" -> ") == 6
    assert "loop.builtin_hooks" in (package / "hook.py").read_text()
    fixed = site.run("plugins", "doctor", "acme-old", "--fix")
    assert fixed.returncode == 1
    assert "+from estimator_core.inputs import numpy_input_fn" in fixed.stdout
    after = site.python("-m", "pytest", *suites)
    assert after.returncode == 0, after.stdout
    lacks = site.run("plugins", "doctor", "acme-old")
    assert lacks.returncode == 1
    assert "acme-old does not require estimator-testing, which it imports from" in lacks.stdout
    with (tmp_path / "acme_old-1.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write("Requires-Dist: estimator-testing\n")
    again = site.run("plugins", "doctor", "acme-old")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "->" not in again.stdout
