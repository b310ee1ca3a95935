"""The hooks that watch: driven without a model, by the suite, and in a run."""

import numpy as np
from acme_hook.watch import Companion, First, LastLook, Pace

from estimator_core.testing.fake_run import drive
from estimator_core.testing.hook_suite import HookSuite
from estimator_core.testing.tiny import tiny_estimator, tiny_input_fn


class TestPace(HookSuite):
    def make(self):
        return Pace(every=3)


class TestCompanion(HookSuite):
    def make(self):
        return Companion()


class TestFirst(HookSuite):
    def make(self):
        return First()


def test_they_watch_together():
    pace, companion, first = Pace(("loss", "a"), every=4), Companion(), First()
    last = LastLook(pace)
    outputs = {"loss": lambda step: np.float32(step), "a": lambda step: np.float32(2 * step)}
    drive([last, pace, companion, first], steps=12, outputs=outputs)
    assert pace.seen == companion.seen == [4, 8, 12]
    assert pace.timer.last_triggered_step() == 12
    assert last.agreed
    assert first.first == 1
    assert np.mean(pace.means["a"]) == 2 * np.mean(pace.means["loss"])


def test_they_take_part_in_a_run(tmp_path):
    pace, companion = Pace(every=5), Companion()
    tiny_estimator(tmp_path).train(tiny_input_fn(), steps=20, hooks=[LastLook(pace), pace, companion])
    assert pace.seen == [5, 10, 15, 20]
    assert set(pace.seen) <= set(companion.seen)
