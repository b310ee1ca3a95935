"""The module that the core calls has the names that it calls."""

from estimator_core._loop.agreement import of_several
from estimator_core.plugins import Plugins


def test_the_module_has_what_the_loop_calls() -> None:
    found = of_several(Plugins(autoload=False, environ={}))
    assert {"SharedFeed", "announce", "decisions", "decisions_of_hooks", "together"} <= set(dir(found))
