"""Checkpoint policies that break their contract, each in one way. `fails` names the tests that catch it."""

import os

from estimator_core.hooks import CheckpointPolicy
from estimator_core.testing import CheckpointPolicySuite


class Growing(CheckpointPolicy):
    """A sound policy: it saves after 2 steps, then 4, then 8."""

    def __init__(self):
        self.gap, self.base = 2, 0

    def at_start(self, run):
        if not run.resumed:
            self.gap, self.base = 2, run.step
        return True

    def next_step(self, step):
        return max(self.base + self.gap, step + 1)

    def saved(self, run, step):
        self.gap, self.base = 2 * self.gap, step

    def state(self):
        return {"gap": self.gap, "base": self.base}

    def restore(self, state):
        self.gap, self.base = state["gap"], state["base"]


class Suite(CheckpointPolicySuite):
    fails = ()
    Broken: type = Growing

    def make(self):
        return self.Broken()


class TestIsNone(Suite):
    fails = ("test_is_a_fresh_policy",)

    class Broken:
        pass


class TestIsOneForAll(Suite):
    fails = ("test_is_a_fresh_policy",)
    one = Growing()

    def make(self):
        return self.one


class TestAsksForThePast(Suite):
    fails = ("test_next_step_is_ahead",)

    class Broken(Growing):
        def next_step(self, step):
            return self.base


class TestForgetsItsMemory(Suite):
    fails = ("test_state_is_json_and_survives", "test_a_run_that_breaks_saves_as_one_that_does_not")

    class Broken(Growing):
        def restore(self, state):
            pass


class TestRemembersNothing(Suite):
    fails = ("test_a_run_that_breaks_saves_as_one_that_does_not",)

    class Broken(Growing):
        def state(self):
            return {}


class TestRemembersWhatIsNoJson(Suite):
    fails = ("test_state_is_json_and_survives",)

    class Broken(Growing):
        def state(self):
            return {**super().state(), "seen": {1, 2}}


class TestKeepsAFileOpen(Suite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(Growing):
        def at_start(self, run):
            self.log = os.open(__file__, os.O_RDONLY)
            return super().at_start(run)


class TestBeginsAtAHash(Suite):
    """The first step depends on a hash, so that many runs do not save at once."""

    fails = ("test_another_hash_seed",)

    class Broken(Growing):
        def next_step(self, step):
            return super().next_step(step) + hash("acme") % 1_000_003
