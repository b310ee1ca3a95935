"""The hook suite passes sound hooks and catches broken ones."""

import numpy as np

from estimator_core.hooks import Hook, Wake
from estimator_testing import HookSuite


class SumOfLosses(Hook):
    def __init__(self):
        self.total = np.zeros(1)

    def next_step(self, step):
        return Wake(step=step + 3 - step % 3, within=2)

    def after_step(self, run, step, out):
        self.total = self.total + float(out["loss"])

    def state(self):
        return {"total": self.total.copy(), "name": "sum"}

    def restore(self, state):
        self.total = np.array(state["total"])


class TestSumOfLosses(HookSuite):
    def make(self):
        return SumOfLosses()


class TestIdleHook(HookSuite):
    def make(self):
        return Hook()


def test_broken_hooks_are_caught(assert_each_is_caught):
    assert_each_is_caught("hooks")
