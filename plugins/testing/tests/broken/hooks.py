"""Hooks that break their contract, each in one way; `fails` names the tests of the suite that catch it."""

import contextlib
import os
import random
import threading
import time

import numpy as np
import pytest

from estimator_core.hooks import Hook, Wake
from estimator_testing import HookSuite, leaks


@pytest.fixture(autouse=True)
def little_patience(monkeypatch):
    monkeypatch.setattr(leaks, "_THREAD_SECS", 0.2)
    monkeypatch.setenv("OF_A_BROKEN_HOOK", "")


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
        """Saves the rounded total and continues with it."""

        def state(self):
            return {"total": np.round(self.total, 1)}

        def after_step(self, run, step, out):
            self.total = self.total + 0.04

    def make(self):
        return self.Broken()


class TestReliesOnSingleSteps(HookSuite):
    fails = ("test_several_steps_a_dispatch",)

    class Broken(Counting):
        """Treats the step before the dispatch as the step before its own."""

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
        """Requests every third step, but allows that it is called five steps late."""

        def next_step(self, step):
            return Wake(step=super().next_step(step), within=5)

    def make(self):
        return self.Broken()


class Watching(Counting):
    """A sound hook: writes the mean of the last three losses, and ends the run once that mean is low twice."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.low = 0

    def next_step(self, step):
        return step + 1

    def after_step(self, run, step, out):
        self.seen = [*self.seen[-2:], float(out["loss"])]
        mean = sum(self.seen) / len(self.seen)
        run.summaries.scalar("mean", mean, step)
        self.low = self.low + 1 if mean < 0.05 else 0
        if self.low >= 2:
            run.request_stop("the loss is low")

    def state(self):
        return {"seen": list(self.seen), "low": self.low}

    def restore(self, state):
        self.seen, self.low = list(state["seen"]), state["low"]


class TestAStateFieldIsForgotten(HookSuite):
    fails = ("test_resume_has_the_same_effects",)

    class Broken(Watching):
        def state(self):
            return {"seen": list(self.seen)}

        def restore(self, state):
            self.seen = list(state["seen"])

    def make(self):
        return self.Broken()


class TestAFieldOfWhatItWritesIsForgotten(HookSuite):
    fails = ("test_resume_has_the_same_effects",)

    class Broken(Watching):
        def state(self):
            return {"low": self.low}

        def restore(self, state):
            self.low = state["low"]

    def make(self):
        return self.Broken()


class TestTimeOfAnotherProcess(HookSuite):
    """Saves its start time from a clock that the next process does not share."""

    fails = ("test_resume_has_the_same_effects",)

    class Broken(Hook):
        began = None

        def begin(self, run):
            self.began = time.monotonic() if self.began is None else self.began

        def after_step(self, run, step, out):
            if time.monotonic() - self.began >= 10:
                run.request_stop("the time is up")

        def state(self):
            return {"began": self.began}

        def restore(self, state):
            self.began = state["began"]

    def make(self):
        return self.Broken()


class TestSwallowsAnException(HookSuite):
    fails = ("test_failures_reach_the_run",)

    class Broken(Counting):
        def after_step(self, run, step, out):
            try:
                super().after_step(run, step, out)
            except Exception:
                self.total = self.total + 0

    def make(self):
        return self.Broken()


class TestSwallowsAFullDisk(HookSuite):
    fails = ("test_failures_reach_the_run",)

    class Broken(Counting):
        def after_step(self, run, step, out):
            with contextlib.suppress(Exception):
                run.summaries.scalar("step", step, step)

    def make(self):
        return self.Broken()


class TestLeavesAThread(HookSuite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(Counting):
        def begin(self, run):
            threading.Thread(target=threading.Event().wait, args=(6,), daemon=True).start()

    def make(self):
        return self.Broken()


class TestLeavesAThreadAfterAFailure(HookSuite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(Counting):
        def begin(self, run):
            self.told = threading.Event()
            threading.Thread(target=self.told.wait, args=(6,), daemon=True).start()

        def end(self, run):
            if not run.failed:
                self.told.set()

    def make(self):
        return self.Broken()


class TestLeavesAFileOpen(HookSuite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(Counting):
        def begin(self, run):
            self.log = os.open(__file__, os.O_RDONLY)

    def make(self):
        return self.Broken()


class TestReseedsTheGlobalGenerator(HookSuite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(Counting):
        def begin(self, run):
            np.random.seed(0)

    def make(self):
        return self.Broken()


class TestReseedsTheModuleRandom(HookSuite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(Counting):
        def begin(self, run):
            random.seed(0)

    def make(self):
        return self.Broken()


class TestChangesTheEnvironment(HookSuite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(Counting):
        def begin(self, run):
            os.environ["OF_A_BROKEN_HOOK"] += "more"

    def make(self):
        return self.Broken()


class TestSharedListOutsideTheState(HookSuite):
    fails = ("test_the_same_run_has_the_same_effects",)

    class Broken(Watching):
        everything = []  # noqa: RUF012

        def after_step(self, run, step, out):
            self.everything.append(float(out["loss"]))
            run.summaries.scalar("mean", sum(self.everything) / len(self.everything), step)

        def state(self):
            return {}

        def restore(self, state):
            pass

    def make(self):
        return self.Broken()


class TestGoesByTheOrderOfASet(HookSuite):
    fails = ("test_another_hash_seed",)

    class Broken(Counting):
        def after_step(self, run, step, out):
            for name in {f"point {number}" for number in range(20)}:
                run.summaries.scalar(name, 0, step)

    def make(self):
        return self.Broken()


class TestOnValuesReadsTheStepOfTheRun(HookSuite):
    fails = ("test_saves_change_nothing",)

    class Broken(Hook):
        def begin(self, run):
            run.follow("loss")

        def on_values(self, run, steps, values):
            run.summaries.scalar("loss", values["loss"].mean(), run.step)

    def make(self):
        return self.Broken()


class TestStateThatCounts(HookSuite):
    fails = ("test_saves_change_nothing",)

    class Broken(Counting):
        def state(self):
            self.total = self.total + 1
            return super().state()

    def make(self):
        return self.Broken()


class TestDiesInEvaluation(HookSuite):
    fails = ("test_takes_part_in_every_mode",)

    class Broken(Counting):
        def begin(self, run):
            self.left = run.last_step - run.step

    def make(self):
        return self.Broken()


class TestEndsWhateverItReads(HookSuite):
    fails = ("test_an_end_depends_on_what_it_reads",)

    class Broken(Counting):
        def after_step(self, run, step, out):
            super().after_step(run, step, out)
            if step >= 9:
                run.request_stop("enough")

    def make(self):
        return self.Broken()


class TestTakesLongOfEachStep(HookSuite):
    fails = ("test_says_what_a_step_costs",)
    most_ms_a_step = 0.5

    class Broken(Counting):
        def next_step(self, step):
            return step + 1

        def after_step(self, run, step, out):
            until = time.thread_time() + 0.002
            while time.thread_time() < until:
                pass

    def make(self):
        return self.Broken()


class TestLeavesAThreadInEvaluation(HookSuite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(Counting):
        def begin(self, run):
            super().begin(run)
            if run.mode == "eval":
                self.over = threading.Event()
                threading.Thread(target=self.over.wait, name="watcher", daemon=True).start()

    def make(self):
        return self.Broken()
