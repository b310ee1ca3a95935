"""Host transforms that break their contract, each in one way; `fails` names the tests that catch it."""

import itertools
import threading
from pathlib import Path

import numpy as np
import pytest

from estimator_testing import HostTransformSuite
from plugins.testing.tests.sound_transform import Vocabulary


class Suite(HostTransformSuite):
    fails = ()
    Broken: type[Vocabulary] = Vocabulary

    @pytest.fixture(autouse=True)
    def words(self, tmp_path: Path):
        self.file = tmp_path / "words.txt"
        self.file.write_text("one\ntwo\nthree\n")

    def make(self):
        return self.Broken("text", words=self.file)

    def batch(self):
        return {"text": np.array(["one", "two", "four", "three"])}


class TestNameWithSpaces(Suite):
    fails = ("test_is_a_host_transform",)

    class Broken(Vocabulary):
        name = "Vocabulary Look-up"


class TestVersionOfTheObject(Suite):
    fails = ("test_is_a_host_transform", "test_is_made_again_from_its_data")

    class Broken(Vocabulary):
        version = 0

        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.version = 1


class TestConfigWithArrays(Suite):
    fails = ("test_config_is_json",)

    class Broken(Vocabulary):
        def config(self):
            return {"feature": self.feature, "sizes": (1, 2)}


class TestFileThatIsNotThere(Suite):
    fails = ("test_config_is_json",)

    class Broken(Vocabulary):
        @property
        def files(self):
            return {"words": self.words.with_suffix(".gone")}


class TestForgetsAnArgument(Suite):
    fails = ("test_is_made_again_from_its_data",)

    class Broken(Vocabulary):
        def __init__(self, feature, words, shift=0):
            super().__init__(feature, words)
            self.shift = shift

        def apply(self, batch):
            return {name: array + self.shift for name, array in super().apply(batch).items()}

    def make(self):
        return self.Broken("text", words=self.file, shift=1)


class TestReadsTheOriginalFile(Suite):
    fails = ("test_is_made_again_from_its_data",)

    class Broken(Vocabulary):
        where = None

        def __init__(self, feature, words):
            type(self).where = type(self).where or words
            super().__init__(feature, type(self).where)


class TestDropsRows(Suite):
    fails = ("test_gives_arrays_of_the_batch",)

    class Broken(Vocabulary):
        def apply(self, batch):
            return {name: array[array >= 0] for name, array in super().apply(batch).items()}


class TestWritesIntoTheBatch(Suite):
    fails = ("test_changes_nothing_it_is_given",)

    class Broken(Vocabulary):
        def apply(self, batch):
            batch[self.feature][:] = np.char.lower(batch[self.feature])
            return super().apply(batch)

    def batch(self):
        return {"text": np.array(["One", "two", "four", "three"])}


class TestReplacesInTheBatch(Suite):
    fails = ("test_changes_nothing_it_is_given",)

    class Broken(Vocabulary):
        def apply(self, batch):
            batch["ids"] = super().apply(batch)[self.feature]
            return batch


class TestOneBufferForAll(Suite):
    fails = ("test_results_stay_as_they_were",)

    class Broken(Vocabulary):
        buffer = np.zeros(64, np.int32)

        def apply(self, batch):
            result = super().apply(batch)
            ids = result[self.feature]
            self.buffer[: len(ids)] = ids
            return {**result, self.feature: self.buffer[: len(ids)]}


class TestRanksWithinTheBatch(Suite):
    fails = ("test_rows_are_independent",)

    class Broken(Vocabulary):
        def apply(self, batch):
            return {self.feature: np.argsort(batch[self.feature]).astype(np.int32)}


class TestWidthOfTheBatch(Suite):
    fails = ("test_rows_are_independent",)

    class Broken(Vocabulary):
        def apply(self, batch):
            width = max(map(len, batch[self.feature]))
            return {self.feature: np.array([[len(word)] * width for word in batch[self.feature]])}


class TestCounts(Suite):
    fails = ("test_is_deterministic",)

    class Broken(Vocabulary):
        calls = itertools.count()

        def apply(self, batch):
            return {name: array + next(self.calls) for name, array in super().apply(batch).items()}


class TestBelongsToItsThread(Suite):
    fails = ("test_is_deterministic",)

    class Broken(Vocabulary):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.thread = threading.get_ident()

        def apply(self, batch):
            return {
                name: array + (threading.get_ident() != self.thread) for name, array in super().apply(batch).items()
            }


class TestForgetsOtherFeatures(Suite):
    fails = ("test_keeps_other_features",)

    class Broken(Vocabulary):
        def apply(self, batch):
            return {self.feature: super().apply(batch)[self.feature]}


class TestBucketsByHash(Suite):
    fails = ("test_another_hash_seed",)

    class Broken(Vocabulary):
        def apply(self, batch):
            return {**batch, self.feature: np.array([hash(word) % 1000 for word in batch[self.feature].tolist()])}


class TestDrawsFromTheGlobalGenerator(Suite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(Vocabulary):
        def apply(self, batch):
            np.random.random()
            return super().apply(batch)
