"""Module adapters that break their contract, each in one way; `fails` names the tests that catch it."""

import itertools
import random

import jax
import jax.numpy as jnp
import numpy as np

from estimator_testing import ModuleAdapterSuite
from plugins.testing.tests.affine_library import Affine
from plugins.testing.tests.sound_adapter import AffineAdapter


class Suite(ModuleAdapterSuite):
    fails = ()
    Broken: type[AffineAdapter] = AffineAdapter

    def make(self):
        return self.Broken()

    def module(self):
        return Affine(3)

    def inputs(self, rng):
        return rng.normal(size=(4, 2)).astype(np.float32)


class TestHandlesEverything(Suite):
    fails = ("test_is_a_module_adapter",)

    class Broken(AffineAdapter):
        def handles(self, module):
            return True


class TestImportsItsLibrary(Suite):
    """This file imports the library."""

    fails = ("test_its_file_does_not_import_the_library",)

    class Broken(AffineAdapter):
        pass


class TestNothingToTrain(Suite):
    fails = ("test_declares_its_parameters",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            return lambda x: x @ binding.module.kernel


class TestRandomFirstValues(Suite):
    fails = ("test_declares_its_parameters",)

    class Broken(AffineAdapter):
        def parameters(self, binding):
            for name in ("kernel", "bias"):
                value = getattr(binding.module, name) + random.random()
                yield binding.variable(name, value.shape, value.dtype, value)


class TestComputesWithTheInstance(Suite):
    fails = ("test_computes_with_its_variables",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            list(self.parameters(binding))
            return lambda x: x @ binding.module.kernel + binding.module.bias


class TestForgetsTheBias(Suite):
    fails = ("test_computes_with_its_variables",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            kernel, _ = self.parameters(binding)
            return lambda x: x @ kernel


class TestWrongGradient(Suite):
    fails = ("test_gradient_is_that_of_the_output",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            kernel, bias = self.parameters(binding)
            return lambda x: x @ kernel + jax.lax.stop_gradient(bias)


class TestCountsTraces(Suite):
    fails = ("test_is_traced_once",)

    class Broken(AffineAdapter):
        binds = itertools.count()

        def bind(self, binding):
            sound, number = super().bind(binding), next(self.binds)
            return lambda x: sound(x) + number


class TestWritesInEvaluation(Suite):
    fails = ("test_model_state_goes_round",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            kernel, bias = self.parameters(binding)
            calls = binding.variable(
                "calls", (), "float32", lambda key, shape, dtype: jnp.zeros(shape), trainable=False
            )
            binding.write("calls", calls + 1)
            return lambda x: x @ kernel + bias


class TestStateChangesItsShape(Suite):
    fails = ("test_model_state_goes_round",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            sound = super().bind(binding)

            def apply(x):
                out = sound(x)
                if binding.scope.mode == "train":
                    binding.write("calls", jnp.zeros(2))
                return out

            return apply


class TestDropsOutInEvaluation(Suite):
    fails = ("test_evaluation_is_deterministic",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            sound, key = super().bind(binding), binding.key("dropout")
            return lambda x: sound(x) * jax.random.bernoulli(key, 0.5, (len(x), 1))


class TestChangesTheInstance(Suite):
    fails = ("test_the_instance_is_left_alone",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            binding.module.kernel *= 2
            return super().bind(binding)


class TestKeepsATracer(Suite):
    fails = ("test_the_instance_is_left_alone",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            kernel, bias = self.parameters(binding)
            if binding.scope.mode == "train":
                binding.module.last = kernel
            return lambda x: x @ kernel + bias


class TestCannotBeFrozen(Suite):
    fails = ("test_can_be_frozen",)

    class Broken(AffineAdapter):
        def parameters(self, binding):
            object.__setattr__(binding, "trainable", lambda name: True)
            yield from super().parameters(binding)


class TestWritesNothingBack(Suite):
    fails = ("test_values_are_written_back",)

    class Broken(AffineAdapter):
        def write_back(self, module, values):
            pass


class TestWritesAnythingBack(Suite):
    fails = ("test_values_are_written_back",)

    class Broken(AffineAdapter):
        def write_back(self, module, values):
            for name in ("kernel", "bias"):
                setattr(module, name, values[name].copy())


class TestSeedsTheGenerator(Suite):
    fails = ("test_leaves_nothing_behind",)

    class Broken(AffineAdapter):
        def bind(self, binding):
            random.seed(7)
            return super().bind(binding)


class TestValuesOfAHash(Suite):
    fails = ("test_another_hash_seed",)

    class Broken(AffineAdapter):
        def parameters(self, binding):
            for name in ("kernel", "bias"):
                value = getattr(binding.module, name) + np.float32(hash(name) % 1000)
                yield binding.variable(name, value.shape, value.dtype, value)
