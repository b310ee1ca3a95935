"""Hooks that break their contract, each in one way; `fails` names the tests of the suite that catch it."""

import numpy as np

from estimator_core.hooks import Hook, Wake
from estimator_testing import HookSuite


class Counting(Hook):
    """A sound hook: sums the loss of every third step."""

    def __init__(self):
        self.total = np.zeros(1)

    def next_step(self, step):
        return step + 3 - step % 3

    def after_step(self, run, step, out):
        self.total = self.total + float(out["loss"])

    def state(self):
        return {"total": self.total.copy()}

    def restore(self, state):
        self.total = np.array(state["total"])


class TestClassInsteadOfObject(HookSuite):
    fails = ("test_is_a_fresh_hook",)

    def make(self):
        return Counting


class TestOneObjectForAll(HookSuite):
    fails = ("test_is_a_fresh_hook",)
    shared = Counting()

    def make(self):
        return self.shared


class TestNeedsAStep(HookSuite):
    fails = ("test_begins_and_ends_without_a_step",)

    class Broken(Counting):
        def after_step(self, run, step, out):
            self.last = float(out["loss"])

        def end(self, run):
            print(self.last)

    def make(self):
        return self.Broken()


class TestExpectsSuccess(HookSuite):
    fails = ("test_ends_after_a_failure",)

    class Broken(Counting):
        def end(self, run):
            assert run.step == run.last_step

    def make(self):
        return self.Broken()


class TestServesOnce(HookSuite):
    fails = ("test_serves_a_second_run",)

    class Broken(Counting):
        used = False

        def begin(self, run):
            if self.used:
                raise RuntimeError("already used")
            self.used = True

    def make(self):
        return self.Broken()


class TestNextStepIsNow(HookSuite):
    fails = ("test_next_step_is_ahead",)

    class Broken(Counting):
        def next_step(self, step):
            return step if step == 6 else step + 3

    def make(self):
        return self.Broken()


class TestNextStepCountsQuestions(HookSuite):
    fails = ("test_asking_changes_nothing",)

    class Broken(Counting):
        asked = 0

        def next_step(self, step):
            self.asked += 1
            return step + self.asked

    def make(self):
        return self.Broken()


class TestStateOfObjects(HookSuite):
    fails = ("test_state_can_be_saved",)

    class Broken(Counting):
        def state(self):
            return {"seen": (1, 2), **super().state()}

    def make(self):
        return self.Broken()


class TestAliasedState(HookSuite):
    fails = ("test_state_is_a_copy",)

    class Broken(Counting):
        def after_step(self, run, step, out):
            self.total += float(out["loss"])

        def state(self):
            return {"total": self.total}

    def make(self):
        return self.Broken()


class TestDroppedState(HookSuite):
    fails = ("test_state_comes_back", "test_resume_is_seamless")

    class Broken(Counting):
        def restore(self, state):
            pass

    def make(self):
        return self.Broken()


class TestPartOfTheStateIsForgotten(HookSuite):
    fails = ("test_resume_is_seamless",)

    class Broken(Counting):
        """Saves the rounded total and goes on with that."""

        def state(self):
            return {"total": np.round(self.total, 1)}

        def after_step(self, run, step, out):
            self.total = self.total + 0.04

    def make(self):
        return self.Broken()


class TestReliesOnSingleSteps(HookSuite):
    fails = ("test_several_steps_a_dispatch",)

    class Broken(Counting):
        """Takes the step before the dispatch for the one before its own."""

        def before_step(self, run, step):
            self.total = self.total + step

    def make(self):
        return self.Broken()


class TestStateOfTheClass(HookSuite):
    fails = ("test_objects_are_independent",)

    class Broken(Counting):
        shared = np.zeros(1)

        def __init__(self):
            self.total = type(self).shared

        def after_step(self, run, step, out):
            self.total += float(out["loss"])

    def make(self):
        return self.Broken()


class TestCannotWait(HookSuite):
    fails = ("test_lateness_is_true",)

    class Broken(Counting):
        """Wants every third step, and says that it may be told five steps late."""

        def next_step(self, step):
            return Wake(step=super().next_step(step), within=5)

    def make(self):
        return self.Broken()
