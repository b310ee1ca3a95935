"""Export formats that break their contract, each in one way. `fails` names the tests that catch it."""

import json
import pickle
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from estimator_core.export import Feature
from estimator_testing import ExportFormatSuite
from plugins.testing.tests.sound_format import Signature, SoundFormat


class Suite(ExportFormatSuite):
    fails = ()
    Broken: type[SoundFormat] = SoundFormat

    def make(self):
        return self.Broken()


def replaced(loaded, call):
    """Returns the loaded export with another way to call its signatures."""

    class Other(Signature):
        __call__ = call

    signatures = {
        key: Other(one.name, one.variables, one.inputs, one.outputs) for key, one in loaded.signatures.items()
    }
    return SimpleNamespace(signatures=signatures, manifest=loaded.manifest)


class TestNameWithCapitals(Suite):
    fails = ("test_is_an_export_format",)

    class Broken(SoundFormat):
        name = "StableHLO"


class TestRecognizesEverything(Suite):
    fails = ("test_recognizes_its_own",)

    class Broken(SoundFormat):
        def recognizes(self, directory):
            return directory.is_dir()


class TestRecognizesAnyFile(Suite):
    fails = ("test_recognizes_its_own",)

    class Broken(SoundFormat):
        def recognizes(self, directory):
            return directory.is_dir() and any(directory.iterdir())


class TestWithoutRawSignatures(Suite):
    fails = ("test_has_raw_signatures",)

    class Broken(SoundFormat):
        def load(self, directory):
            loaded = super().load(directory)
            return SimpleNamespace(signatures=loaded.signatures, manifest=loaded.manifest)


class TestForgetsASignature(Suite):
    fails = ("test_keeps_the_signatures",)

    class Broken(SoundFormat):
        def load(self, directory):
            loaded = super().load(directory)
            del loaded.signatures["squashed"]
            return loaded


class TestForgetsDtypes(Suite):
    fails = ("test_keeps_the_signatures",)

    class Broken(SoundFormat):
        def features(self, forms):
            return {name: Feature(tuple(shape)) for name, (shape, _) in forms.items()}


class TestOneBatchSize(Suite):
    fails = ("test_gives_the_same_outputs",)

    class Broken(SoundFormat):
        def load(self, directory):
            def call(self, **arrays):
                return Signature.__call__(self, **{name: np.resize(a, (2, *a.shape[1:])) for name, a in arrays.items()})

            return replaced(super().load(directory), call)


class TestAnotherDtype(Suite):
    fails = ("test_gives_the_same_outputs",)

    class Broken(SoundFormat):
        def load(self, directory):
            def call(self, **arrays):
                return {name: a.astype(np.float32) for name, a in Signature.__call__(self, **arrays).items()}

            return replaced(super().load(directory), call)


class TestSameFunctionForAll(Suite):
    fails = ("test_gives_the_same_outputs",)

    class Broken(SoundFormat):
        def load(self, directory):
            loaded = super().load(directory)
            loaded.signatures["squashed"].name = "serving_default"
            return loaded


class TestRemembersTheFirstVariables(Suite):
    fails = ("test_writes_the_variables_of_each_request",)

    class Broken(SoundFormat):
        first = None

        def load(self, directory):
            loaded = super().load(directory)
            self.first = self.first or next(iter(loaded.signatures.values())).variables
            for signature in loaded.signatures.values():
                signature.variables = self.first
            return loaded


class TestRoundsInPlace(Suite):
    fails = ("test_changes_nothing_it_is_given",)

    class Broken(SoundFormat):
        def write(self, request, directory):
            super().write(request, directory)
            for value in request.variables.values():
                value += 1e-3


class TestLinksAssets(Suite):
    fails = ("test_keeps_assets_and_manifest",)

    class Broken(SoundFormat):
        def write(self, request, directory):
            super().write(request, directory)
            for name, path in request.assets.items():
                copy = directory / "assets" / name
                copy.unlink()
                copy.symlink_to(path)


class TestDropsProvenance(Suite):
    fails = ("test_keeps_assets_and_manifest",)

    class Broken(SoundFormat):
        def load(self, directory):
            loaded = super().load(directory)
            del loaded.manifest["provenance"]
            return loaded


class TestKnowsItsPlace(Suite):
    fails = ("test_loads_in_another_process_and_place",)

    class Broken(SoundFormat):
        def write(self, request, directory):
            super().write(request, directory)
            (directory / "place").write_text(str(directory))

        def load(self, directory):
            assert (directory / "place").read_text() == str(directory)
            return super().load(directory)


class TestKeepsValuesInTheProcess(Suite):
    fails = ("test_loads_in_another_process_and_place",)

    class Broken(SoundFormat):
        written: ClassVar[dict] = {}

        def write(self, request, directory):
            super().write(request, directory)
            type(self).written = dict(request.variables)

        def load(self, directory):
            loaded = super().load(directory)
            for signature in loaded.signatures.values():
                signature.variables = self.written
            return loaded


class TestPickles(Suite):
    fails = ("test_holds_no_pickle",)

    class Broken(SoundFormat):
        def write(self, request, directory):
            super().write(request, directory)
            (directory / "extra.bin").write_bytes(pickle.dumps(dict(request.provenance)))


class TestFillsUpWithZeros(Suite):
    fails = ("test_damage_is_noticed",)

    class Broken(SoundFormat):
        def write(self, request, directory):
            super().write(request, directory)
            arrays = {name: value.ravel().tolist() for name, value in request.variables.items()}
            (directory / "values").write_text("\n".join(f"{name} {v}" for name, a in arrays.items() for v in a))

        def load(self, directory):
            loaded = super().load(directory)
            values = {name: np.zeros_like(a) for name, a in next(iter(loaded.signatures.values())).variables.items()}
            found = {name: [] for name in values}
            for line in (directory / "values").read_text().split("\n"):
                name, _, value = line.partition(" ")
                found.get(name, []).append(float(value or 0))
            for name, numbers in found.items():
                values[name].ravel()[: len(numbers)] = numbers
            for signature in loaded.signatures.values():
                signature.variables = values
            return loaded


class TestCrashesOnDamage(Suite):
    fails = ("test_damage_is_noticed",)

    class Broken(SoundFormat):
        def load(self, directory):
            json.loads((directory / "sound.json").read_text())
            return super().load(directory)


class TestTakesAnyInputs(Suite):
    fails = ("test_wrong_inputs_are_refused",)

    class Broken(SoundFormat):
        def load(self, directory):
            def call(self, x, ids=0, **others):
                return {"scores": x[:, :3] @ self.variables["dense/kernel"], "next": ids + 1}

            return replaced(super().load(directory), call)


class TestSeedsTheGenerator(Suite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(SoundFormat):
        def load(self, directory):
            np.random.seed(7)
            return super().load(directory)
