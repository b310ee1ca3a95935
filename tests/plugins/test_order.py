"""Tests of the order of plugins: by entry-point name, independent of the file system. Marks move a plugin to the front
or the back.
"""

from estimator_core.testing import FakeRun

HOOKED = """
from estimator_core.hooks import Hook
from estimator_core._plugins import hookimpl

class Named(Hook):
    owner = {name!r}

{mark}
def estimator_run_hooks(run):
    return [Named()]
"""


def owners(site, **marks):
    for name in ("delta", "alpha", "charlie", "bravo"):
        site.add(name, HOOKED.format(name=name, mark=marks.get(name, "")))
    return [hook.owner for hook in site.plugins().run_hooks(FakeRun())]


def test_sorted_by_name(site):
    assert owners(site) == ["alpha", "bravo", "charlie", "delta"]


def test_marks_move_to_the_front_and_the_back(site):
    assert owners(site, delta="@hookimpl(tryfirst=True)", alpha="@hookimpl(trylast=True)") == [
        "delta",
        "bravo",
        "charlie",
        "alpha",
    ]


def test_records_are_in_the_same_order_in_every_process(site):
    for name in ("zulu", "yankee", "xray"):
        site.add(name, "")
    script = "from estimator_core._plugins import Plugins; print([one.name for one in Plugins().records()])"
    outputs = {site.python("-c", script, environ={"PYTHONHASHSEED": str(seed)}).stdout for seed in (1, 2)}
    assert len(outputs) == 1
    (output,) = outputs
    assert output.index("xray") < output.index("yankee") < output.index("zulu")
