"""Export checks that break their contract, each in one way. `fails` names the tests that catch it."""

import numpy as np

from estimator_core.export import CloseOutputs
from estimator_core.testing import ExportCheckSuite


class Suite(ExportCheckSuite):
    fails = ()
    Broken: type = CloseOutputs

    def make(self):
        return self.Broken()


class TestWithoutTheMethod(Suite):
    fails = ("test_is_an_export_check",)

    class Broken:
        def compare(self, expected, found):
            return None


class TestPassesEverything(Suite):
    fails = ("test_another_shape_is_kept_back", "test_nonsense_is_kept_back")

    class Broken:
        def difference(self, expected, found):
            return None


class TestPassesNothing(Suite):
    fails = ("test_equal_outputs_pass",)

    class Broken:
        def difference(self, expected, found):
            return "is suspicious."


class TestDoesNotSayWhat(Suite):
    fails = ("test_another_shape_is_kept_back", "test_nonsense_is_kept_back")

    class Broken(CloseOutputs):
        def difference(self, expected, found):
            return None if super().difference(expected, found) is None else ""


class TestBroadcasts(Suite):
    fails = ("test_another_shape_is_kept_back",)

    class Broken(CloseOutputs):
        def difference(self, expected, found):
            try:
                found = np.broadcast_to(found, np.broadcast_shapes(expected.shape, found.shape))
            except ValueError:
                return "has another shape."
            return super().difference(np.broadcast_to(expected, found.shape), found)


class TestComparesTheMean(Suite):
    fails = ("test_equal_outputs_pass",)

    class Broken(CloseOutputs):
        def difference(self, expected, found):
            if expected.shape != found.shape:
                return "has another shape."
            same = abs(np.mean(expected.astype(float)) - np.mean(found.astype(float))) < 1e-3 if found.size else True
            return None if same else "has another mean."


class TestSortsWhatItIsGiven(Suite):
    fails = ("test_changes_nothing_it_is_given",)

    class Broken(CloseOutputs):
        def difference(self, expected, found):
            found[...] = np.clip(found, -2.0, 2.0) if found.size == 3 and found.dtype == float else found
            return super().difference(expected, found)


class TestSeedsTheGenerator(Suite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(CloseOutputs):
        def difference(self, expected, found):
            np.random.seed(7)
            return super().difference(expected, found)


class TestSilencesNumpy(Suite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(CloseOutputs):
        def difference(self, expected, found):
            np.seterr(all="ignore")  # the same setting at each use
            return super().difference(expected, found)


class TestSamplesByAHash(Suite):
    fails = ("test_another_hash_seed",)

    class Broken(CloseOutputs):
        def difference(self, expected, found):
            text = super().difference(expected, found)
            return text and f"{text} (sample {hash(text)})"
