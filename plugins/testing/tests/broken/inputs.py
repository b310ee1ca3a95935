"""Inputs that break their contract, each in one way; `fails` names the tests of the suite that catch it."""

import itertools
import os
import random
import threading
import time

import numpy as np
import pytest

from estimator_core.inputs import InputOptions
from estimator_testing import InputSuite, leaks


@pytest.fixture(autouse=True)
def little_patience(monkeypatch):
    monkeypatch.setattr(leaks, "_THREAD_SECS", 0.2)


def batches(start=0):
    return [({"x": np.full((2, 1), i)}, np.array([i, i + 10])) for i in range(start, 5)]


class Positioned:
    """A sound iterator that reports its position."""

    input_options = InputOptions(fresh_arrays=True)

    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= 5:
            raise StopIteration
        self.at += 1
        return batches()[self.at - 1]

    def get_state(self):
        return {"at": self.at}

    def set_state(self, state):
        self.at = state["at"]


class Suite(InputSuite):
    shards = False
    fails = ()
    Broken: type[Positioned] = Positioned

    def make(self):
        return lambda: self.Broken()


class TestEndless(Suite):
    fails = ("test_ends",)

    def make(self):
        return lambda: itertools.cycle(batches())


class TestTooShort(Suite):
    fails = ("test_ends",)

    def make(self):
        return lambda: batches(start=4)


class TestReshufflesWithoutASeed(Suite):
    fails = ("test_can_be_called_again", "test_resumes_anywhere")

    def make(self):
        rng = np.random.default_rng(int(time.monotonic_ns() % 2**31))
        return lambda: [({"x": rng.normal(size=(2, 1))}, None) for _ in range(5)]


class TestOneIteratorForAll(Suite):
    fails = ("test_can_be_called_again", "test_two_readers_do_not_meet")

    def make(self):
        iterator = iter(batches())
        return lambda: iterator


class TestSharedCounter(Suite):
    fails = ("test_two_readers_do_not_meet",)

    def make(self):
        class Shared(Positioned):
            at = 0

            def __init__(self):
                type(self).at = 0

            def __next__(self):
                if type(self).at >= 5:
                    raise StopIteration
                type(self).at += 1
                return batches()[type(self).at - 1]

        return lambda: Shared()


class TestOneBufferForAll(Suite):
    fails = ("test_batches_stay_as_they_were",)

    class Broken(Positioned):
        def __init__(self):
            super().__init__()
            self.buffer = np.zeros((2, 1), np.int32)

        def __next__(self):
            features, labels = super().__next__()
            self.buffer[:] = features["x"]
            return {"x": self.buffer}, labels


class TestForgetsWhereItStands(Suite):
    fails = ("test_resumes_anywhere",)

    class Broken(Positioned):
        def set_state(self, state):
            self.at = 0


class TestStandsOneBatchAhead(Suite):
    fails = ("test_resumes_anywhere",)

    class Broken(Positioned):
        def get_state(self):
            return {"at": self.at + 1}


class TestStateThatJsonChanges(Suite):
    fails = ("test_position_counts_examples",)

    class Broken(Positioned):
        def get_state(self):
            return {"at": (self.at,)}

        def set_state(self, state):
            (self.at,) = state["at"]


class TestChangingForm(Suite):
    fails = ("test_batches_keep_their_structure",)

    def make(self):
        return lambda: [({"x": np.zeros((2, 1 + i))}, None) for i in range(4)]


class TestFingerprintOfTheObject(Suite):
    fails = ("test_fingerprint_is_stable",)

    class Broken(Positioned):
        @property
        def fingerprint(self):
            return f"object {id(self)} {time.monotonic_ns()}"


class TestEveryProcessReadsEverything(Suite):
    fails = ("test_shards_share_the_examples_out",)
    shards = True


class TestShardsOverlap(Suite):
    fails = ("test_shards_share_the_examples_out",)
    shards = True

    def make(self):
        return lambda input_context: batches(start=input_context.input_pipeline_id)


class TestThreadThatNeverEnds(Suite):
    fails = ("test_closing_leaves_nothing_behind",)

    class Broken(Positioned):
        def __init__(self):
            super().__init__()
            threading.Thread(target=time.sleep, args=(4,), daemon=True).start()


class TestLeaksADescriptor(Suite):
    fails = ("test_closing_leaves_nothing_behind",)

    class Broken(Positioned):
        def __init__(self):
            super().__init__()
            self.file = os.open(__file__, os.O_RDONLY)


class TestDrawsFromTheGlobalGenerator(Suite):
    fails = ("test_closing_leaves_nothing_behind",)

    class Broken(Positioned):
        def __init__(self):
            super().__init__()
            random.random()


class TestOrderOfHashes(Suite):
    fails = ("test_another_hash_seed",)

    def make(self):
        words = sorted((f"word {number}" for number in range(40)), key=hash)
        return lambda: [({"word": np.array(words[at : at + 10])}, None) for at in range(0, 40, 10)]


class TestFingerprintOfHashes(Suite):
    fails = ("test_another_hash_seed",)

    class Broken(Positioned):
        @property
        def fingerprint(self):
            return f"{hash('the names of the files'):x}"


class TestDiesInPrediction(Suite):
    fails = ("test_evaluates_and_predicts",)

    def make(self):
        return lambda mode: {"train": batches(), "eval": batches()}[mode]


class TestEvaluationNeverEnds(Suite):
    fails = ("test_evaluates_and_predicts",)

    def make(self):
        return lambda mode: batches() if mode == "train" else itertools.cycle(batches())


class TestSecondEpochLacksAnExample(Suite):
    fails = ("test_the_second_epoch",)

    def epochs(self, count):
        return lambda: [*batches(), *batches(start=1)]


class TestSecondEpochIsTheFirst(Suite):
    """Treats a position in the second epoch as one in the first."""

    fails = ("test_the_second_epoch",)

    class Broken(Positioned):
        def __next__(self):
            if self.at >= 10:
                raise StopIteration
            self.at += 1
            return batches()[(self.at - 1) % 5]

        def get_state(self):
            return {"at": self.at % 5}

    def epochs(self, count):
        return lambda: self.Broken()
